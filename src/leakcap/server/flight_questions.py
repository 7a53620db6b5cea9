"""Which data set a question is about, and the ticket that stands for a question: no question waits in the server."""

from __future__ import annotations

import hmac
import json
import math
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sqlglot import exp

from leakcap.server.asking import SqlQuestion
from leakcap.server.flight_catalog import CATALOG
from leakcap.server.refusals import NOT_THERE, Refusal
from leakcap.sql.compile import parsed

__all__ = ["FlightQuestion", "FlightTickets", "asked_about", "settings_of"]

NOT_OF_THIS_SERVER = "This ticket is not one of yours from this server: ask the question again."
WHICH = (
    "Say which data set the question is about: name its tables as DATASET.TABLE, or send the name as the header "
    "'database'."
)
ONE_AT_A_TIME = "A question is about one data set: name tables of one alone."
NO_NUMBER = "The header '{}' holds a number, such as {}: send one, or leave it out."
SEAL = 32  # bytes
NAME = "database"
NUMBERS: Mapping[str, tuple[type, float, str]] = {
    "share": (float, 1.0, "0.01"),
    "noise": (float, math.inf, "2.5"),
    "rows": (int, 2**31, "10"),
}


@dataclass(frozen=True)
class FlightQuestion:
    """A question about a data set."""

    dataset: str
    sql: str
    share: float | None = None
    noise: float | None = None
    rows: int | None = None

    @property
    def asked(self) -> SqlQuestion:
        return SqlQuestion(self.sql, self.share, self.noise, self.rows)


class FlightTickets:
    """Questions as bytes that only this server makes, each for one account.

    A ticket holds all that is needed to answer it: none is forgotten when the server starts again. It is no permission:
    whoever brings it is known by a token, and is allowed what that token allows.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def made(self, account: str, question: FlightQuestion) -> bytes:
        told = json.dumps(asdict(question)).encode()
        return self._seal(account, told) + told

    def read(self, account: str, ticket: bytes) -> FlightQuestion:
        seal, told = ticket[:SEAL], ticket[SEAL:]
        if not hmac.compare_digest(seal, self._seal(account, told)):
            raise Refusal(400, NOT_OF_THIS_SERVER)
        return FlightQuestion(**json.loads(told))

    def _seal(self, account: str, told: bytes) -> bytes:
        return hmac.digest(self._key, account.encode() + b"\0" + told, "sha256")


def settings_of(headers: Mapping[str, str]) -> dict[str, Any]:
    """What a program says beside its questions: the data set, and how they are paid for."""
    found: dict[str, Any] = {name: _number_in(headers[name], name) for name in NUMBERS if headers.get(name)}
    return found | ({"dataset": headers[NAME]} if headers.get(NAME) else {})


def asked_about(text: str, allowed: Collection[str], settings: Mapping[str, Any]) -> FlightQuestion:
    """A question with its data set: that of its tables' names, of the header, or the only one that may be asked."""
    named, bare = _without_names(text, allowed)
    chosen = settings.get("dataset") or named or (next(iter(allowed)) if len(allowed) == 1 else None)
    if chosen is None:
        raise Refusal(400, WHICH)
    if named not in (None, chosen):
        raise Refusal(400, ONE_AT_A_TIME)
    if chosen not in allowed:
        raise Refusal(404, NOT_THERE)
    return FlightQuestion(**{**settings, "dataset": chosen, "sql": bare})


def _without_names(text: str, allowed: Collection[str]) -> tuple[str | None, str]:
    """The data set that tables are called by, and the question without its name, in all else to the letter.

    So a question that was answered to a page or to a session is the same question here, and is not paid for twice.
    """
    if "." not in text:
        return None, text
    called = _called(text)
    named = {one.name.lower() for _, one in called}
    if not named & set(allowed):
        return None, text  # refused in the words of questions, whether there is such a data set or not
    if len(named) > 1:
        raise Refusal(400, ONE_AT_A_TIME)
    for first, one in sorted(called, key=lambda pair: pair[0].meta["start"], reverse=True):
        text = text[: first.meta["start"]] + text[text.index(".", one.meta["end"]) + 1 :]
    return named.pop(), text


def _called(text: str) -> list[tuple[Any, Any]]:
    """What stands before the names of tables, also of a column's table: where it begins, and the data set in it."""
    found = []
    for one in parsed(text).find_all(exp.Table, exp.Column):
        dataset, catalog = one.args.get("db"), one.args.get("catalog")
        if isinstance(dataset, exp.Identifier) and (catalog is None or catalog.name.lower() == CATALOG):
            found.append((catalog or dataset, dataset))
    return found


def _number_in(text: str, name: str) -> Any:
    kind, most, example = NUMBERS[name]
    try:
        found = kind(text)
    except ValueError:
        found = -1
    if 0 < found <= most and math.isfinite(found):
        return found
    raise Refusal(400, NO_NUMBER.format(name, example))
