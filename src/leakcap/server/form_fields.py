"""The fields of forms: few, small, sent from a page of this server, and read as what they should be."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import Depends, Request

from leakcap.server.callers import FORM_WORD, Visitor, refuse_foreign, visitor
from leakcap.server.refusals import Refusal

__all__ = ["Browser", "OwnForm", "form_of", "number_in", "share_in"]

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


OwnForm = Annotated[Any, Depends(own_form)]


def number_in(text: str, what: str) -> float:
    """A number above 0."""
    try:
        found = float(text.replace("%", "").strip())
    except ValueError:
        found = math.nan
    if not 0 < found < 1e15:
        raise Refusal(400, f"Write a number above 0 for {what}.")
    return found


def share_in(text: str, what: str) -> float | None:
    """A share of a clock, written in per cent; None where nothing is written."""
    if not text.strip():
        return None
    found = number_in(text, what) / 100
    if found > 1:
        raise Refusal(400, f"Write at most 100 % for {what}.")
    return found
