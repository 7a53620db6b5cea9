"""The commands of `leakcap ledger`. Each imports what it runs when it is called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leakcap.cli.endings import CHECK_FAILED, ending
from leakcap.cli.options import Json, Quiet

__all__ = ["ledger_app"]

ledger_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="What was answered about your data, and what is left.",
)

Place = Annotated[
    str | None,
    typer.Option(
        "--ledger", help="sqlite:///file or postgresql://...; the one beside the key if left out.", metavar="PLACE"
    ),
]
Name = Annotated[str, typer.Argument(help="Name of the data set.", metavar="NAME", show_default=False)]
OneOrAll = Annotated[
    str | None, typer.Argument(help="One data set; all if left out.", metavar="NAME", show_default=False)
]
Why = Annotated[str, typer.Option(help="Why: it is written down.", metavar="WORDS", show_default=False)]


@ledger_app.command("show")
def show_command(
    name: OneOrAll = None,
    ledger: Place = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """What was answered about every data set, what is left, and what all of it allows together."""
    with ending():
        from leakcap.cli.ledger import run_show

        run_show(ledger, name, quiet, json)


@ledger_app.command("page")
def page_command(
    out: Annotated[Path, typer.Option(help="File to write, yours alone.", metavar="FILE", show_default=False)],
    name: OneOrAll = None,
    ledger: Place = None,
    quiet: Quiet = False,
) -> None:
    """What all releases on a data set together allow, on one HTML page for the custodian."""
    with ending():
        from leakcap.cli.ledger import run_page

        run_page(ledger, name, out, quiet)


@ledger_app.command("verify")
def verify_command(ledger: Place = None, quiet: Quiet = False, json: Json = False) -> None:
    """Whether every entry is whole, in its place, and the latest. Exit code 1 if not."""
    with ending():
        from leakcap.cli.ledger import run_verify

        if not run_verify(ledger, quiet, json):
            raise SystemExit(CHECK_FAILED)


@ledger_app.command("export")
def export_command(
    name: Name,
    ledger: Place = None,
    out: Annotated[
        Path | None, typer.Option(help="File to write, yours alone; standard output if left out.", metavar="FILE")
    ] = None,
    form: Annotated[str, typer.Option("--format", help="json or csv.", metavar="FORM")] = "json",
) -> None:
    """All questions and answers of a data set, as JSON or CSV. No secret, no clock and no person is in it."""
    with ending():
        from leakcap.cli.ledger import run_export

        run_export(ledger, name, out, form)


@ledger_app.command("budget")
def budget_command(
    name: Name,
    why: Why,
    ledger: Place = None,
    analyst: Annotated[
        list[str] | None, typer.Option(help="What an analyst may use: ann=0.2 of the clock.", metavar="NAME=SHARE")
    ] = None,
    day: Annotated[
        float | None, typer.Option(help="What a day may use, as a share of the clock.", metavar="SHARE")
    ] = None,
    group: Annotated[
        list[str] | None,
        typer.Option(help="Analysts with a clock of their own: research=ann,bob.", metavar="NAME=ANALYSTS"),
    ] = None,
    cap: Annotated[
        list[str] | None, typer.Option(help="Raise the caps: membership=0.65. Never lowered.", metavar="CAP")
    ] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Set what analysts, groups and days may use, or raise a cap; who and why are written down."""
    with ending():
        from leakcap.cli.ledger import run_budget

        run_budget(
            ledger,
            name,
            why=why,
            analysts=analyst or (),
            day=day,
            groups=group or (),
            caps=cap or (),
            quiet=quiet,
            json=json,
        )


@ledger_app.command("forget")
def forget_command(
    name: Name,
    why: Why,
    ledger: Place = None,
    yes: Annotated[bool, typer.Option("--yes", help="I mean it.")] = False,
    quiet: Quiet = False,
) -> None:
    """Erase the secret and all answers of a data set, and close its account for ever."""
    with ending():
        from leakcap.cli.ledger import run_forget

        run_forget(ledger, name, why=why, yes=yes, quiet=quiet)
