"""Fitted estimators, their files and their pictures: the released point held fixed, no byte tells the secret world.

`fit` runs as it is. Only the source of randomness is replaced, by one that picks the world we choose and the noise that
leads from there to one agreed point. Each check has a planted twin.
"""

from __future__ import annotations

import copy
import functools
import io
import pickle
import re
import warnings
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge as PlainRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler as PlainScaler

import leakcap as lc
from leakcap.estimators.base import PrivateEstimator
from leakcap.planning.plans import Plan
from tests.leaks.rigged import JITTERS, Rigged, custodian_objects_in, new_token, points_of
from tests.unit.estimators.making import IRIS, SMALL, every

NAMES = tuple(every())
RELEASE = Plan.release


def rig(monkeypatch: pytest.MonkeyPatch, world: int, jitter: float) -> None:
    def release(plan: Plan) -> Any:
        mechanism: Any = plan.releaser
        plan._token = new_token()
        plan.randomness = Rigged(mechanism.noise, mechanism.step, world, points_of(plan)[1], jitter)
        return RELEASE(plan)

    monkeypatch.setattr(Plan, "release", release)


def artefacts(name: str) -> dict[str, bytes]:
    """All that a fitted estimator can be turned into."""
    estimator, data = every()[name]
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        estimator.fit(*data)
    stored = io.BytesIO()
    joblib.dump(estimator, stored)
    return {
        "pickle": pickle.dumps(estimator),
        "joblib": stored.getvalue(),
        "plain estimator": pickle.dumps(estimator.estimator_),
        "copy": pickle.dumps(copy.deepcopy(estimator)),
        "repr": repr(estimator).encode(),
        "page": _page(estimator),
        "attributes": pickle.dumps(dict(sorted(vars(estimator).items()))),
        "certificate": estimator.certificate_.to_json().encode(),
        "warnings": "".join(str(one.message) for one in heard).encode(),
    }


def _page(estimator: Any) -> bytes:
    """The HTML picture, without the numbers that scikit-learn gives to its parts."""
    return re.sub(r"sk-[a-z-]*\d+|id-\d+", "", estimator._repr_html_()).encode()


def telling(name: str, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    seen = []
    for world, jitter in zip((0, 5, 15), JITTERS, strict=False):
        rig(monkeypatch, world, jitter)
        seen.append(artefacts(name))
    return {one for one in seen[0] if len({each[one] for each in seen}) > 1}


@pytest.mark.parametrize("name", NAMES)
def test_no_byte_of_a_fitted_estimator_tells_the_world(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not telling(name, monkeypatch)


@pytest.mark.parametrize("name", ["LinearSVC", "PCA", "Private pipeline"])
def test_a_number_of_the_world_that_is_kept_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: an attribute that comes from the world's own answer."""
    publish = PrivateEstimator._publish

    def leaking(self: Any, estimator: Any) -> None:
        estimator.spread_ = self.plan_.outputs[self.plan_.randomness.world].std()
        publish(self, estimator)

    monkeypatch.setattr(PrivateEstimator, "_publish", leaking)
    assert {"pickle", "joblib", "plain estimator", "copy", "attributes"} <= telling(name, monkeypatch)


@functools.cache
def fitted(name: str) -> tuple[Any, tuple[Any, ...]]:
    """To look at only."""
    estimator, data = every()[name]
    return estimator.fit(*data), data


@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_the_custodian_can_be_reached_from_an_estimator(name: str) -> None:
    estimator, data = fitted(name)
    assert not custodian_objects_in(estimator, estimator.plan_, *data)


def test_the_search_for_custodian_objects_finds_one() -> None:
    """The twin."""
    estimator, data = every()["Mean"]
    estimator.fit(*data)
    estimator.kept = {"plan": [estimator.plan_]}
    assert custodian_objects_in(estimator, estimator.plan_, *data)


@pytest.mark.parametrize("name", NAMES)
def test_a_copy_of_an_estimator_has_no_plan(name: str) -> None:
    estimator, _ = fitted(name)
    stored = io.BytesIO()
    joblib.dump(estimator, stored)
    stored.seek(0)
    for other in (
        pickle.loads(pickle.dumps(estimator)),
        copy.deepcopy(estimator),
        copy.copy(estimator),
        joblib.load(stored),
    ):
        assert not hasattr(other, "plan_")
        assert other.certificate_ == estimator.certificate_
    assert not hasattr(clone(estimator), "estimator_")


def test_two_fits_of_one_estimator_leave_nothing_of_the_first() -> None:
    estimator, data = every()["LogisticRegression"]
    estimator.fit(*data)
    once = pickle.dumps(estimator)
    other, two = every()["two classes"]
    estimator.fit(*two)
    assert pickle.dumps(estimator) == pickle.dumps(other.fit(*two)) != once


def test_warnings_come_before_the_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a custodian may read aloud was decided before a world was drawn."""
    order: list[str] = []
    monkeypatch.setattr(PrivateEstimator, "_warn_where_useless", lambda *_: order.append("warning"))
    release = Plan.release
    monkeypatch.setattr(Plan, "release", lambda plan: (order.append("release"), release(plan))[1])
    estimator, data = every()["Mean"]
    estimator.fit(*data)
    assert order == ["warning", "release"]


@pytest.mark.parametrize(
    "settings",
    [
        {"strata": np.arange(150) % 2},
        {"worlds": np.ones((4, 150), dtype=bool)},
        {"cap": lc.task(np.eye(16), 0.9)},
        {"options": {"unit": np.arange(150)}},
    ],
    ids=["strata", "worlds", "task", "unit"],
)
def test_settings_that_would_be_saved_hold_no_data(settings: dict[str, Any]) -> None:
    estimator, data = every(**settings)["Mean"]
    with pytest.raises(lc.InputError, match=r"must be|may hold"):
        estimator.fit(*data)


def test_an_estimator_that_has_learnt_something_is_not_wrapped() -> None:
    """It would be saved beside the released one."""
    fitted = make_pipeline(PlainScaler().fit(IRIS), PlainRidge())
    with pytest.raises(lc.InputError, match="is fitted"):
        lc.estimators.Private(fitted, **SMALL).fit(IRIS[:, :3], IRIS[:, 3])


def test_start_centres_are_not_in_the_plain_estimator() -> None:
    model = lc.estimators.KMeans(3, init=IRIS[[0, 60, 120]], **SMALL).fit(IRIS)
    assert IRIS[60].tobytes() not in pickle.dumps(model.estimator_)


def test_a_cap_is_needed() -> None:
    estimator, data = every(cap=None)["Mean"]
    with pytest.raises(lc.InputError, match="say what may leak"):
        estimator.fit(*data)
