"""Words of the glossary lead there from every page of the docs, at their first use and nowhere else."""

from __future__ import annotations

import re
from types import SimpleNamespace

import markdown
import pytest

from tests.docs.made import made_by
from tests.docs.pages import ROOT

DOCS = ROOT / "docs"
GLOSSARY = (DOCS / "glossary.md").read_text(encoding="utf-8")
LINKS = made_by("glossary_links")
ANCHORS = LINKS.words(GLOSSARY)
PAGES = sorted(page for page in DOCS.rglob("*.md") if page.name not in ("glossary.md", "changelog.md"))
TERMS = {term for heading in re.findall(r"^#### (.+)$", GLOSSARY, re.MULTILINE) for term in heading.split(", ")}


def rendered(text: str) -> str:
    return markdown.markdown(text, extensions=["sane_lists", "tables", "toc", "pymdownx.superfences"])


def links(page: str) -> list[tuple[str, str]]:
    return re.findall(r'<a class="glossary" href="glossary\.html#([^"]+)">([^<]+)</a>', page)


def without(page: str) -> str:
    return re.sub(r'<a class="glossary"[^>]*>([^<]+)</a>', r"\1", page)


def test_links_lead_to_headings_that_are_there() -> None:
    assert set(ANCHORS.values()) <= set(re.findall(r'<h4 id="([^"]+)"', rendered(GLOSSARY)))
    assert set(LINKS.FORMS) <= TERMS, "a form of a word that the glossary does not have"
    assert len(set(ANCHORS.values())) > 40


def test_the_first_use_is_linked_and_the_longest_word_wins() -> None:
    page = "<p>Under a pool cap the pool, and\nwhoever takes\npart. POOL caps. Worlds; a world.</p>"
    made = LINKS.linked(page, ANCHORS, "glossary.html")
    assert links(made) == [
        ("pool-cap", "pool cap"),
        ("pool", "pool"),
        ("membership-to-take-part", "takes\npart"),
        ("world", "Worlds"),
    ]
    assert without(made) == page


@pytest.mark.parametrize(
    "page",
    [
        "<h2>The pool</h2>",
        "<p><code>pool</code></p><pre><span>pool</span></pre>",
        '<p><a href="x">a <em>pool</em></a></p>',
        "<p>pooling, tests/pool/test.py, pool-party, carpool, pool.py</p>",
        '<p title="pool">&lt;carpool&gt; &#112;</p><!-- pool --><img alt="pool"/><br>',
        '<p>The <a href="glossary.html#pool">heap</a> is the pool.</p>',
        "<p>by design, in a mode, half a second, a plan, it draws, public</p>",
    ],
)
def test_headings_links_code_and_everyday_words_stay_as_they_are(page: str) -> None:
    assert LINKS.linked(page, ANCHORS, "glossary.html") == page


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(DOCS).as_posix())
def test_a_page_of_the_docs_has_every_word_linked_once_and_is_otherwise_as_it_was(path) -> None:
    page = rendered(path.read_text(encoding="utf-8"))
    made = LINKS.linked(page, ANCHORS, "glossary.html")
    found = [anchor for anchor, _ in links(made)]
    assert len(found) == len(set(found))
    assert without(made) == page
    if path.parent.name in ("guides", "proofs"):
        assert found, "no word of the glossary is used"


def test_mkdocs_runs_the_hook_on_all_pages_but_the_glossary() -> None:
    site = (ROOT / "mkdocs.yml").read_text()
    assert "\nhooks:\n  - docs/glossary_links.py\n" in site and "\nextra_css:\n  - glossary.css\n" in site
    assert "a.glossary" in (DOCS / "glossary.css").read_text()
    target = SimpleNamespace(url_relative_to=lambda other: f"../glossary.html?{other.src_uri}")
    files = SimpleNamespace(get_file_from_path={"glossary.md": target}.get)
    given = {"config": {"docs_dir": str(DOCS)}, "files": files}

    def made(name: str) -> str:
        page = SimpleNamespace(file=SimpleNamespace(src_uri=name))
        return LINKS.on_page_content("<p>The pool.</p>", page=page, **given)

    assert 'href="../glossary.html?guides/x.md#pool">pool</a>' in made("guides/x.md")
    assert made("glossary.md") == "<p>The pool.</p>"
