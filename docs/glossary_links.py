"""The first use of a glossary's word on every page of the docs leads to the glossary: a hook of mkdocs.

Pages are written without these links. Words are the headings of `glossary.md`; those that everyday English uses as well
are linked in phrases that can mean nothing else, or not at all.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from markdown.extensions.toc import slugify

GLOSSARY = "glossary.md"
# Headings by other forms than their own and its plural.
FORMS = {
    "bounds": ("declared bounds",),
    "blocks": ("in blocks", "over blocks"),
    "design": (),
    "mode": (),
    "half": (),
    "rate": (),
    "public": (),
    "answer": (),
    "output": (),
    "account": (),
    "confidence": (),
    "floor": (),
    "seal": ("sealed",),
    "finding": (),
    "twin": (),
    "token": (),
    "label": (),
    "additive": (),
    "draws": ("certifying draws",),
    "gamma": (),
    "plan": (),
    "secret": ("the secret", "secret world", "secret half"),
    "success": (),
    "to take part": ("take part", "takes part", "took part", "taking part"),
    "to retire": ("retire", "retires", "retired"),
    "to privatise": ("privatise", "privatised"),
}
SKIPPED = {"a", "autoref", "code", "pre", "h1", "h2", "h3", "h4", "h5", "h6", "script", "style", "svg", "button"}


def words(glossary: str) -> dict[str, str]:
    """By the forms in which they are used, in small letters, the anchors of the glossary's words."""
    found = {}
    for heading in re.findall(r"^#### (.+)$", glossary, re.MULTILINE):
        for term in heading.split(", "):
            for form in FORMS.get(term, (term, term if term.endswith("s") else f"{term}s")):
                found[form.lower()] = slugify(heading, "-")
    return found


def linked(html: str, anchors: dict[str, str], glossary: str) -> str:
    """A page whose first use of each word, outside headings, links and code, leads to the glossary's page."""
    reader = _Linking(anchors, glossary, done=set(re.findall(rf'href="{re.escape(glossary)}#([^"]+)"', html)))
    reader.feed(html)
    reader.close()
    return "".join(reader.pieces)


def on_page_content(html: str, *, page: Any, config: Any, files: Any) -> str:
    """Called by mkdocs with the body of every page."""
    if page.file.src_uri == GLOSSARY:
        return html
    anchors = words((Path(config["docs_dir"]) / GLOSSARY).read_text(encoding="utf-8"))
    return linked(html, anchors, files.get_file_from_path(GLOSSARY).url_relative_to(page.file))


class _Linking(HTMLParser):
    """Writes a page again as it was, with links in its texts."""

    def __init__(self, anchors: dict[str, str], glossary: str, done: set[str]) -> None:
        super().__init__(convert_charrefs=False)
        self.anchors, self.glossary, self.done = anchors, glossary, done
        longest_first = sorted(anchors, key=len, reverse=True)
        forms = "|".join(re.escape(form).replace(r"\ ", r"\s+") for form in longest_first)
        self.pattern = re.compile(rf"(?<![\w/-])(?:{forms})(?![\w/-]|\.\w)", re.IGNORECASE)
        self.pieces: list[str] = []
        self.within = 0  # tags whose text is left alone

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.within += tag in SKIPPED
        self.pieces.append(self.get_starttag_text() or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.pieces.append(self.get_starttag_text() or "")

    def handle_endtag(self, tag: str) -> None:
        self.within -= tag in SKIPPED
        self.pieces.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        self.pieces.append(data if self.within else self.pattern.sub(self._link, data))

    def _link(self, match: re.Match[str]) -> str:
        anchor = self.anchors[" ".join(match[0].lower().split())]
        if anchor in self.done:
            return match[0]
        self.done.add(anchor)
        return f'<a class="glossary" href="{self.glossary}#{anchor}">{match[0]}</a>'

    def handle_entityref(self, name: str) -> None:
        self.pieces.append(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self.pieces.append(f"&#{name};")

    def handle_comment(self, data: str) -> None:
        self.pieces.append(f"<!--{data}-->")

    def handle_decl(self, decl: str) -> None:
        self.pieces.append(f"<!{decl}>")
