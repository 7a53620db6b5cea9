"""A page as a reader sees it before anything is opened."""

from __future__ import annotations

from html.parser import HTMLParser

__all__ = ["all_words", "visible_words"]

EMPTY = ("meta", "br", "path", "line", "circle", "rect", "link", "img", "hr")


class _Reader(HTMLParser):
    """Gathers texts, apart from styles and titles; of what is folded the line that stands for it."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in EMPTY:
            self.open.append("details, open" if tag == "details" and "open" in dict(attrs) else tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        if self.open and tag not in EMPTY:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        if "style" in self.open or "title" in self.open:
            return
        self.texts.append(data)
        folded = sum(tag == "details" for tag in self.open) - sum(tag == "summary" for tag in self.open)
        if folded <= 0:
            self.seen.append(data)


def visible_words(page: str) -> list[str]:
    """Words and figures that are seen before anything is opened."""
    return _words(_read(page).seen)


def all_words(page: str) -> list[str]:
    """All of them."""
    return _words(_read(page).texts)


def _read(page: str) -> _Reader:
    reader = _Reader()
    reader.feed(page)
    reader.close()
    return reader


def _words(texts: list[str]) -> list[str]:
    return [word for text in texts for word in text.split() if any(letter.isalnum() for letter in word)]
