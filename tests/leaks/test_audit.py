"""An audit tells nothing about the release that was made, changes nothing public, and holds no row of the data."""

from __future__ import annotations

import json
import pickle
import re
import sys
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris

import leakcap as lc
from leakcap import audit, estimators
from leakcap.noise import Seeded
from leakcap.planning.plans import Plan
from tests.leaks.rigged import Rigged, new_token, points_of

IRIS = load_iris().data + np.random.default_rng(0).normal(scale=1e-3, size=(150, 4))  # cells that can be recognised


def audited_after_release(world: int) -> str:
    """The report on a plan whose one release was made from this world."""
    plan = lc.plan(lc.stats.mean, IRIS, cap=lc.membership(0.7), worlds=32, seed=3, draws=1024)
    mechanism: Any = plan.releaser
    plan._token = new_token()
    plan.randomness = Rigged(mechanism.noise, mechanism.step, world, points_of(plan)[1], 0.0)
    plan.release()
    plan.randomness = Seeded(11)  # trials draw their own secrets
    found = json.loads(audit.run(plan, trials=400).to_json())
    del found["seconds"]
    return json.dumps(found)


def test_an_audit_does_not_know_the_secret_of_the_release() -> None:
    assert len({audited_after_release(world) for world in (0, 9, 31)}) == 1


def test_an_audit_that_looked_at_the_released_world_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: the plan remembers its secret, and trials begin with it."""
    release = Plan.release

    def remembering(self: Any) -> Any:
        made = release(self)
        self.secret_ = self.randomness.world
        return made

    monkeypatch.setattr(Plan, "release", remembering)
    exposed = audit.trials.knowledge

    def knowing(plan: Any, **options: Any) -> Any:
        found = exposed(plan, **options)
        return type(found)(**(vars(found) | {"exposed": np.roll(found.exposed, plan.secret_)}))

    monkeypatch.setattr(sys.modules["leakcap.audit.run"], "knowledge", knowing)  # `audit.run` is a function
    assert len({audited_after_release(world) for world in (0, 9, 31)}) == 3


def test_an_estimator_is_published_the_same_after_an_audit() -> None:
    fitted = estimators.Ridge(cap=lc.membership(0.8), worlds=32, random_state=0, options={"draws": 1024})
    fitted.fit(IRIS[:, :3], IRIS[:, 3])
    before = pickle.dumps(fitted), fitted.certificate_.to_json(), repr(fitted)
    audit.run(fitted, trials=400, data=(IRIS[:, :3], IRIS[:, 3]))
    assert (pickle.dumps(fitted), fitted.certificate_.to_json(), repr(fitted)) == before


def test_no_report_holds_a_cell_of_the_data() -> None:
    fitted = estimators.KMeans(3, cap=lc.membership(0.8), worlds=32, random_state=0, options={"draws": 1024}).fit(IRIS)
    report = audit.run(fitted, trials=400, data=(IRIS,))
    cells = {f"{cell:.10f}" for cell in IRIS.ravel()}
    for text in (str(report), report.to_json(), report.to_html()):
        numbers = {f"{float(one):.10f}" for one in re.findall(r"\d+\.\d{10,}", text)}
        assert not numbers & cells
    # The twin: one row in a question would be found.
    assert {f"{float(one):.10f}" for one in re.findall(r"\d+\.\d{10,}", repr(IRIS[0].tolist()))} & cells
