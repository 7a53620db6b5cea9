"""`leakcap explain mi=0.05`: what a privacy number means, and what it is in other currencies."""

from __future__ import annotations

import difflib
import json as jsonlib
import re
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from fractions import Fraction

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from leakcap.convert.explain import HALF, SECTIONS, Row, rows
from leakcap.convert.rounding import percent
from leakcap.convert.table import table_of
from leakcap.errors import InputError

__all__ = ["read", "run", "show"]

CURRENCIES = ("mi", "eps", "eta", "success")
IN_TABLES = (*CURRENCIES, "rho")
KEYS = (*IN_TABLES, "delta", "prior", "n")
LEAST = Fraction(1, 10**12)
ALIASES = {"epsilon": "eps", "nats": "mi", "mip": "eta", "membership": "success"}


def run(given: Sequence[str], json: bool = False, quiet: bool = False, table: bool = False) -> None:
    """Print what the given numbers mean: section by section, as one table, as JSON, or (quiet) as bare lines."""
    numbers = read(given, IN_TABLES if table else CURRENCIES)
    if table:
        _tabulated(numbers, json, quiet)
        return
    relations = rows(numbers)
    if json:
        print(jsonlib.dumps(_record(numbers, relations), indent=1, ensure_ascii=False))
    elif quiet:
        for row in relations:
            print(f"{row.section}\t{row.name}\t{row.shown}")
    else:
        show(relations, Console(highlight=False))


def _tabulated(numbers: dict[str, Fraction], json: bool, quiet: bool) -> None:
    lines = table_of(numbers)
    if json:
        record = {"given": {key: float(value) for key, value in numbers.items()}, "lines": list(map(asdict, lines))}
        print(jsonlib.dumps(record, indent=1, ensure_ascii=False))
    elif quiet:
        for line in lines:
            print(f"{line.currency}\t{line.shown}\t{line.relation}")
    else:
        grid = Table(box=None, pad_edge=False, show_edge=False)
        for title, style in (("currency", "cyan"), ("figure", "bold"), ("relation", ""), ("assumes", "dim")):
            grid.add_column(title, style=style, no_wrap=title != "assumes")
        for line in lines:
            grid.add_row(line.currency, line.shown, line.relation, line.assumes)
        Console(highlight=False).print(Padding(grid, (0, 2, 1, 2)))


def read(given: Sequence[str], currencies: Sequence[str] = CURRENCIES) -> dict[str, Fraction]:
    """Words such as `eps=1` as checked numbers, exactly as written."""
    numbers: dict[str, Fraction] = {}
    for word in given:
        key, value = _pair(word)
        if key in numbers:
            raise InputError(f"{key} is given twice: give it once")
        numbers[key] = value
    if "rho" in numbers and "rho" not in currencies:
        raise InputError("rho is for the table: leakcap explain --table rho=0.1")
    chosen = [key for key in currencies if key in numbers]
    if len(chosen) != 1:
        what = f"{' and '.join(chosen)} are different currencies for one promise" if chosen else "nothing to explain"
        raise InputError(f"{what}: give exactly one of {', '.join(currencies)}, such as leakcap explain success=0.55")
    for key in ("delta", "n"):
        if key in numbers and not ("eps" in numbers or (key == "n" and "rho" in numbers)):
            raise InputError(f"{key} belongs to eps: leave it out, or give eps instead of {chosen[0]}")
    prior = numbers.get("prior", HALF)
    if "success" in numbers and numbers["success"] - prior < LEAST:
        raise InputError(
            f"success must lie above the prior, {percent(prior)}: an attacker has that much without any release. Give "
            "a higher success, or the prior of the guess you mean, such as prior=0.01"
        )
    return numbers


def _pair(word: str) -> tuple[str, Fraction]:
    name, equals, text = word.partition("=")
    key = ALIASES.get(name.strip().lower(), name.strip().lower())
    if key not in KEYS or not equals:
        close = difflib.get_close_matches(key, (*KEYS, *ALIASES), n=1, cutoff=0.5)
        hint = f" (did you mean {ALIASES.get(close[0], close[0])}=...?)" if close else ""
        raise InputError(f"cannot read {word!r}{hint}: write one of {', '.join(KEYS)} with a value, such as mi=0.05")
    digits = text.strip()
    try:
        if re.search(r"e[-+]?\d{4}", digits, re.IGNORECASE):  # Fraction would write out all its zeros
            raise ValueError
        value = Fraction(digits.removesuffix("%").strip()) / (100 if digits.endswith("%") else 1)
    except (ValueError, ZeroDivisionError):
        raise InputError(f"{key} must be a number, such as {key}=0.05, {key}=5%, {key}=1/20 or {key}=5e-2") from None
    return key, _in_range(key, value)


def _in_range(key: str, value: Fraction) -> Fraction:
    if key in ("mi", "eps", "rho") and not (value == 0 or LEAST <= value <= 10**6):
        raise InputError(f"{key} must be 0 or a number from 1e-12 to a million")
    if key == "eta" and not LEAST <= value <= HALF - LEAST:
        raise InputError("eta must lie between 0 and 0.5 (and 1e-12 away from both): success is at most 1/2 + eta")
    if key == "success" and not LEAST <= value <= 1 - LEAST:
        raise InputError("success must lie between 0 and 1 (and 1e-12 away from both), such as 0.55 or 55%")
    if key == "prior" and not Fraction(1, 10**100) <= value <= 1 - LEAST:
        raise InputError("prior must lie between 0 and 1 (at least 1e-100, at most 1 - 1e-12)")
    if key == "delta" and not 0 <= value < 1:
        raise InputError("delta must be 0 or above, and below 1")
    if key == "n" and (value.denominator != 1 or not 1 <= value <= 10**15):
        raise InputError("n must be the number of records, a whole number of at least 1")
    return value


def show(relations: Sequence[Row], console: Console) -> None:
    """A table for each section, all with columns of the same widths."""
    names, values = max(len(row.name) for row in relations), max(len(row.shown) for row in relations)
    rest = max(24, console.width - names - values - 8)  # two gaps and two margins of two
    for section, title in SECTIONS.items():
        chosen = [row for row in relations if row.section == section]
        if not chosen:
            continue
        table = Table(
            title=title, title_justify="left", title_style="bold", box=None, show_header=False, pad_edge=False
        )
        table.add_column(width=names, style="cyan")
        table.add_column(width=values, justify="right", style="bold" if section != "none" else "dim")
        table.add_column(width=rest)
        for row in chosen:
            table.add_row(Text(row.name), Text(row.shown), Text(_wrapped(row.sentence, rest)))
        console.print(Padding(table, (0, 2, 1, 2)))


def _wrapped(sentence: str, width: int) -> str:
    """Lines that keep a number and its per cent sign together, which rich does not."""
    joined = sentence.replace(" %", "\N{NO-BREAK SPACE}%")
    return textwrap.fill(joined, width, break_on_hyphens=False).replace("\N{NO-BREAK SPACE}", " ")


def _record(given: dict[str, Fraction], relations: Sequence[Row]) -> dict[str, object]:
    return {
        "given": {key: float(value) for key, value in given.items()},
        "rows": [
            {"relation": row.section, "name": row.name, "value": row.value, "shown": row.shown, "says": row.sentence}
            for row in relations
        ],
    }
