"""Modes, caps and commands that the docs list are those that the code has."""

from __future__ import annotations

import inspect
import re

import leakcap as lc
from leakcap import modes
from leakcap.caps import Cap
from leakcap.cli import app
from leakcap.sql import compile as sql_compile
from leakcap.sql import domains, evaluate, expressions, joins, reading, relations, worker
from tests.docs.pages import ROOT

DOCS = ROOT / "docs"
CAPS = {
    name
    for name, value in inspect.getmembers(lc.caps, inspect.isfunction)
    if name in lc.__all__ and issubclass(inspect.signature(value, eval_str=True).return_annotation, Cap)
}
COMMANDS = {one.name for one in (*app.registered_commands, *app.registered_groups)}
MODES = set(modes.MODES)


def section(page, heading):
    """The text below a heading, up to the next one."""
    found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#+ |\Z)", page.read_text(), re.MULTILINE | re.DOTALL)
    assert found, f"{page.name} has no heading {heading!r}"
    return found[1]


def first_cells(text):
    """Words in backquotes in the first column of a table."""
    return set(re.findall(r"^\| `(\w+)`", text, re.MULTILINE))


def test_the_code_has_what_everybody_knows():
    assert {"membership", "any_inference", "task"} < CAPS
    assert {"exact", "confidence"} < MODES
    assert all((ROOT / f"src/leakcap/modes/{mode}.py").exists() for mode in MODES | {"bits"})
    assert {"release", "demo"} < COMMANDS


def test_the_first_page_lists_the_modes():
    assert first_cells(section(DOCS / "index.md", "Modes")) == MODES


def test_the_glossary_names_the_modes():
    assert set(re.findall(r"`(\w+)` \(", section(DOCS / "glossary.md", "mode"))) == MODES


def test_readme_and_first_page_list_the_caps():
    readme = re.search(r"Caps come in many kinds:(.*?);", (ROOT / "README.md").read_text(), re.DOTALL)
    assert set(re.findall(r"`(\w+)`", readme[1])) == CAPS
    first = re.search(r"Caps:(.*?);", (DOCS / "index.md").read_text(), re.DOTALL)
    assert set(re.findall(r"`lc\.(\w+)`", first[1])) == CAPS


def test_the_guide_to_caps_speaks_of_every_cap():
    page = (DOCS / "guides" / "choosing-a-cap.md").read_text()
    assert {name for name in CAPS if f"lc.{name}(" not in page} == set()


def test_the_reference_and_the_first_page_list_the_commands():
    page = (DOCS / "reference" / "command-line.md").read_text()
    assert set(re.findall(r"^## leakcap (\w+)", page, re.MULTILINE)) == COMMANDS
    assert first_cells(section(DOCS / "index.md", "Commands")) == COMMANDS


def test_no_page_calls_a_command_that_does_not_exist():
    """In code and in backquotes."""
    called = set()
    for page in [ROOT / "README.md", *DOCS.rglob("*.md")]:
        called |= set(re.findall(r"(?:^\$ |`)leakcap ([a-z]+)", page.read_text(), re.MULTILINE))
    assert called <= COMMANDS


def test_a_planted_list_that_lacks_a_mode_is_seen(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("## Modes\n\n| mode |\n| --- |\n| `exact` |\n\n## More\n\n| `empirical` |\n")
    assert first_cells(section(page, "Modes")) == {"exact"}


def test_the_guide_to_sql_lists_the_limits():
    limits = worker.EngineLimits()
    listed = [
        f"{sql_compile.LONGEST:,} and {reading.LONGEST:,}",
        f"{joins.MOST_TABLES} and {sql_compile.MOST_QUERIES}",
        f"{expressions.LARGEST:,} and {relations.WRITTEN:,}",
        f"{domains.LARGE:,} and {evaluate.MOST_NUMBERS:,}",
        f"{limits.seconds:g}",
        limits.memory,
        f"{worker.ROWS:,}",
        f"{expressions.LONGEST_TEXT:,}, and the rest is cut off",
    ]
    cells = re.findall(r"^\|.*\| ([^|]+) \|$", section(DOCS / "guides" / "ask-in-sql.md", "Limits"), re.MULTILINE)
    assert cells[1:] == listed and worker.ROOM == 2**30 and limits.threads == 2
