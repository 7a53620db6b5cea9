"""`leakcap.audit.run` and `.model` are functions, though files of the same names hold them, in whatever order."""

from __future__ import annotations

import functools

import pytest

from tests.unit.fresh import ran

FUNCTIONS = (
    "attribute",
    "check_mechanism",
    "encoded",
    "model",
    "reconstruction",
    "releases",
    "replay",
    "run",
    "universe",
)
ORDERS = {
    "the namespace": "import leakcap.audit",
    "a file first": "import leakcap.audit.run",
    "a file later": "import leakcap.audit; import leakcap.audit.model; import leakcap.audit.run",
    "by name": "from importlib import import_module; import_module('leakcap.audit.model')",
    "from a room below": "import leakcap.audit.statistics; from leakcap.audit.run import MIN_TRIALS",
    "from a page": "import leakcap.testing, leakcap.report; import leakcap.audit.second_game.replay",
}


ASKED = f"""
import inspect, leakcap
print([name for name in {FUNCTIONS} if not inspect.isfunction(getattr(leakcap.audit, name))])
"""
HIDDEN = "import sys, leakcap.audit; leakcap.audit.run = sys.modules['leakcap.audit.run']"


LIBRARIES = ("pandas", "scipy.stats", *(f"sklearn.{one}" for one in ("cluster", "ensemble", "model_selection")))


@functools.cache
def hidden_after() -> dict[str, str]:
    """The names that are no functions in a fresh process for each order."""
    asked = {name: f"{order}\n{ASKED}" for name, order in {**ORDERS, "hidden": HIDDEN}.items()}
    return ran(asked, libraries=LIBRARIES)


@pytest.mark.parametrize("order", ORDERS)
def test_public_names_are_functions_after_any_import(order: str) -> None:
    assert hidden_after()[order] == "[]"


def test_a_file_that_hides_its_function_is_seen() -> None:
    """The twin: the name bound to the file."""
    assert hidden_after()["hidden"] == "['run']"
