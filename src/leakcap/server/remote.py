"""A session on a server, from Python: the same questions, the same frames."""

from __future__ import annotations

import json
import os
import secrets
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from leakcap.errors import BudgetError, InputError, LeakcapError
from leakcap.ground import checks
from leakcap.server.remote_questions import RemoteQuestions

__all__ = ["RemoteAnswer", "RemoteSession", "ServerError", "connect"]

PATIENCE = 180.0  # seconds
KINDS = ("count", "mean", "sum", "median", "quantile", "histogram")  # that have a preview
HOW = ("share", "noise", "rows")
LOOPBACK = ("127.0.0.1", "localhost", "::1")
ERRORS = {400: InputError, 404: InputError, 409: BudgetError, 422: InputError}


class ServerError(LeakcapError):
    """The server refused a request, or could not be reached. The message says what to do."""


@dataclass(frozen=True, eq=False)
class RemoteAnswer:
    """An answer to a question in SQL. Public side.

    Attributes:
        frame: the table, with columns `NAME`, `NAME low` and `NAME high` for every released number.
        share: what the question took of the clock of whoever paid the most.
        again: whether it was stored, so that nothing was spent.
        numbers: names of the columns that have an interval.
        whole: whether all of it was answered.
    """

    frame: Any
    share: float
    again: bool
    numbers: tuple[str, ...]
    whole: bool = True

    @property
    def value(self) -> Any:
        """The number, where there is a single one; otherwise the frame."""
        if len(self.numbers) == 1 and len(self.frame) == 1:
            return float(self.frame[self.numbers[0]].iloc[0])
        return self.frame

    def __repr__(self) -> str:
        return repr(self.frame)


