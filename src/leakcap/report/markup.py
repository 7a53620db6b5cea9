"""Small pieces of HTML. Whatever comes from outside passes through `text` and cannot become markup."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

__all__ = ["bullets", "paragraph", "section", "shortened", "table", "text"]

LONGEST = 160  # characters of a name that are shown


def text(words: object) -> str:
    """Words as HTML text, also safe inside quoted attributes."""
    return html.escape(str(words), quote=True)


def shortened(name: str) -> str:
    """A name, cut where it would fill the page; the whole of it shows on hovering."""
    if len(name) <= LONGEST:
        return text(name)
    return f'<span title="{text(name)}">{text(name[: LONGEST - 1])}…</span>'


def paragraph(words: str, kind: str = "") -> str:
    if not words:
        return ""
    return f'<p class="{kind}">{text(words)}</p>' if kind else f"<p>{text(words)}</p>"


def bullets(items: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{text(item)}</li>" for item in items) + "</ul>"


def section(title: str, *parts: str, anchor: str = "") -> str:
    start = f'<section id="{anchor}">' if anchor else "<section>"
    return "\n".join((start, f"<h2>{text(title)}</h2>", *parts, "</section>"))


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "") -> str:
    """A table of cells that are HTML already; the first column names the rows, and narrow screens stack the others."""
    top = "".join(f'<th scope="col">{head}</th>' for head in heads)
    body = []
    for first, *rest in rows:
        cells = "".join(f'<td data-head="{head}">{cell}</td>' for head, cell in zip(heads[1:], rest, strict=True))
        body.append(f'<tr><th scope="row">{first}</th>{cells}</tr>')
    return f'<table class="{kind}"><thead><tr>{top}</tr></thead><tbody>{"".join(body)}</tbody></table>'
