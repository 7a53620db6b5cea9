"""`leakcap ledger`: what was answered about data sets, whether the record is whole, budgets, and forgetting."""

from __future__ import annotations

import csv
import getpass
import io
import json as json_text
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from leakcap.caps import as_caps
from leakcap.cli.limits import limits
from leakcap.cli.terminal import Terminal, plain
from leakcap.custody.ledger import Book, open_book
from leakcap.custody.ledger.accounts import TICKS
from leakcap.custody.ledger.operations import (
    Standing,
    account_named,
    export,
    forget,
    set_budget,
    show,
    verify,
)
from leakcap.custody.private_files import write_private
from leakcap.errors import InputError
from leakcap.sessions.overview import overview
from leakcap.sessions.standing import Together, longer_clock, together

__all__ = ["run_budget", "run_export", "run_forget", "run_page", "run_show", "run_verify"]


def run_show(place: str | None, name: str | None, quiet: bool = False, json: bool = False) -> None:
    """Every account, or one: what was answered, what is left, and what all of it allows together."""
    terminal, book = Terminal(quiet, json), open_book(place)
    standings = [one for one in show(book) if name in (None, one.name)]
    if name is not None:
        account_named(book, name)  # says which names there are
    terminal.heading(f"Ledger {plain(book.store.place)}")
    if not standings:
        terminal.say("Nothing was answered yet.")
    for one in standings:
        _print(one, together(one), terminal)
    terminal.result({"ledger": book.store.place, "accounts": [_facts(one) for one in standings]})


def run_page(place: str | None, name: str | None, out: Path, quiet: bool = False) -> None:
    """The same as a page, with what was asked and when, for the custodian alone."""
    write_private(out, overview(place, name).to_html().encode())
    Terminal(quiet).say(f"[bold]{plain(str(out))}[/bold]: custodian only, do not publish.")


def run_verify(place: str | None, quiet: bool = False, json: bool = False) -> bool:
    """Whether all entries are whole, in order, and the latest; False where something is wrong."""
    terminal, book = Terminal(quiet, json), open_book(place)
    found = verify(book)
    for fault in found.faults:
        terminal.say(f"[bold red]NO[/bold red]  {plain(fault)}")
    if found.whole:
        terminal.say(f"[green]yes[/green] {found.entries:,} entries of {found.accounts:,} accounts are whole.")
    terminal.result(
        {"whole": found.whole, "accounts": found.accounts, "entries": found.entries, "faults": found.faults}
    )
    return found.whole


def run_export(place: str | None, name: str, out: Path | None, form: str) -> None:
    """All entries of an account as JSON or CSV, to a file or to standard output."""
    if form not in ("json", "csv"):
        raise InputError("--format must be json or csv")
    rows = list(export(account_named(open_book(place), name)))
    if out is None:
        _write(rows, form, sys.stdout)
        return
    text = io.StringIO(newline="")
    _write(rows, form, text)
    write_private(out, text.getvalue().encode())


def run_budget(
    place: str | None,
    name: str,
    *,
    why: str,
    analysts: Sequence[str],
    day: float | None,
    groups: Sequence[str],
    caps: Sequence[str],
    quiet: bool = False,
    json: bool = False,
) -> None:
    """Set budgets of an account. Amounts are shares of the clock it was opened with."""
    terminal, book = Terminal(quiet, json), open_book(place)
    account = account_named(book, name)
    allowance = _allowance(book, name, caps) if caps else None
    set_budget(
        account,
        who=getpass.getuser(),
        why=why,
        analysts={who: round(share * TICKS) for who, share in map(_share_of, analysts)},
        day="" if day is None else round(day * TICKS),
        groups=dict(map(_group, groups)) or None,
        allowance=allowance,
        caps=limits(caps) if caps else (),
    )
    (after,) = [one for one in show(book) if one.name == name]
    _print(after, together(after), terminal)
    terminal.result(_facts(after))


def run_forget(place: str | None, name: str, *, why: str, yes: bool, quiet: bool = False) -> None:
    """Erase what was asked and answered, and close the account for ever."""
    terminal, account = Terminal(quiet), account_named(open_book(place), name)
    if not yes:
        raise InputError(
            f"this erases the secret and all answers of {name!r} for ever, and no question about it can be asked "
            "again: say --yes if you mean it"
        )
    forget(account, who=getpass.getuser(), why=why)
    terminal.say(f"What was asked about {plain(name)} is forgotten. Its charges stay, and the account is closed.")


def _allowance(book: Book, name: str, caps: Sequence[str]) -> int:
    """How long the clock of larger caps is, in ticks of the one that the account was opened with."""
    with account_named(book, name).reading(forgotten=True) as now:
        square = float((now.title or {}).get("square", 0.0))
        design = (now.title or {}).get("design")
    if design not in ("bits", "pool") or not square:
        raise InputError(
            "caps are raised here where everybody has a coin, or takes part. With a list of worlds the session itself "
            "raises it: leakcap.Session(...).raise_cap(0.6, who=..., why=...)"
        )
    return longer_clock(square, as_caps(limits(caps)))


def _print(one: Standing, all_of_it: Together, terminal: Terminal) -> None:
    terminal.heading(plain(one.name))
    if one.encoded:  # all of it is taken, and there is no clock to speak of
        terminal.say(f"{all_of_it.promise}.")
        terminal.say(all_of_it.words)
        return
    terminal.say(f"{all_of_it.promise}. {one.answers:,} answers so far" + (", forgotten" if one.forgotten else ""))
    for cap in one.raised or one.caps:
        terminal.say(f"Cap: {plain(cap)}")
    rows = [
        (group or "everybody", f"{100 * spent / TICKS:.3g} %", f"{100 * one.allowance / TICKS:.4g} %")
        for group, spent in {"": 0, **dict.fromkeys(one.groups, 0), **one.declared}.items()
    ]
    terminal.table(("clock of", "declared so far", "whole"), rows)
    if one.analysts:
        shares = [
            (who or "custodian", f"{100 * used / TICKS:.3g} %", "-" if most is None else f"{100 * most / TICKS:.3g} %")
            for who, (used, most) in one.analysts.items()
        ]
        terminal.table(("analyst", "used", "budget"), shares)
    terminal.say(all_of_it.words)


def _facts(one: Standing) -> dict[str, Any]:
    return asdict(one) | {"together": asdict(together(one))}


def _write(rows: list[dict[str, Any]], form: str, file: Any) -> None:
    if form == "json":
        json_text.dump(rows, file, indent=1)
        file.write("\n")
        return
    writer = csv.writer(file)
    names = list(rows[0]) if rows else []
    writer.writerow(names)
    for row in rows:
        writer.writerow(
            [json_text.dumps(cell) if isinstance(cell, (list, dict)) else _inert(cell) for cell in row.values()]
        )


def _inert(cell: Any) -> Any:
    """Words of others that no table program takes for a formula."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell


def _share_of(word: str) -> tuple[str, float]:
    who, _, share = word.rpartition("=")
    try:
        amount = float(share)
    except ValueError:
        amount = -1.0
    if not who or not 0 <= amount < 1e6:
        raise InputError("--analyst must be a name and a share of the clock, such as --analyst ann=0.2")
    return who, amount


def _group(word: str) -> tuple[str, list[str]]:
    name, _, members = word.partition("=")
    if not name or not members:
        raise InputError("--group must be a name and who is in it, such as --group research=ann,bob")
    return name, [one.strip() for one in members.split(",") if one.strip()]
