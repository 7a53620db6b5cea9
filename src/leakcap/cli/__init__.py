"""The `leakcap` command: thin skins over the library, which parse, call and print."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any

import typer

from leakcap.cli.commands import (
    audit_command,
    check_command,
    demo_command,
    explain_command,
    open_command,
    serve_command,
)
from leakcap.cli.ledger_commands import ledger_app
from leakcap.cli.obfuscate_commands import obfuscate_app
from leakcap.cli.sql_commands import sql_command
from leakcap.cli.table_commands import labels_command, party_command, release_command
from leakcap.version import __version__

__all__ = ["app", "main"]

# Typer's own tracebacks can show local variables, and those hold the data.
app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)


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


# In the order of the help page.
app.command("demo")(demo_command)
app.command("release")(release_command)
app.command("open")(open_command)
app.command("explain")(explain_command)
app.command("check")(check_command)
app.command("audit")(audit_command)
app.command("labels")(labels_command)
app.command("party")(party_command)
app.command("sql")(sql_command)
app.command("serve")(serve_command)
app.add_typer(obfuscate_app, name="obfuscate")
app.add_typer(ledger_app, name="ledger")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command."""
    # A command makes many objects that stay (thousands of modules) and few circles: looking for these every 700 objects
    # takes a twentieth of its time.
    gc.set_threshold(100_000)
    _command()(args=arguments, prog_name="leakcap")


@cache
def _command() -> Any:
    """Typer would look at the signatures of all commands again for every call in this process."""
    return typer.main.get_command(app)
