"""Who asks: a browser by its cookie, or a program by its token; and what each of them may."""

from __future__ import annotations

import hmac
from dataclasses import dataclass

from fastapi import Request
from fastapi.concurrency import run_in_threadpool

from leakcap.server.accounts import ANALYST, CUSTODIAN, ServerAccount
from leakcap.server.refusals import NOT_THERE, Refusal
from leakcap.server.state import ServerState
from leakcap.server.tour import ENDED, Tour

__all__ = [
    "COOKIE",
    "FORM_WORD",
    "Visitor",
    "cookie_name",
    "known_program",
    "of_state",
    "program",
    "refuse_foreign",
    "visitor",
]

COOKIE, SECURE_COOKIE = "leakcap", "__Host-leakcap"
FORM_WORD = "form_word"
SIGN_IN = "Sign in first."
NO_TOKEN = (
    "Send a token that has not ended, as 'Authorization: Bearer leakcap_...': make one on the page of your tokens."
)
FOREIGN = (
    "This form was not sent from a page of this server, or its page is too old: go back, reload it, and send it again."
)
NOT_YOURS = "This is for the other role: sign in with another account."
STORED_ONLY = "This token gets stored answers alone: take another token."


@dataclass(frozen=True)
class Visitor:
    """Somebody known, and what they may."""

    account: ServerAccount
    form_word: str = ""  # of a browser
    datasets: frozenset[str] | None = None  # of a token that is for some alone
    stored_only: bool = False
    tour: Tour | None = None  # of a browser, in the demo

    @property
    def name(self) -> str:
        return self.account.name

    @property
    def is_custodian(self) -> bool:
        return self.account.role == CUSTODIAN

    def may_ask(self) -> frozenset[str]:
        """The data sets of which questions may be asked."""
        own = self.account.datasets if self.account.role == ANALYST else frozenset()
        return own if self.datasets is None else own & self.datasets

    def analyst_of(self, dataset: str) -> str:
        """The name in which a question about a data set is asked. Unknown ones are refused like closed ones."""
        if self.is_custodian:
            raise Refusal(403, NOT_YOURS)
        if dataset not in self.may_ask():
            raise Refusal(404, NOT_THERE)
        return self.name

    def custodian(self) -> str:
        """The name of a custodian; anybody else is refused."""
        if not self.is_custodian or self.stored_only or self.datasets is not None:
            raise Refusal(403, NOT_YOURS)
        return self.name

    def paying(self) -> None:
        """Refuse tokens that are for stored answers alone."""
        if self.stored_only:
            raise Refusal(403, STORED_ONLY)


def of_state(request: Request) -> ServerState:
    """What the server holds."""
    found: ServerState = request.app.state.leakcap
    return found


def cookie_name(state: ServerState) -> str:
    return SECURE_COOKIE if state.settings.encrypted else COOKIE


async def program(request: Request) -> Visitor:
    """A program by its token. Cookies count for nothing here, so that no other site can ask in a browser's name.

    Another thread is asked only where the answer may be long in coming: it takes longer than a look into a file.
    """
    state, authorization = of_state(request), request.headers.get("authorization", "")
    if state.database.at_hand:
        return known_program(state, authorization, address(request))
    return await run_in_threadpool(known_program, state, authorization, address(request))


def known_program(state: ServerState, authorization: str, place: str) -> Visitor:
    """A program by what it sends as its authorization, from a place whose strangers are counted together."""
    scheme, _, text = authorization.partition(" ")
    token = state.tokens.known(text.strip()) if scheme.lower() == "bearer" else None
    account = state.accounts.named(token.account) if token else None
    if token is None or account is None or account.closed:
        state.by_address.take(place)
        raise Refusal(401, NO_TOKEN)
    state.by_account.take(account.name)
    return Visitor(account, datasets=token.datasets, stored_only=token.stored_only)


def visitor(request: Request) -> Visitor:
    """A browser by its cookie."""
    state = of_state(request)
    signed_in = state.signing_in.known(request.cookies.get(cookie_name(state), ""))
    account = state.accounts.named(signed_in.account) if signed_in else None
    if signed_in is None or account is None or account.closed:
        state.by_address.take(address(request))
        raise Refusal(401, SIGN_IN)
    state.by_account.take(account.name)
    return Visitor(
        account, form_word=signed_in.form_word, tour=_tour(request, account) if state.settings.demo else None
    )


def _tour(request: Request, account: ServerAccount) -> Tour:
    return Tour(account.role == CUSTODIAN, request.url.path, request.method == "POST", ENDED in request.cookies)


def address(request: Request) -> str:
    return request.client.host if request.client else "unknown"


def refuse_foreign(request: Request, expected: str, given: object) -> None:
    """Forms count only if they come from a page of this server (CSRF)."""
    site = request.headers.get("sec-fetch-site", "same-origin")
    same = isinstance(given, str) and hmac.compare_digest(given.encode(), expected.encode())
    if not same or site not in ("same-origin", "none"):
        raise Refusal(403, FOREIGN)
