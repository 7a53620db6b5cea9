"""Questions of analysts: paid for once and in the ledger first, then stored as bytes, and from then on free.

The order is what makes it safe against a crash. The ledger charges and keeps an answer in one transaction before
anybody sees it. If the server ends after that and before the bytes are stored, the next request with the same key, or
the same question, gets the ledger's stored answer: no second charge, and no answer without one.
"""

from __future__ import annotations

import hmac
import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from leakcap.errors import InputError
from leakcap.server.database import Database
from leakcap.server.datasets import Datasets
from leakcap.server.refusals import NOT_THERE, Refusal
from leakcap.server.settings import ServerLimits
from leakcap.server.wire import body_of
from leakcap.sessions.answers import PastAnswer, Preview, Spending
from leakcap.sessions.session import Session
from leakcap.sql.answer import SqlAnswer

__all__ = ["Asking", "SqlQuestion", "StoredAnswer"]

STORED_ONLY = "This token gets stored answers alone, and this question was not answered yet: ask it with another token."
OTHER_QUESTION = "This request key was used for another question: take a new key for every question."
LONGEST_KEY = 200  # characters


@dataclass(frozen=True)
class SqlQuestion:
    """A question, and how it is to be paid for."""

    sql: str
    share: float | None = None
    noise: float | None = None
    rows: int | None = None

    @property
    def how(self) -> dict[str, float]:
        """Keywords for a session."""
        return {name: value for name in ("share", "noise") if (value := getattr(self, name)) is not None}


@dataclass(frozen=True)
class StoredAnswer:
    """An answer as it is handed out: the same bytes every time."""

    id: str
    body: bytes
    number: int | None  # of its last entry in the ledger
    at: float

    @property
    def facts(self) -> dict[str, Any]:
        return dict(json.loads(self.body))


class Asking:
    """Answers questions of accounts."""

    def __init__(self, database: Database, datasets: Datasets, limits: ServerLimits) -> None:
        self.database, self.datasets, self.limits = database, datasets, limits
        self._key = database.key("questions")

    def stored(
        self, dataset: str, account: str, question: SqlQuestion, request: str | None = None
    ) -> StoredAnswer | None:
        """The answer to a question that was answered before, for those who share its clock; None if none is."""
        asked = self._print(dataset, question)
        if request is not None:
            self._refuse_other(dataset, account, request, asked)
        return self._found("question = ?", dataset, account, asked)

    def with_id(self, dataset: str, account: str, id: str) -> StoredAnswer:
        """An answer by its id; a `Refusal` where this account may not see one of it."""
        found = self._found("id = ?", dataset, account, id)
        if found is None:
            raise Refusal(404, NOT_THERE)
        return found

    def preview(self, dataset: str, account: str, question: SqlQuestion) -> Preview | None:
        """What a question would cost; None where it is about public tables alone. Nothing is spent."""
        self._refuse_long(question)
        with self.datasets.session(dataset, account) as session:
            return session.preview_sql(question.sql, rows=question.rows, **question.how)

    def answer(self, dataset: str, account: str, question: SqlQuestion, request: str | None = None) -> StoredAnswer:
        """The answer: a stored one, or one that is charged for."""
        self._refuse_long(question)
        asked = self._print(dataset, question)
        if request is not None:
            self._remember(dataset, account, request, asked)
        with self.datasets.session(dataset, account) as session:
            found = self._found("question = ?", dataset, account, asked)  # by whoever was first in the queue
            if found is not None:
                return found
            answer = session.sql(question.sql, rows=question.rows, **question.how)
            body = body_of(answer, _share_of(session, answer))
        return self._keep(dataset, account, asked, number=answer.number, body=body)

    def answers(self, dataset: str, account: str) -> list[tuple[PastAnswer, str | None]]:
        """What was answered to those who share a clock, each with the id of its stored answer, if there is one."""
        with self.datasets.session(dataset, account) as session:
            past = session.history
        clock = self.datasets.clock_of(dataset, account)
        kept = self.database.rows("SELECT number, id FROM answers WHERE dataset = ? AND clock = ?", dataset, clock)
        ids = dict(kept)
        return [(one, ids.get(one.number)) for one in past]

    def standing(self, dataset: str, account: str) -> tuple[Spending, Spending]:
        """What is spent, and what is left, by what was declared."""
        with self.datasets.session(dataset, account) as session:
            return session.spent, session.remaining

    def certificate(self, dataset: str, account: str) -> Any:
        """What all answers together allow."""
        with self.datasets.session(dataset, account) as session:
            return session.certificate

    def _keep(self, dataset: str, account: str, asked: bytes, *, number: int | None, body: bytes) -> StoredAnswer:
        clock = self.datasets.clock_of(dataset, account)
        self.database.write(
            "INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            *(secrets.token_hex(12), dataset, clock, asked, number, body, time.time()),
        )
        found = self._found("question = ?", dataset, account, asked)
        assert found is not None
        return found

    def _found(self, which: str, dataset: str, account: str, value: Any) -> StoredAnswer | None:
        clock = self.datasets.clock_of(dataset, account)
        row = self.database.row(
            f"SELECT id, body, number, at FROM answers WHERE dataset = ? AND clock = ? AND {which}",
            dataset,
            clock,
            value,
        )
        return None if row is None else StoredAnswer(row[0], bytes(row[1]), row[2], row[3])

    def _remember(self, dataset: str, account: str, request: str, asked: bytes) -> None:
        self._refuse_other(dataset, account, request, asked)
        self.database.write(
            "INSERT INTO requests VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
            *(account, dataset, self._hidden(request), asked),
        )

    def _refuse_other(self, dataset: str, account: str, request: str, asked: bytes) -> None:
        if not 0 < len(request) <= LONGEST_KEY:
            raise InputError(f"a request key has 1 to {LONGEST_KEY} characters: take a random one")
        known = self.database.row(
            "SELECT question FROM requests WHERE account = ? AND dataset = ? AND request = ?",
            *(account, dataset, self._hidden(request)),
        )
        if known is not None and not hmac.compare_digest(bytes(known[0]), asked):
            raise Refusal(409, OTHER_QUESTION)

    def _refuse_long(self, question: SqlQuestion) -> None:
        if len(question.sql) > self.limits.question:
            raise InputError(f"a question has {self.limits.question:,} characters at most: ask for less at a time")

    def _print(self, dataset: str, question: SqlQuestion) -> bytes:
        """By which a stored answer is found: of the question, how it is paid for, and the tables as they are."""
        known = self.datasets.named(dataset)
        catalog = known.catalog
        told = [question.sql, question.share, question.noise, question.rows, catalog.kept, catalog.public_print]
        return self._hidden(json.dumps(told))

    def _hidden(self, text: str) -> bytes:
        return hmac.digest(self._key, text.encode(errors="surrogatepass"), "sha256")


def _share_of(session: Session, answer: SqlAnswer) -> float:
    """What a question took, also where it was answered before, and only its bytes were not stored."""
    if not answer.again:
        return answer.share
    asked = [(_meaning(one.question), one) for one in session.history]
    same = next((what for what, one in asked if one.number == answer.number), None)
    return float(sum(one.share for what, one in asked if what == same))


def _meaning(question: str) -> Mapping[str, Any]:
    """A stored question but for its step."""
    try:
        told = json.loads(question)
    except ValueError:
        return {}
    return {name: value for name, value in told.items() if name != "step"}
