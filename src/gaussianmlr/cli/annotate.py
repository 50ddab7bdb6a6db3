"""`gmlr annotate` and `gmlr annotations`: a page to rank labels, and its answers."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gaussianmlr.cli import options
from gaussianmlr.cli.tables import FORMAT, reads_tables

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence

    from gaussianmlr.apps.annotate import Store

answers_app = typer.Typer(
    help="Answers of `gmlr annotate`: show, export and import them.", no_args_is_help=True
)
_PATIENCE = 5.0  # seconds to wait for a store that another program has locked
_PAUSE = 30.0  # seconds until suggestions are tried again
StoreFolder = Annotated[Path, typer.Argument(help="Folder that `gmlr annotate --out` made.")]


class Aggregate(StrEnum):
    """How several people's orders become one."""

    none = "none"
    mean_rank = "mean_rank"
    borda = "borda"
    kemeny = "kemeny"
    thurstone = "thurstone"


class FormName(StrEnum):
    """The format of imported answers."""

    manifest = "manifest"
    label_studio = "label-studio"
    argilla = "argilla"


@reads_tables(*FORMAT)
def annotate_command(
    images: Annotated[
        Path, typer.Argument(help="Folder of pictures, a manifest, or a table of texts or rows.")
    ],
    out: Annotated[Path, typer.Option(help="Folder of the answers; run again to resume.")],
    labels: Annotated[
        str | None,
        typer.Option(
            help="Text file, one label per line, or a list, 'sky,\"red, dark\"'; needed the first time."
        ),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(help="Model or run that suggests orders; the most uncertain items come first."),
    ] = None,
    people: Annotated[
        int, typer.Option(min=0, help="How many people rank each item; 0 = everybody ranks all.")
    ] = 0,
    guide: Annotated[
        Path | None,
        typer.Option(
            help="Markdown shown beside the items; a paragraph below a heading that is a label describes it."
        ),
    ] = None,
    candidates: Annotated[
        str | None,
        typer.Option(help="Column with the labels that an item offers, 'sky, sea'; empty cells offer all."),
    ] = None,
    host: options.Host = "127.0.0.1",
    port: options.Port = 8000,
    token: options.Token = None,
    trust: options.Trust = None,
    layout: Any = None,
) -> None:
    """Rank labels for pictures, texts or rows, on a page in the browser; several people at once, by name.

    Examples: `gmlr annotate photos/ --labels labels.txt --out answers`, then
    `gmlr annotations export answers photos/manifest.csv` and `gmlr train photos --out run`.
    """
    options.need_pages("gmlr annotate")
    from functools import partial

    from gaussianmlr.apps.annotate import Store, read_items
    from gaussianmlr.apps.annotate.app import make_annotate_app
    from gaussianmlr.apps.annotate.guide import read_guide
    from gaussianmlr.apps.annotate.items import check_candidates
    from gaussianmlr.apps.web.server import check_listening, listen, run_server
    from gaussianmlr.errors import DataError

    # Check everything before the store is created or changed.
    check_listening(host, token)
    with listen(host, port) as listener:
        found = read_items(images, layout, candidates=candidates)
        names = options.listed(labels)
        if names is None and not out.exists():
            raise DataError(
                f"{out}: does not exist yet; give --labels sky,sea,sun, or a file with one label per line"
            )
        if names is not None and len(names) == 1 and not out.exists():
            raise DataError(f"--labels gives one label, {names[0]!r}; expected several, as in sky,sea,sun")
        known = _labels_of(out) if names is None else names
        check_candidates(found, known)
        instructions = None if guide is None else read_guide(guide, known)
        suggests = None if model is None else _suggester(model, found.kind, known)
        with Store(out, create=names is not None, patience=_PATIENCE) as store:
            store.bring(found, names)
            if suggests is None:
                store.forget_suggestions()
            background = None if suggests is None else partial(suggests, store)
            app = make_annotate_app(
                store,
                title=images.resolve().name,
                wanted=people,
                token=token,
                background=background,
                guide=instructions,
                candidates=found.candidates,
            )
            typer.echo(f"{store.count():,} items, {len(store.labels)} labels; answers go to {out}", err=True)
            run_server(app, host, port, token=token, listener=listener)


def _labels_of(folder: Path) -> Sequence[str]:
    from gaussianmlr.apps.annotate import Store

    with Store(folder) as store:
        return store.labels


