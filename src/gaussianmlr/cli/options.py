"""Options and steps that several commands share."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gaussianmlr._utils.strict_json import dumps

if TYPE_CHECKING:
    from gaussianmlr._utils.progress import ConsoleWatcher
    from gaussianmlr.comparison.peers import Peers
    from gaussianmlr.engines.jobs import Engine


def _trusted(context: typer.Context, names: list[str] | None) -> list[str] | None:
    if names and not context.resilient_parsing:
        from gaussianmlr._utils.trust import allow, trust
        from gaussianmlr.nn.backbones.registry import is_adapted

        for name in names:
            allow(name) if is_adapted(name) else trust(name)
    return names


def named(value: Any) -> Any:
    """Let names of code, ``package.module:Class``, be found in the current folder; returns them unchanged."""
    names = [value] if isinstance(value, str) else value or ()
    if any(":" in name for name in names):
        from gaussianmlr._utils.trust import see_current_folder

        if any(_is_outside(name.strip()) for text in names for name in text.split(",")):
            see_current_folder()
    return value


def _named_by_settings(texts: list[str] | None) -> list[str] | None:
    named([text.partition("=")[2] for text in texts or () if re.match(r"\s*(method|backbone)\s*=", text)])
    return texts


def _is_outside(name: str) -> bool:
    """Whether a name is external code, not a model of a zoo or a method with its supervision.

    Examples
    --------
    >>> [_is_outside(name) for name in ("gmlr:weak", "hf:microsoft/resnet-18", "mine:Mine:weak", "mine:Mine")]
    [False, False, True, True]
    """
    from gaussianmlr.nn.backbones.registry import is_adapted

    return ":" in re.sub(":(strong|weak|both)$", "", name) and not is_adapted(name)


Data = Annotated[
    str,
    typer.Argument(
        help="A Ranked MNIST set such as gray-s, a table, a manifest of pictures or a folder with one."
    ),
]
RecipeFile = Annotated[Path | None, typer.Option(help="TOML or JSON with any settings of the training.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="One setting, field=value or field.key=value; repeatable.",
        callback=_named_by_settings,
    ),
]
Backbone = Annotated[
    str | None,
    typer.Option(
        help="fast, resnet18, mlp, efficientnet-lite0, hf:NAME, timm:NAME, or package.module:factory.",
        callback=named,
    ),
]
Epochs = Annotated[int | None, typer.Option(help="Passes over the training data.")]
Size = Annotated[int | None, typer.Option(help="Ranked MNIST: training images per epoch.")]
Digits = Annotated[str, typer.Option(help="Ranked MNIST: auto, mnist, embedded, or a folder with MNIST.")]
ImageSize = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=4_096,
        help="Pictures: height and width; by default the backbone's own.",
    ),
]
Channels = Annotated[int | None, typer.Option(help="Pictures: 1 (gray) or 3 (colour); by default found out.")]
Labels = Annotated[
    str | None,
    typer.Option(
        help="The labels there should be: a text file with one per line, or a list, 'sky,\"red, dark\"'; any "
        "other label is an error."
    ),
]
Threshold = Annotated[float | None, typer.Option(help="Read label columns as grades: relevant above this.")]
Tolerance = Annotated[float, typer.Option(help="Grades that differ by no more than this tie.")]
Stream = Annotated[
    bool | None,
    typer.Option(
        "--stream/--no-stream",
        help="Read data in parts, for data larger than memory; by default tables above 512 MB and manifests "
        "above 64 MB.",
        show_default=False,
    ),
]
Accelerator = Annotated[str, typer.Option(help="Lightning's: auto, cpu, cuda, mps.")]
Trust = Annotated[
    list[str] | None,
    typer.Option(
        help="A module of yours whose methods and backbones files may name; it is imported, also from the "
        "current folder. Repeatable.",
        callback=_trusted,
    ),
]
EscapeFormulas = Annotated[
    bool,
    typer.Option(
        "--escape-formulas",
        help="CSV for spreadsheets: texts that begin with = + - @ get an apostrophe in front.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
NoPeers = Annotated[
    bool,
    typer.Option(
        "--no-peers", help="Do not show a constant order and, for tables, a random forest beside it."
    ),
]
ModelFolder = Annotated[
    Path, typer.Argument(help="Folder of a model, or of the run that made it, or shipped:NAME.")
]
Threads = Annotated[
    int | None,
    typer.Option(min=1, help="Threads of torch; by default as many as the size of a step is worth."),
]


class EngineName(StrEnum):
    """Where a command does its work."""

    local = "local"
    ray = "ray"


OnEngine = Annotated[
    EngineName,
    typer.Option("--engine", help="This process, or the machines of a Ray cluster (needs gaussianmlr[ray])."),
]
RayAddress = Annotated[
    str | None,
    typer.Option(help="Ray cluster to join: auto or HOST:PORT; by default one is started for the run."),
]
Workers = Annotated[
    int | None,
    typer.Option(min=1, help="With Ray: how much is done at the same time; by default one per core."),
]
BatchSize = Annotated[int, typer.Option(min=1, help="Instances per batch.")]
Host = Annotated[str, typer.Option(help="Address to listen at; any but loopback needs --token.")]
Port = Annotated[int, typer.Option(min=0, max=65_535, help="Port to listen at; 0 takes a free one.")]
Token = Annotated[
    str | None,
    typer.Option(envvar="GMLR_TOKEN", help="Token that requests must send: 'Authorization: Bearer TOKEN'."),
]


def names_backbone(backbone: str | None, recipe: Path | None, settings: list[str] | None) -> bool:
    """Whether options name a backbone, or a recipe that may.

    Examples
    --------
    >>> names_backbone(None, None, ["backbone=fast"]), names_backbone(None, None, ["rate=1"])
    (True, False)
    """
    by_setting = any(text.partition("=")[0].strip() == "backbone" for text in settings or ())
    return backbone is not None or recipe is not None or by_setting


def need_pages(what: str) -> None:
    """Name the missing packages of the extra `pages`, and how to install them."""
    from gaussianmlr._utils.extras import require

    require(what, "fastapi", "uvicorn", "python_multipart", "prometheus_client")


def print_json(value: Any) -> None:
    """Print JSON on standard output, in ASCII where its encoding cannot show the text."""
    text = dumps(value, indent=2, ensure_ascii=False)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = dumps(value, indent=2)
    typer.echo(text)


def show_metrics(title: str, metrics: dict[str, float], peers: Peers) -> None:
    """Print the metrics of a model, its peers on the same instances, and what the numbers mean."""
    from gaussianmlr._utils.display import LEGEND, metrics_table

    typer.echo(metrics_table({title: metrics, **peers.metrics}))
    typer.echo(f"({LEGEND})")
    for note in peers.notes:
        typer.echo(note, err=True)


@contextmanager
def working(
    threads: int | None = None, quiet: bool = False, *, lines: bool = True
) -> Iterator[ConsoleWatcher]:
    """Work with a network: freed memory is kept, torch has the threads asked for, progress is shown."""
    from gaussianmlr._utils.memory import keep_freed_memory
    from gaussianmlr._utils.progress import ConsoleWatcher
    from gaussianmlr._utils.threads import asked_threads

    keep_freed_memory()
    with closing(ConsoleWatcher(quiet, lines)) as watcher, asked_threads(threads):
        yield watcher


@contextmanager
def resumable(
    said: str, quiet: bool, *, lines: bool = True, threads: int | None = None
) -> Iterator[ConsoleWatcher]:
    """`working`; on Ctrl-C or SIGTERM, stop so that training can be resumed, and print `said`."""
    from gaussianmlr._utils.signals import stoppable

    with stoppable(said), working(threads, quiet, lines=lines) as watcher:
        yield watcher


def engine_of(
    name: EngineName, address: str | None, workers: int | None, threads: int | None, accelerator: str = "auto"
) -> Engine:
    """The engine that options ask for; a job on Ray has one GPU where the accelerator is one."""
    from gaussianmlr.engines.jobs import Engine

    gpus = 1.0 if name is EngineName.ray and accelerator in ("cuda", "gpu") else 0.0
    return Engine(name.value, address, workers, threads, gpus)


def listed(labels: str | None) -> list[str] | None:
    """The labels of `--labels`, if it is given: those of a file, or of a list with commas.

    Examples
    --------
    >>> listed("sky, sea"), listed('"red, dark",blue'), listed(None)
    (['sky', 'sea'], ['red, dark', 'blue'], None)
    """
    if labels is None:
        return None
    from gaussianmlr.cli.tables import quoted_list
    from gaussianmlr.data.readers.labels import read_labels

    is_file = os.path.isfile(labels)  # noqa: PTH113 (Path.is_file raises for long lists)
    if is_file or labels.lower().endswith((".txt", ".csv")):
        return [*read_labels(labels)]
    return quoted_list(labels, "labels")
