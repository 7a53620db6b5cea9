"""Pages from templates: the server's own, and the parts of report pages that they take in."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined

from leakcap.report.numbers import neat
from leakcap.server.assets import address_of
from leakcap.version import __version__

__all__ = ["page", "when"]


def page(template: str, **facts: object) -> str:
    """A page from a template. Whatever is put into it is escaped on its way."""
    return _environment().get_template(template).render({"visitor": None, "notice": "", **facts})


def when(at: float) -> str:
    """A time in UTC, to the minute."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FunctionLoader(_read),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters["plain"] = _plain
    made.globals |= {"asset": address_of, "version": __version__}
    return made


def _plain(value: object) -> str:
    return neat(float(value), 6) if isinstance(value, (int, float)) else str(value)


def _read(name: str) -> str:
    own = files("leakcap.server").joinpath("templates", name)
    found = own if own.is_file() else files("leakcap.report").joinpath(name)
    return found.read_text(encoding="utf-8")
