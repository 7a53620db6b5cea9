"""The reference has a page for every public namespace, with every public name, and none of them without a text."""

from __future__ import annotations

import dataclasses
import inspect
import re
from types import ModuleType

import pytest

import leakcap
from tests.docs.made import made_by
from tests.docs.pages import ROOT

REFERENCE = ROOT / "docs" / "reference"
NAMESPACES = made_by("make_reference").NAMESPACES
PUBLIC = [(leakcap, name) for name in leakcap.__all__ if name != "__version__"] + [
    (getattr(leakcap, space), name) for space in NAMESPACES for name in getattr(leakcap, space).__all__
]


def shown(page):
    return set(re.findall(r"^::: (\S+)$", (REFERENCE / f"{page}.md").read_text(), re.MULTILINE))


@pytest.mark.parametrize("space", NAMESPACES)
def test_the_page_of_a_namespace_shows_its_names(space):
    names = {f"leakcap.{space}.{name}" for name in getattr(leakcap, space).__all__}
    assert names <= shown(space)


def test_every_name_of_the_package_is_on_some_page():
    listed = {name.rpartition(".")[2] for page in ("leakcap", *NAMESPACES) for name in shown(page)}
    modules = {name for name in leakcap.__all__ if isinstance(getattr(leakcap, name), ModuleType)}
    assert set(leakcap.__all__) - {"__version__"} - modules - listed == set()
    assert modules <= set(NAMESPACES)


def test_the_script_that_adds_names_has_nothing_to_add():
    assert made_by("make_reference").missing() == {}, "run `python docs/make_reference.py`"


def test_every_argument_of_a_plan_is_in_one_group_and_rare_ones_are_marked():
    made = made_by("make_reference")
    groups = [set(group) for group in made.ARGUMENTS.values()]
    assert set().union(*groups) == set(inspect.signature(leakcap.plan).parameters)
    assert sum(map(len, groups)) == len(set().union(*groups)), "an argument is in two groups"
    page = (REFERENCE / "leakcap.md").read_text()
    assert page == made.with_arguments(page), "run `python docs/make_reference.py`"
    marked = set(re.findall(r"^\| `(\w+)` \|.*\| ✓ \|$", page, re.MULTILINE))
    assert marked == {field.name for field in dataclasses.fields(leakcap.Settings)}
    assert [heading for heading in made.ARGUMENTS if f"\n### {heading}\n" not in page] == []


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text()
    assert [page.name for page in REFERENCE.glob("*.md") if f"reference/{page.name}\n" not in navigation] == []


@pytest.mark.parametrize(("home", "name"), PUBLIC, ids=lambda one: getattr(one, "__name__", one))
def test_no_public_name_shows_an_empty_text(home, name):
    value = getattr(home, name)
    if inspect.isclass(value) or callable(value) or isinstance(value, ModuleType):
        assert (inspect.getdoc(value) or "").strip()


def test_the_page_of_the_command_line_is_made_from_the_commands():
    made = made_by("make_command_line")
    assert made.PAGE.read_text() == made.page(), "run `python docs/make_command_line.py`"
