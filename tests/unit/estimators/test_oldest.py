"""The oldest scikit-learn that is supported: `make test-oldest` runs this file, among others, with it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import sklearn

from tests.claims.estimators.test_conformance import CASES, outcomes

ROOT = Path(__file__).parents[3]
OLD = tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 6)
# Checks that had another name then.
BEFORE = {"check_sample_weight_equivalence_on_dense_data": "check_sample_weights_invariance"}


@pytest.mark.skipif(not OLD, reason=f"scikit-learn {sklearn.__version__} has other checks: see test_conformance.py")
@pytest.mark.parametrize("name", ["StandardScaler", "Ridge", "KMeans"])
def test_the_checks_of_an_old_scikit_learn_pass(name: str) -> None:
    estimator, excused = CASES[name]
    failed = outcomes(estimator)
    assert set(failed) == {BEFORE.get(check, check) for check in excused}, failed


def test_the_oldest_versions_are_those_that_the_project_allows() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    least = dict(re.fullmatch(r"([\w-]+)(?:\[.*\])?>=([\d.]+).*", one).groups() for one in wanted if ">=" in one)
    pinned = dict(re.findall(r"^([\w-]+)==([\d.]+)$", (ROOT / "tests" / "oldest.txt").read_text(), re.MULTILINE))
    assert {"numpy", "scikit-learn", "scipy"} <= set(pinned)
    assert [name for name, version in pinned.items() if not f"{version}.".startswith(f"{least[name]}.")] == []
