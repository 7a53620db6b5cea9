"""`leakcap release --session`: one question in the session of a file, whose answers share one secret and one cap."""

from __future__ import annotations

import json as json_text
from typing import Any

import numpy as np

from leakcap.certificates.text import percent
from leakcap.cli.limits import limits
from leakcap.cli.release import ReleaseOrder, account_of, refuse_second
from leakcap.cli.terminal import Terminal, plain
from leakcap.custody.folders import Folders
from leakcap.custody.signing import own_signer
from leakcap.errors import InputError
from leakcap.report.sessions.page import session_page
from leakcap.sessions.answers import SessionAnswer
from leakcap.sessions.session import Session
from leakcap.tables.cut_points import edges
from leakcap.tables.files import TableFile, open_table
from leakcap.tables.groups import By
from leakcap.tables.reading import Reading
from leakcap.tables.units import units_of

__all__ = ["run_in_session"]

ASKED = ("mean", "sum", "count", "covariance", "median", "quantile", "histogram")
NOT_HERE = ("strata", "levels", "clip", "drop")


def run_in_session(order: ReleaseOrder, quiet: bool = False, json: bool = False) -> None:
    """Ask, write what may be published, and say what is left."""
    terminal = Terminal(quiet, json)
    if order.fn not in ASKED:
        raise InputError(f"--session answers {', '.join(ASKED)}: for any other function use Python, leakcap.Session")
    for name in NOT_HERE:
        if getattr(order, name):
            raise InputError(f"--{name} has no meaning in a session: leave it out")
    refuse_second(order.out)
    signer = own_signer()  # before anything is spent
    terminal.tell(signer.news())
    file = open_table(order.data, Reading.of(order.read))
    table, whose = _with_owners(file, order.unit)
    session = Session(
        table,
        cap=limits(order.cap),
        unit=whose,
        rows_per_unit=order.rows_per_unit,
        ledger=account_of(order),
    )
    terminal.heading(f"{order.fn} of {plain(str(order.data.name))}, in its session")
    answer = _asked(session, order, file, terminal)
    certificate = session.certificate
    low, high = answer.interval()
    folders = Folders.under(order.out)
    facts = {
        "question": answer.question,
        "answer": np.ravel(np.asarray(answer.value, dtype=float)).tolist(),
        "low": low.tolist(),
        "high": high.tolist(),
        "covers_halving": answer.covers_halving,
        "share": answer.share,
    }
    files: dict[str, str | bytes] = {
        "answer.json": json_text.dumps(facts, indent=1),
        "certificate.json": certificate.to_json(),
        "certificate.html": session_page(certificate, signer.fingerprint),
    }
    folders.publish(signer.signed(files))
    rows = zip(facts["answer"], facts["low"], facts["high"], strict=True)
    terminal.table(("answer", "95 % interval"), [(f"{a:.6g}", f"{b:.6g} to {c:.6g}") for a, b, c in rows])
    left = session.remaining
    terminal.say(
        f"Took {100 * answer.share:.3g} % of the clock; {100 * left.share:.4g} % are left. All answers together allow "
        f"at most {percent(left.success)}."
    )
    terminal.say(f"[bold]{plain(str(folders.public))}[/bold]: may be published.")
    terminal.result(facts | {"public": str(folders.public), "remaining": left.share})


def _with_owners(file: TableFile, unit: str | None) -> tuple[Any, Any]:
    """The table without the column that says whose row it is, and its labels, read as they are written."""
    others = file.with_parts(name for name in file.columns if name != unit)
    table = file.read([*([unit] if unit in file.columns else []), *others])
    if unit is None or unit not in table or table[unit].isna().any():
        return table, unit  # the session says what is wrong with it
    labels, _ = units_of(file, table, unit, np.ones(len(table), dtype=bool))
    return table.drop(columns=unit), labels


def _asked(session: Session, order: ReleaseOrder, file: TableFile, terminal: Terminal) -> SessionAnswer:
    columns = [name for word in order.columns for name in word.split(",")]
    columns = columns or file.only_column(apart_from=[order.unit, *(By.of(text).column for text in order.by)])
    how: dict[str, Any] = {} if order.share is None else {"share": order.share}
    if order.where:
        how["where"] = order.where
    bounds = _bounds(order, columns)
    with terminal.heeding():
        if order.fn == "count":
            return session.count(by=_groups(order), **how)
        if not columns:
            raise InputError("name the columns: --columns age,height")
        if order.fn in ("mean", "sum"):
            return getattr(session, order.fn)(columns, by=_groups(order), bounds=bounds, **how)  # type: ignore[no-any-return]
        if order.fn == "covariance":
            return session.covariance(columns, bounds=bounds, **how)
        if order.fn == "histogram":
            if not order.bins:
                raise InputError("a histogram needs its bins: --bins 0:100:10")
            return session.histogram(columns, edges=edges(order.bins[0]), **how)
        levels = list(order.q) if order.fn == "quantile" and order.q else 0.5
        return session.quantile(columns, levels, bounds=bounds, **how)


def _groups(order: ReleaseOrder) -> dict[str, list[Any]] | None:
    parts = [By.of(text) for text in order.by]
    for one in parts:
        one.refuse_undeclared()
    return {one.column: [_value(level) for level in one.levels] for one in parts} or None


def _value(level: str) -> Any:
    """A number where it reads as one: a column of numbers has no texts."""
    try:
        return float(level)
    except ValueError:
        return level


def _bounds(order: ReleaseOrder, columns: list[str]) -> Any:
    ends: dict[str, tuple[float, float]] = {}
    for word in order.bounds:
        name, _, pair = word.rpartition("=")
        try:
            low, high = (float(end) for end in pair.split(","))
        except ValueError:
            raise InputError("--bounds must be two numbers, such as --bounds 0,100 or --bounds age=0,120") from None
        ends |= dict.fromkeys([name] if name else columns, (low, high))
    return ends or None
