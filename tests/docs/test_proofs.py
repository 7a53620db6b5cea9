"""Every claim has a page, every page a claim, and every test a page names exists and runs."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import leakcap
from leakcap.ground.proofs import claims

ROOT = Path(__file__).parents[2]
PAGES = {path.stem: path for path in sorted((ROOT / "docs" / "proofs").glob("*.md"))}


def claimed_pages():
    """Pages named by `@proves` anywhere in the package."""
    for module in pkgutil.walk_packages(leakcap.__path__, "leakcap."):
        if not module.name.endswith("__main__"):  # importing it would start the command line
            importlib.import_module(module.name)
    return claims()


@cache
def theorems():
    """Pages named by certificates, of each mode."""
    X = np.random.default_rng(0).standard_normal((12, 2))
    found = set()
    for mode, less in (("exact", {"draws": 256}), ("confidence", {}), ("empirical", {})):
        options = {"cap": leakcap.membership(0.8), "worlds": 64, "mode": mode, "seed": 1, **less}
        plan = leakcap.plan(lambda X: X.mean(axis=0), X, **options)
        found |= set(plan.certificate.theorems)
    return found


def references(text):
    """`(file, test)` for every test that a page names.

    Either `Test: tests/file.py::test_name`, or `Tests:` and names in backticks, with their folder named once on the
    page: a name that no file of the folder has counts as one of the folder itself, and is missed.
    """
    found = re.findall(r"^Test: (tests/\S+\.py)::(\w+)$", text, re.MULTILINE)
    default = re.search(r"The tests named are in\s+`(tests/\S+)`", text)
    for paragraph in re.findall(r"^Tests?: (`.*?)(?:\n\n|\Z)", text, re.MULTILINE | re.DOTALL):
        assert default, "names of tests without a folder"
        found += [(file_of(default[1], name), name) for name in re.findall(r"`(test_\w+)`", paragraph)]
    return found


def file_of(place, name):
    """The one file of a folder that has this test; the place itself where it is a file, or where none or many have."""
    files = [str(path.relative_to(ROOT)) for path in sorted((ROOT / place).glob("test_*.py"))]
    having = [file for file in files if name in functions_of(file)]
    return having[0] if len(having) == 1 else place


@cache
def functions_of(file):
    """Names of the test functions of a file, with the decorators they wear; None where there is no file."""
    path = ROOT / file
    if not path.is_file():
        return None
    return {
        node.name: [ast.unparse(one) for one in node.decorator_list]
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def missing(text):
    """What a page names and nobody runs."""
    lost = []
    for file, name in references(text):
        known = functions_of(file)
        if known is None or name not in known:
            lost.append(f"{file}::{name} does not exist")
        elif any(re.search(r"skip|xfail|slow", worn) for worn in known[name]):
            lost.append(f"{file}::{name} does not run by default")
    return lost


def test_every_claim_in_the_code_has_a_page():
    assert {page: sorted(users) for page, users in claimed_pages().items() if page not in PAGES} == {}


def test_every_theorem_of_a_certificate_has_a_page():
    assert theorems() - set(PAGES) == set()


def test_every_page_is_needed():
    assert set(PAGES) - set(claimed_pages()) - theorems() == set()


@pytest.mark.parametrize("page", PAGES)
def test_every_test_that_a_page_names_exists_and_runs(page):
    text = PAGES[page].read_text()
    assert references(text), f"{page} names no test"
    assert missing(text) == []


@pytest.mark.parametrize("page", PAGES)
def test_every_mention_of_a_test_is_understood(page):
    """No reference slips through because it is written in another form."""
    text = PAGES[page].read_text()
    assert set(re.findall(r"\btest_\w+(?!\.py)\b", text)) - {Path(file).stem for file, _ in references(text)} <= {
        name for _, name in references(text)
    }


@pytest.mark.parametrize(
    "text",
    [
        "Test: tests/docs/test_proofs.py::test_that_was_never_written\n",
        "Test: tests/test_that_is_no_file.py::test_every_page_is_needed\n",
        "The tests named are in\n`tests/docs/test_proofs.py`.\n\nTests: `test_every_page_is_needed`,\n`test_lost`.\n",
        "The tests named are in\n`tests/docs`.\n\nTests: `test_every_page_is_needed`,\n`test_lost`.\n",
        "Test: tests/claims/attacks/test_cap_kept_and_tight.py::test_the_cap_is_kept_and_tight_at_full_size\n",
    ],
)
def test_a_planted_reference_to_nothing_is_caught(text):
    assert len(missing(text)) == 1


def test_a_planted_page_without_a_claim_is_caught(monkeypatch):
    monkeypatch.setitem(PAGES, "wishful-thinking", ROOT / "docs" / "proofs" / "wishful-thinking.md")
    with pytest.raises(AssertionError):
        test_every_page_is_needed()


def test_a_planted_claim_without_a_page_is_caught(monkeypatch):
    monkeypatch.delitem(PAGES, "roc")
    with pytest.raises(AssertionError):
        test_every_claim_in_the_code_has_a_page()
