"""Style sheets and scripts: served from here, known by their contents, so that browsers may keep them."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files

from fastapi import APIRouter, Response

from leakcap.report.html import style
from leakcap.server.refusals import NOT_THERE, Refusal

__all__ = ["address_of", "assets"]

assets = APIRouter(include_in_schema=False)
KINDS = {
    "pages.css": "text/css; charset=utf-8",
    "console.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
OF_REPORTS = "page.css", "words.css", "kept.css", "rows.css", "ledger/ledger.css"
KEPT = {"Cache-Control": "public, max-age=31536000, immutable"}


@assets.get("/static/{print}/{name}")
def static(print: str, name: str) -> Response:
    """A file by its name and the print of its contents."""
    if name not in KINDS or print != _print_of(name):
        raise Refusal(404, NOT_THERE)
    return Response(_content(name), media_type=KINDS[name], headers=KEPT)


def address_of(name: str) -> str:
    """Where a page finds a file."""
    return f"/static/{_print_of(name)}/{name}"


@cache
def _content(name: str) -> bytes:
    own = files("leakcap.server").joinpath("static", name).read_bytes()
    return str(style(*OF_REPORTS)).encode() + own if name == "pages.css" else own


@cache
def _print_of(name: str) -> str:
    return hashlib.sha256(_content(name)).hexdigest()[:16]