class RemoteSession:
    """Questions about one data set of a server, in the name of a token's account. Public side: it holds no data."""

    def __init__(self, server: _Server, name: str) -> None:
        self._server, self.name = server, name
        self._questions = RemoteQuestions(lambda: self.schema)

    def sql(self, text: str, *, rows: int | None = None, **how: Any) -> RemoteAnswer:
        """Answer a question in SQL, as `leakcap.Session.sql` does.

        Args:
            text: one SELECT.
            rows: rows of one person that are enough for it.
            **how: `noise=` or `share=`, and `request=`; without one, a key is made, so that a lost connection never
                means that a question is paid for twice.

        Returns:
            The answer; its `frame` has every number with the ends of its interval.
        """
        body, stored = self._server.posted(
            self._path("ask"), {"sql": text, "rows": rows, "request": secrets.token_hex(16), **_checked(how)}
        )
        from leakcap.server.wire import frame_of

        return RemoteAnswer(
            frame=frame_of(body),
            share=body["share"],
            again=stored,
            numbers=tuple(body["numbers"]),
            whole=body["whole"],
        )

    def preview_sql(self, text: str, *, rows: int | None = None, **how: Any) -> Mapping[str, Any]:
        """What a question would cost. Nothing is spent.

        Args:
            text: one SELECT.
            rows: as for `sql`.
            **how: as for `sql`.

        Returns:
            `share`, `noise` and whether it `fits`.
        """
        return self._server.posted(self._path("preview"), {"sql": text, "rows": rows, **_checked(how)})[0]

    def count(
        self, table: str | None = None, *, where: str | None = None, by: str | Sequence[str] = (), **how: Any
    ) -> RemoteAnswer:
        """How many rows there are.

        Args:
            table: which; it can be left out where there is one.
            where: a condition, such as "age > 40".
            by: columns with declared values.
            **how: as for `sql`.

        Returns:
            The answer.
        """
        return self.sql(self._questions.count(table, where=where, by=by), **how)

    def mean(
        self,
        column: str,
        table: str | None = None,
        *,
        where: str | None = None,
        by: str | Sequence[str] = (),
        **how: Any,
    ) -> RemoteAnswer:
        """The mean of a column with a declared range.

        Args:
            column: its name.
            table: as for `count`.
            where: as for `count`.
            by: as for `count`.
            **how: as for `sql`.

        Returns:
            The answer.
        """
        return self.sql(self._questions.mean(column, table, where=where, by=by), **how)

    def sum(
        self,
        column: str,
        table: str | None = None,
        *,
        where: str | None = None,
        by: str | Sequence[str] = (),
        **how: Any,
    ) -> RemoteAnswer:
        """The sum of a column with a declared range.

        Args:
            column: its name.
            table: as for `count`.
            where: as for `count`.
            by: as for `count`.
            **how: as for `sql`.

        Returns:
            The answer.
        """
        return self.sql(self._questions.sum(column, table, where=where, by=by), **how)

    def median(
        self,
        column: str,
        table: str | None = None,
        *,
        where: str | None = None,
        by: str | Sequence[str] = (),
        **how: Any,
    ) -> RemoteAnswer:
        """The median of a column with a declared range.

        Args:
            column: its name.
            table: as for `count`.
            where: as for `count`.
            by: as for `count`.
            **how: as for `sql`.

        Returns:
            The answer.
        """
        return self.quantile(column, 0.5, table, where=where, by=by, **how)

    def quantile(
        self,
        column: str,
        q: float = 0.5,
        table: str | None = None,
        *,
        where: str | None = None,
        by: str | Sequence[str] = (),
        **how: Any,
    ) -> RemoteAnswer:
        """The value below which a part of the rows lies.

        Args:
            column: with a declared range.
            q: the part, between 0 and 1.
            table: as for `count`.
            where: as for `count`.
            by: as for `count`.
            **how: as for `sql`.

        Returns:
            The answer.
        """
        return self.sql(self._questions.quantile(column, q, table, where=where, by=by), **how)

    def histogram(
        self, column: str, table: str | None = None, *, bins: int = 20, where: str | None = None, **how: Any
    ) -> RemoteAnswer:
        """How many rows lie in each bin of a column with a declared range.

        Args:
            column: its name.
            table: as for `count`.
            bins: about how many; their ends are round numbers.
            where: as for `count`.
            **how: as for `sql`.

        Returns:
            The answer: for every bin where it begins, and how many.
        """
        return self.sql(self._questions.histogram(column, table, bins=bins, where=where), **how)

    def preview(self, kind: str, *question: Any, **details: Any) -> Mapping[str, Any]:
        """What a question would cost. Nothing is spent.

        Args:
            kind: of the question: "count", "mean", "sum", "median", "quantile" or "histogram".
            *question: as for the question.
            **details: as for the question.

        Returns:
            As `preview_sql`.
        """
        checks.choice(KINDS, kind=kind)
        how = {name: details.pop(name) for name in HOW if name in details}
        if kind == "median":
            kind, question = "quantile", (question[0], 0.5, *question[1:]) if question else ()
        try:
            text = getattr(self._questions, kind)(*question, **details)
        except TypeError:
            text = ""
        if not text:
            raise InputError(f"a preview takes what session.{kind} takes: see help(session.{kind})")
        return self.preview_sql(text, **how)

    @property
    def schema(self) -> Mapping[str, Any]:
        """Tables and columns, with the ranges and values that were declared."""
        return self._server.got(self._path("schema"))

    @property
    def spent(self) -> Any:
        """How much of the clock is spent, by what was declared."""
        return self._spending("spent")

    @property
    def remaining(self) -> Any:
        """How much of the clock is left, and the success that the cap allows in the end."""
        return self._spending("remaining")

    @property
    def history(self) -> tuple[Any, ...]:
        """All answers so far to those who share the clock."""
        from leakcap.sessions.answers import PastAnswer

        found = self._server.got(self._path("answers"))["answers"]
        names = ("number", "question", "analyst", "share", "at")
        return tuple(PastAnswer(**{name: one[name] for name in names}, numbers=tuple(one["numbers"])) for one in found)

    @property
    def certificate(self) -> Any:
        """What all answers together allow, those that are still to come included."""
        from leakcap.certificates.session import SessionCertificate

        return SessionCertificate.from_json(json.dumps(self._server.got(self._path("certificate"))))

    def _spending(self, which: str) -> Any:
        from leakcap.sessions.answers import Spending

        return Spending(**self._server.got(self._path("budget"))[which])

    def _path(self, what: str) -> str:
        return f"/api/datasets/{quote(self.name, safe='')}/{what}"

    def __repr__(self) -> str:
        return f"RemoteSession({self.name!r}, {self._server.address})"


