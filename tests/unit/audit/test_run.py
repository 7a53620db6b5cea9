"""What an audit takes, spends and says."""

from __future__ import annotations

import functools
import json
import pickle
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap import audit, estimators, testing
from leakcap.audit.trials import numbers_in
from leakcap.errors import AlreadyReleased, InputError, LeakcapError
from tests.unit.audit import plans
from tests.unit.audit.plans import IRIS

plan = functools.partial(plans.plan, worlds=16, draws=256)

pytestmark = pytest.mark.filterwarnings("ignore::leakcap.errors.LeakcapWarning")


def test_a_plan_is_spent_by_its_audit_and_a_released_one_can_still_be_audited() -> None:
    first = plan()
    audit.run(first, trials=200, attacks=["law"])
    with pytest.raises(AlreadyReleased):
        first.release()
    second = plan(seed=1)
    second.release()
    assert audit.run(second, trials=200, attacks=["law"]).holds


def test_releases_of_trials_are_those_of_the_release_path(monkeypatch: Any) -> None:
    target = plan(seed=5)
    made = testing.releases(target, 3)
    assert made.seen.shape == (3, 4) and made.inside().shape == (3, 150)
    assert (made.inside() == target.worlds.masks()[made.secret]).all()
    assert (made.inside(np.array([3, 8, 149])) == made.inside()[:, [3, 8, 149]]).all()
    again = plan(seed=5).release()
    assert np.array_equal(made.seen[0], again.outputs)


def test_every_number_of_a_published_object_is_seen() -> None:
    class Thing:
        def __init__(self) -> None:
            self.shown, self._hidden = {"a": [1, (2.0, np.array([[3, 4]]))]}, np.float32(5)
            self.self = self

    assert numbers_in(Thing()).tolist() == [1, 2, 3, 4, 5]
    model = estimators.Ridge(cap=lc.membership(0.9), worlds=16, random_state=0, options={"draws": 256})
    model.fit(IRIS[:, :3], IRIS[:, 3])
    assert set(model.coef_.ravel()) <= set(numbers_in(model.estimator_))


def test_reports_are_told_in_words_and_numbers_and_are_not_pickled() -> None:
    report = audit.run(plan(), trials=400)
    held = json.loads(report.to_json())
    assert held["verdict"] == report.verdict and len(held["findings"]) == len(report.findings)
    assert "never proves" in str(report)
    assert report.worst in report.findings and report.certified == report.worst.certified
    with pytest.raises(LeakcapError, match="custodian"):
        pickle.dumps(report)


def test_what_cannot_be_audited_is_refused() -> None:
    with pytest.raises(InputError, match=r"audit\.model"):
        audit.run(object())
    target = plan()  # refused each time: nothing of it is spent
    with pytest.raises(InputError, match="attacks"):
        audit.run(target, attacks=["magic"])
    with pytest.raises(InputError, match="trials"):
        audit.run(target, trials=10)
    with pytest.raises(InputError, match="67,108,864 at most"):
        testing.releases(target, 10**9)
    target.release()
