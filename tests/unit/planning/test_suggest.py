"""`plan.suggest` tries every knob, and spends nothing."""

from __future__ import annotations

import gc
import pickle
import weakref
from collections.abc import Iterator

import numpy as np
import pytest
from sklearn.linear_model import Ridge as PlainRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler as PlainScaler

import leakcap as lc
from leakcap.estimators import Private, Ridge
from leakcap.planning.entry import stored_plan
from leakcap.planning.suggestions import Suggestions
from tests.unit.planning.suggesting import CURSORY, QUICK, SKEWED, TABLE, knobs, mean_plan


@pytest.fixture(scope="module", autouse=True)
def _rough_estimates() -> Iterator[None]:
    """How good a suggestion is does not matter here: `tests/claims/planning` looks at that."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("leakcap.noise.estimate.DRAWS", 1024)
        yield


@pytest.fixture(scope="module")
def plan() -> lc.Plan:
    """To ask only: suggestions spend nothing."""
    return mean_plan()


@pytest.fixture(scope="module")
def found(plan: lc.Plan) -> Suggestions:
    return plan.suggest(strata={"wrong": [1, 2]}, **CURSORY)


def test_every_knob_is_tried_and_the_best_comes_first() -> None:
    plan = lc.plan(lc.stats.mean, TABLE, cap=lc.membership(0.6), worlds=64, seed=0, draws=256)
    found = plan.suggest(**QUICK)
    assert set(knobs(found)) == {
        "128 worlds",
        "outputs clipped at 1 %",
        "outputs clipped at 5 %",
        "weights relative",
        "rate 2/3",
        "rate 3/4",
    }
    gains = [one.gain for one in found]
    assert gains == sorted(gains, reverse=True)
    assert not found.left_out
    assert all(one.error > 0 and one.noise > 0 and one.seconds > 0 for one in found)


def test_nothing_is_spent() -> None:
    plan, untouched = mean_plan(3), mean_plan(3)
    assert len(plan.suggest(**CURSORY)) == 5
    # No certifying attempt was used up: the next recap is the one that it would have been.
    assert plan.recap(lc.membership(0.7)).certificate == untouched.recap(lc.membership(0.7)).certificate
    assert plan.release().value == untouched.release().value
    with pytest.raises(lc.AlreadyReleased):
        plan.release()


def test_answers_are_the_same_each_time(found: Suggestions) -> None:
    again = mean_plan().suggest(**CURSORY)
    assert [(one.knob, one.now, one.then, one.error) for one in found] == [
        (one.knob, one.now, one.then, one.error) for one in again
    ]


def test_a_recap_is_judged_by_its_own_cap(found: Suggestions) -> None:
    loose = mean_plan().recap(lc.membership(0.8)).suggest(**CURSORY)
    assert loose.tried[0].now > found.tried[0].now


def test_a_score_of_the_users_counts(plan: lc.Plan) -> None:
    """What does not depend on the answer cannot be improved."""
    found = plan.suggest(lambda value: 1.0, **CURSORY)
    assert {one.verdict for one in found} == {"no clear difference"}
    assert found.best is None
    assert "No knob" in found.sentence


def test_what_takes_too_long_is_extrapolated_or_left_out() -> None:
    found = mean_plan(worlds=64).suggest(seconds=0, **CURSORY)
    more = knobs(found)["128 worlds"]
    assert more.extrapolated and more.noise <= 1
    assert {knob for knob, _ in found.left_out} == {"rate 2/3", "rate 3/4"}
    assert "extrapolated" in str(found)


def test_a_cap_that_another_rate_cannot_keep_is_left_out() -> None:
    plan = lc.plan(lc.stats.mean, SKEWED, cap=lc.name_a_member(0.6), worlds=32, seed=0, draws=256)
    assert "rate 2/3" in {knob for knob, _ in plan.suggest(**CURSORY).left_out}


def test_a_stored_plan_tries_what_needs_no_data(tmp_path) -> None:
    lc.plan(lc.stats.mean, SKEWED, cap=lc.membership(0.6), worlds=32, draws=256, checkpoint=tmp_path / "run")
    found = stored_plan(tmp_path / "run").suggest(**CURSORY)
    assert "outputs clipped at 1 %" in knobs(found)
    assert "rate 2/3" in {knob for knob, _ in found.left_out}


def test_an_answer_that_is_the_same_in_all_worlds_has_nothing_to_improve() -> None:
    plan = lc.plan(lambda rows: 1.0, SKEWED, cap=lc.membership(0.6), worlds=16, seed=0)
    assert len(plan.suggest()) == 0


def test_regularisation_inside_a_wrapped_pipeline_is_tried_and_left_as_it_was() -> None:
    inner = make_pipeline(PlainScaler(), PlainRidge(20.0))
    X = np.random.default_rng(1).normal(size=(60, 3))
    private = Private(inner, worlds=16, random_state=0, options={"draws": 256})
    plan, _ = private._planned(X, X[:, 0], None, None, lc.membership(0.9))
    assert {"ridge__alpha=5", "ridge__alpha=80"} <= set(knobs(plan.suggest(releases=10, worlds=16)))
    assert private.estimator is inner and inner.get_params()["ridge__alpha"] == 20.0


def test_a_plan_does_not_keep_its_estimator_alive() -> None:
    fitted = Ridge(cap=lc.membership(0.9), worlds=16, random_state=0, options={"draws": 256}).fit(TABLE, TABLE[:, 0])
    gone = weakref.ref(fitted)
    plan = fitted.plan_
    del fitted
    gc.collect()
    assert gone() is None
    assert plan.offered is not None


def test_suggestions_are_the_custodians(found: Suggestions) -> None:
    assert "CUSTODIAN ONLY" in repr(found) and str(found).startswith("CUSTODIAN ONLY")
    with pytest.raises(lc.LeakcapError, match="custodian"):
        pickle.dumps(found)


@pytest.mark.parametrize("options", [{"score": 3}, {"releases": 1}, {"worlds": 0}, {"seconds": -1}, {"seed": -1}])
def test_bad_arguments_are_refused(plan: lc.Plan, options: dict[str, object]) -> None:
    with pytest.raises(lc.InputError):
        plan.suggest(**options)


def test_scores_must_be_finite(plan: lc.Plan) -> None:
    found = plan.suggest(lambda value: np.nan, **CURSORY)
    assert not found.tried and len(found.left_out) == 5


def test_other_modes_are_refused() -> None:
    with pytest.raises(lc.InputError, match="exact"):
        mean_plan(mode="confidence", worlds=128).suggest()


def test_strata_need_a_label_for_each_row(found: Suggestions) -> None:
    assert [knob for knob, _ in found.left_out] == ["wrong"]
