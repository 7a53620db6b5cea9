"""Every error becomes a status and a sentence; what a defect says of itself goes nowhere, since it may quote data."""

from __future__ import annotations

import logging
import math
from collections.abc import MutableMapping
from typing import Any
from urllib.parse import quote

from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from leakcap.server.headers import TOO_LARGE
from leakcap.server.refusals import NOT_THERE, Refusal, as_refusal, defect_in_words
from leakcap.server.show import page

__all__ = ["Refusing", "answer_refused"]

LOG = logging.getLogger("leakcap.server")
NOT_DESCRIBED = "The request is not as described in /api/openapi.json: look at {}."
BROKEN = "The request cannot be read: send it as described in /api/openapi.json."
OTHER_METHOD = "This address is asked in another way: see /api/openapi.json."
MOST_FIELDS = 5


class Refusing:
    """Around all routes: nothing but refusals gets out."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        begun = False

        async def sending(message: Any) -> None:
            nonlocal begun
            begun = True
            await send(message)

        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            if scope.get("leakcap too large"):
                raise Refusal(413, TOO_LARGE)
            await self.app(scope, receive, sending)
            return
        except Exception as error:
            found = as_refusal(error)
            if found.status >= 500:
                LOG.error("a request failed: %s", defect_in_words(error))
        if not begun:
            await _response(Request(scope), found)(scope, receive, send)


def answer_refused(request: Request, error: Exception) -> Response:
    """What the framework itself refuses, in our words."""
    found = _of_framework(error)
    made = _response(request, found)
    if found.status == 405:
        made.headers["Allow"] = ", ".join(sorted(_methods(request)))
    return made


def _methods(request: Request) -> set[str]:
    """How an address can be asked, by all routes of it: the framework names those of the first one alone."""
    path, routes = request.url.path, request.app.routes
    return {way for one in routes if isinstance(one, Route) and one.path_regex.match(path) for way in one.methods or ()}


def _of_framework(error: Exception) -> Refusal:
    if isinstance(error, RequestValidationError):
        return Refusal(422, NOT_DESCRIBED.format(_fields(error)))
    if isinstance(error.__cause__, Refusal):  # raised while the body was read
        return error.__cause__
    if isinstance(error, HTTPException) and error.status_code == 404:
        return Refusal(404, NOT_THERE)
    if isinstance(error, HTTPException) and error.status_code == 405:
        return Refusal(405, OTHER_METHOD)
    return Refusal(422, BROKEN)


def _fields(error: RequestValidationError) -> str:
    """Which parts are wrong, by our own names: what was sent is not repeated."""
    named = {
        str(one["loc"][1])
        for one in error.errors()
        if len(one["loc"]) > 1 and one["type"] not in ("extra_forbidden", "json_invalid")
    }
    return ", ".join(sorted(named)[:MOST_FIELDS]) or "its form and the names of its parts"


def _response(request: Request, found: Refusal) -> Response:
    headers = {} if found.wait is None else {"Retry-After": str(math.ceil(found.wait))}
    if request.url.path.startswith("/api/"):
        if found.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        return JSONResponse({"error": found.words}, found.status, headers)
    if found.status == 401:
        back = quote(request.url.path) if request.method == "GET" else "/"
        return RedirectResponse(f"/login?then={back}", 303)
    return HTMLResponse(page("refused.html", title="Not answered", words=found.words), found.status, headers)