class _Unmoved(HTTPRedirectHandler):
    """A token is for one server: it is never carried on to another."""

    def redirect_request(self, *_: Any) -> None:
        return None


class _Server:
    """Requests to one server."""

    def __init__(self, address: str, token: str, authority: str | None) -> None:
        self.address, self._token = address.rstrip("/"), token
        parts = urlsplit(self.address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError("the address of a server looks like https://leakcap.example.org")
        if parts.scheme == "http" and parts.hostname not in LOOPBACK:
            raise InputError(
                "a token is sent through https:// alone, except to this machine: use the server's https address"
            )
        from urllib.request import HTTPSHandler

        trusted = ssl.create_default_context(cafile=authority)
        loopback = parts.hostname in LOOPBACK
        self._opener = build_opener(_Unmoved, HTTPSHandler(context=trusted), *([ProxyHandler({})] if loopback else []))

    def got(self, path: str) -> dict[str, Any]:
        return self._answer(Request(self.address + path))[0]

    def posted(self, path: str, body: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
        given = json.dumps({name: value for name, value in body.items() if value is not None}).encode()
        return self._answer(Request(self.address + path, given, {"Content-Type": "application/json"}))

    def _answer(self, request: Request) -> tuple[dict[str, Any], bool]:
        request.add_header("Authorization", f"Bearer {self._token}")
        try:
            with self._opener.open(request, timeout=PATIENCE) as answer:
                return dict(json.load(answer)), answer.headers.get("Leakcap-Stored") == "yes"
        except HTTPError as error:
            status, words = error.code, _words_of(error)
        except (URLError, OSError, ValueError):
            status, words = 0, f"the server {self.address} does not answer: see whether it runs, then ask again"
        raise ERRORS.get(status, ServerError)(words)

    def __repr__(self) -> str:
        return f"_Server({self.address})"


def connect(
    url: str, token: str | None = None, *, dataset: str | None = None, authority: str | None = None
) -> RemoteSession:
    """A session on a server that somebody runs with `leakcap serve`: ask it like a local one.

    Args:
        url: of the server, such as "https://leakcap.example.org".
        token: made on its page of tokens; None takes the variable LEAKCAP_TOKEN.
        dataset: which to ask; None where the token is for a single one.
        authority: a PEM file of whoever signed the server's certificate, where this machine does not know them.

    Returns:
        The session: `session.sql("select ...")`, `.count`, `.mean`, `.histogram`, `.remaining`, `.certificate`.

    Raises:
        InputError: the token allows several data sets, and none is named.
        ServerError: the server does not answer, or does not know the token.
    """
    token = token or os.environ.get("LEAKCAP_TOKEN")
    if not token:
        raise InputError("give token=, or set the variable LEAKCAP_TOKEN: make one on the server's page of tokens")
    server = _Server(url, token, authority)
    names = [one["name"] for one in server.got("/api/datasets")["datasets"]]
    if dataset is None and len(names) != 1:
        raise InputError(f"name the data set: dataset= is one of {', '.join(names) or 'none, this token allows none'}")
    if dataset is not None and dataset not in names:
        raise InputError(f"this token does not allow a data set of that name: it allows {', '.join(names) or 'none'}")
    return RemoteSession(server, dataset or names[0])


def _checked(how: Mapping[str, Any]) -> dict[str, Any]:
    from leakcap.sessions.asked import Asked
    from leakcap.sessions.unasked import checked_how

    return dict(checked_how("sql", Asked.sql, dict(how)))


def _words_of(error: HTTPError) -> str:
    try:
        return str(json.load(error)["error"])
    except (ValueError, KeyError, TypeError):
        return f"the server answered with status {error.code}: ask whoever runs it"
