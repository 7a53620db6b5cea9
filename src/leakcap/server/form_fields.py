"""The fields of forms: few, small, and sent from a page of this server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import Depends, Request

from leakcap.server.callers import FORM_WORD, Visitor, refuse_foreign, visitor

__all__ = ["Browser", "OwnForm", "form_of", "own_address"]

Browser = Annotated[Visitor, Depends(visitor)]
MOST_FIELDS = 400
CUSTODY = "/custody"


async def form_of(request: Request) -> AsyncIterator[Any]:
    """The fields of a form, without files."""
    async with request.form(max_files=0, max_fields=MOST_FIELDS) as form:
        yield form


async def own_form(request: Request, who: Browser) -> AsyncIterator[Any]:
    """The fields, and one file at most, of a form that was sent from a page of this server."""
    if request.url.path.startswith(CUSTODY):
        who.custodian()  # before anything that may be long is read
    async with request.form(max_files=1, max_fields=MOST_FIELDS) as form:
        refuse_foreign(request, who.form_word, form.get(FORM_WORD))
        yield form


def own_address(then: str) -> str:
    """An address of this server's, and nothing that leads elsewhere."""
    plain = then.isprintable() and "\\" not in then
    return then if plain and then.startswith("/") and not then.startswith("//") else "/"


OwnForm = Annotated[Any, Depends(own_form)]
