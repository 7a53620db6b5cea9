"""Pages from templates, and pieces of HTML for drawings. Whatever is put into either is escaped on its way.

Only templates, style sheets and the patterns written out in this package are markup; every other text is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

__all__ = ["Markup", "joined", "markup", "render", "shortened", "style"]

LONGEST_NAME = 160  # characters that are shown


def render(template: str, **facts: object) -> str:
    """A page, or a part of one, from a template of this package. A fact that it asks for and is not given raises."""
    return _environment().get_template(template).render(facts)


def markup(pattern: str, *values: object, **named: object) -> Markup:
    """A piece of HTML: the pattern is markup, and values in its braces become text.

    >>> str(markup('<b title="{}">{:.1f}</b>', 'a "b"', 0.25))
    '<b title="a &#34;b&#34;">0.2</b>'
    """
    return Markup(pattern).format(*values, **named)


def joined(pieces: Iterable[str], between: str = "") -> Markup:
    """Pieces one after the other; those that are no markup become text."""
    return Markup(between).join(pieces)


def shortened(name: str) -> Markup:
    """A name, cut where it would fill the page; the whole of it shows on hovering."""
    if len(name) <= LONGEST_NAME:
        return Markup.escape(name)
    return markup('<span title="{}">{}…</span>', name, name[: LONGEST_NAME - 1])


@cache
def style(*sheets: str) -> Markup:
    """Style sheets of this package, without their comments."""
    return Markup("".join(re.sub(r"/\*.*?\*/\n?", "", _read(sheet), flags=re.DOTALL) for sheet in sheets))


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
    made.globals["style"] = style
    return made


def _read(name: str) -> str:
    return files("leakcap.report").joinpath(name).read_text(encoding="utf-8")