def _suggester(folder: Path, kind: str, labels: Sequence[str]) -> Callable[[Store, threading.Event], None]:
    from gaussianmlr.apps.annotate import StoreError
    from gaussianmlr.apps.annotate.suggestions import check_model, suggest_all
    from gaussianmlr.errors import DataError
    from gaussianmlr.inference.matching import open_model
    from gaussianmlr.model.model import read_config

    model = open_model(folder)
    check_model(model, kind, labels)
    inner = folder / "model" if (folder / "model").is_dir() else folder
    # By its weights: a model that was retrained in the same folder is another one.
    name = f"{folder.resolve().name} {str(read_config(inner).get('weights_sha256'))[:12]}"

    def work(store: Store, ended: threading.Event) -> None:
        while not ended.is_set():
            try:
                suggest_all(model, store, name, going_on=lambda: not ended.is_set())
                return
            except StoreError as error:  # locked or full: may be temporary
                typer.echo(f"suggestions wait: {error}", err=True)
                ended.wait(_PAUSE)
            except DataError as error:  # people can rank without them
                typer.echo(f"no more suggestions: {error}", err=True)
                return

    return work


@answers_app.command("export")
def export_command(
    store: StoreFolder,
    to: Annotated[
        Path, typer.Argument(help="CSV, TSV, JSON lines or Parquet; beside or above the pictures.")
    ],
    aggregate: Annotated[
        Aggregate, typer.Option(help="One order per item; `none` writes one row per person.")
    ] = Aggregate.none,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
    escape_formulas: options.EscapeFormulas = False,
) -> None:
    """Write the manifest or table that `gmlr train` reads."""
    from gaussianmlr.apps.annotate import Store, export_answers

    with Store(store) as opened:
        joined = None if aggregate is Aggregate.none else aggregate.value
        rows = export_answers(opened, to, joined, overwrite=overwrite, escape_formulas=escape_formulas)
    typer.echo(f"{to}: {rows:,} orders")


@answers_app.command("import")
def import_command(
    store: StoreFolder,
    file: Annotated[Path, typer.Argument(help="File with the answers.")],
    form: Annotated[
        FormName, typer.Option("--from", help="Our manifest or table, or the JSON export of another tool.")
    ] = FormName.manifest,
    person: Annotated[str | None, typer.Option(help="The person, if the file names none.")] = None,
    buckets: Annotated[
        str, typer.Option(help="Label Studio: buckets that apply, most significant first: main,minor.")
    ] = "",
    question: Annotated[str | None, typer.Option(help="Argilla: the question, if several rank.")] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace earlier answers of the same person.")
    ] = False,
) -> None:
    """Import answers from an export, Label Studio (Ranker) or Argilla (ranking question)."""
    from gaussianmlr.apps.annotate import Store, import_answers

    chosen = [name.strip() for name in buckets.split(",") if name.strip()]
    with Store(store) as opened:
        found = import_answers(
            opened, file, form.value, person=person, buckets=chosen, question=question, replace=replace
        )
    kept = f"; {found.kept:,} were kept" if found.kept else ""
    typer.echo(f"{store}: {found.added:,} answers added{kept}")


@answers_app.command("show")
def show_command(store: StoreFolder, as_json: options.AsJson = False) -> None:
    """Show the progress, times and agreement of people."""
    import dataclasses

    from gaussianmlr.apps.annotate import Store, overview

    with Store(store) as opened:
        seen = overview(opened)
        names = {item.id: item.name for item in opened.items(everything=True)}
    if as_json:
        whole = dataclasses.asdict(seen)
        whole["disputed"] = [{"name": names[item], "disagreement": much} for item, much in seen.disputed]
        options.print_json(whole)
        return
    typer.echo(f"{seen.ranked:,} of {seen.items:,} items ranked by at least one person")
    for person in seen.people:
        typer.echo(f"  {_line(person)}")
    if seen.agreement:
        typer.echo(
            f"tau-b between two people: {100 * seen.agreement['pairwise_tau_b']:.1f} (100 = the same order)"
        )
    for item, much in seen.disputed[:10]:
        typer.echo(f"  disagreement {much:.2f}  {names[item]}")


def _line(person: dict[str, Any]) -> str:
    parts = [f"{person['name']}: {person['ranked']:,} ranked, {person['skipped']:,} skipped"]
    if person["seconds"] is not None:
        parts.append(f"{person['seconds']:.1f} s per item")
    if person["tau_b"] is not None:
        parts.append(f"tau-b {100 * person['tau_b']:.1f} with the others")
    if person["reliability"] is not None:
        parts.append(f"reliability {person['reliability']:.2f}")
    return ", ".join(parts)
