"""Every promise names a proof or the code that keeps it, and tests that run; every proof page is some promise's."""

from __future__ import annotations

import pytest

from tests.docs.made import made_by
from tests.docs.pages import ROOT
from tests.docs.test_proofs import PAGES, missing

guarantees = made_by("make_guarantees")
PROMISES = guarantees.promises()


def lost(tests):
    """Named tests that nobody runs."""
    gone = [name for name in tests if name not in guarantees.homes()]
    found = [(file, name) for name in tests if name not in gone for file in guarantees.homes()[name]]
    return gone + missing("".join(f"Test: {file}::{name}\n" for file, name in found))


def test_the_page_is_made_from_the_list():
    assert guarantees.PAGE.read_text() == guarantees.page(), "run `python docs/make_guarantees.py`"


def test_every_proof_page_is_named_by_a_promise():
    assert {page for promise in PROMISES for page in promise.get("proof", [])} == set(PAGES)


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise["tests"][0])
def test_the_promise_is_kept_somewhere_and_its_tests_run(promise):
    assert set(promise) <= {"says", "proof", "code", "tests"}
    assert promise["says"].endswith(".")
    assert promise.get("proof") or promise.get("code")
    package = ROOT / "src" / "leakcap"
    rooms = promise.get("code", [])
    assert [room for room in rooms if not ((package / room).is_dir() or (package / f"{room}.py").is_file())] == []
    assert promise["tests"]
    assert lost(promise["tests"]) == []


@pytest.mark.parametrize("planted", ["test_that_was_never_written", "test_the_cap_is_kept_and_tight_at_full_size"])
def test_a_planted_test_that_nobody_runs_is_caught(planted):
    assert lost([planted])
