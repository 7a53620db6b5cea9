"""The `leakcap` command: thin skins over the library. Heavy imports happen inside the commands."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from leakcap.errors import LeakcapError
from leakcap.version import __version__

__all__ = ["app", "main"]

# Typer's own tracebacks can show local variables, and those hold the data.
app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"leakcap {__version__}")
        raise typer.Exit


@app.callback()
def leakcap(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Release any computation on private data, and cap what any adversary can learn from it."""


@app.command("demo")
def demo_command(
    out: Annotated[Path, typer.Option(help="Folder for pictures and certificates.")] = Path("leakcap-demo"),
    cap: Annotated[float, typer.Option(help="Most success at guessing whether a person took part.")] = 0.55,
    worlds: Annotated[int, typer.Option(help="Possible worlds to simulate.")] = 1024,
) -> None:
    """Private means and private K-Means on data that scikit-learn ships, with pictures and certificates."""
    from leakcap.cli.demo import run

    run(out, cap, worlds)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command. Whatever leakcap raises on purpose is told in its own words, and the exit code is 2."""
    try:
        app(args=arguments, prog_name="leakcap")
    except LeakcapError as error:
        print(f"leakcap: {error}", file=sys.stderr)
        raise SystemExit(2) from None
