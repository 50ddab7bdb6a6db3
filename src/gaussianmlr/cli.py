"""The command `gmlr`: parse, call, print. Everything heavy is imported inside the commands."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from gaussianmlr._version import __version__
from gaussianmlr.data.cli import app as data_app

app = typer.Typer(
    name="gmlr",
    help="Multi-label ranking: which labels apply, in which order of significance, and how sure.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
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
def methods(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """List the methods: what they learn, their settings and supervision."""
    import dataclasses
    import json

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
        typer.echo(json.dumps(rows, indent=2))
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

    try:
        app()
    except DataError as error:
        if os.environ.get("GAUSSIANMLR_DEBUG"):
            raise
        print(f"gmlr: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
