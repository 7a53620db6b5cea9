"""What an answer says about itself: labels, counts of a half, numbers without noise, an output that spoils others."""

from __future__ import annotations

import json
import pickle
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import Ridge

import leakcap as lc
from leakcap.estimators import Ridge as PrivateRidge
from leakcap.planning.told import Told
from leakcap.report.release.files import public_files, table_of

RNG = np.random.default_rng(11)
TABLE = pd.DataFrame(
    {"age": RNG.normal(50, 9, 200), "pay": RNG.gamma(2, 900, 200), "ward": RNG.choice(["A", "B"], 200)}
)
WORLDS: dict[str, Any] = {"cap": 0.7, "worlds": 64, "draws": 512, "seed": 2}


def counted(rows: pd.DataFrame) -> dict[str, float]:
    return {"old": float((rows["age"] > 50).sum()), "mean": rows["age"].mean(), "rows": float(len(rows))}


# Labels


def test_labels_are_for_people_and_names_for_programs() -> None:
    plan = lc.plan(lambda rows: rows[["age", "pay"]].mean(), TABLE, outputs={"age": "Mean age (years)"}, **WORLDS)
    assert plan.summary().names == ("Mean age (years)", "pay")
    assert plan.recap(0.8).summary().names == ("Mean age (years)", "pay")
    release = plan.release()
    assert release.names == ("age", "pay")
    assert release.labels == ("Mean age (years)", "pay")
    assert list(release.value.index) == ["age", "pay"]
    files = public_files(release, table_of(release, "Means", None))
    assert str(files["answer.csv"]).splitlines()[1].startswith("Mean age (years),")
    assert "Mean age (years)" in str(files["certificate.html"])
    assert "Mean age" not in release.certificate.to_json()


def test_labels_may_come_in_order() -> None:
    release = lc.release(lc.stats.mean, TABLE[["age", "pay"]].to_numpy(), outputs=("Age", "Pay"), cap=0.7, seed=1)
    assert release.labels == ("Age", "Pay")
    assert release.names == ("[0]", "[1]")


@pytest.mark.parametrize(
    ("outputs", "words"),
    [({"agee": "Age"}, "no output is called that"), (("Age",), "1 labels for 2 outputs"), ("Age", "0 labels")],
)
def test_labels_that_fit_no_output_are_refused_before_anything_is_certified(outputs: Any, words: str) -> None:
    with pytest.raises(lc.InputError, match=words):
        lc.plan(lc.stats.mean, TABLE[["age", "pay"]], outputs=outputs, **WORLDS)


# A count of a half


def test_a_count_of_the_half_says_so_wherever_it_is_read() -> None:
    plan = lc.plan(counted, TABLE, **WORLDS)
    assert plan.summary().names == ("old (of the half that was used)", "mean", "rows (of the half that was used)")
    release = plan.release()
    (note, *_) = release.notes
    assert note.startswith("'old', 'rows' are of the half of the pool that was used")
    assert "2 times as large" in note
    assert note in repr(release)
    assert release.labels[0] == "old (of the half that was used)"
    files = public_files(release, table_of(release, "Counts", None))
    assert "old (of the half that was used)" in str(files["answer.csv"])
    assert "old (of the half that was used)" in str(files["certificate.html"])
    assert json.loads(files["answer.json"])["notes"] == list(release.notes)
    assert pickle.loads(pickle.dumps(release)).notes == release.notes


def test_other_rates_say_which_part() -> None:
    release = lc.release(counted, TABLE, **(WORLDS | {"rate": 1 / 4}))
    assert "of the 1/4 of the pool" in release.notes[0]
    assert "4 times as large" in release.notes[0]
    assert release.labels[0] == "old (of the part that was used)"


@pytest.mark.parametrize("design", ["worlds", "bits"])
@pytest.mark.parametrize("fn", [lc.stats.count, lc.stats.group_by({"ward": ["A", "B"]})])
def test_what_is_on_the_scale_of_the_pool_is_not_called_of_a_half(fn: Any, design: str) -> None:
    options = WORLDS if design == "worlds" else {"cap": 0.7, "seed": 2}
    plan = lc.plan(fn, TABLE, design=design, **options)
    assert not any("of the half" in name for name in plan.summary().names)
    assert plan.run.simulation.table.mean(axis=0).sum() == pytest.approx(200, rel=0.1)


def test_one_person_who_is_half_of_it_is_no_count() -> None:
    """A maximum that one person decides is half as large on average, and no count."""
    pay = np.append(np.ones(99), 1e9)
    plan = lc.plan(lambda rows: {"max": rows.max(), "rows": float(len(rows))}, pay, **(WORLDS | {"worlds": 128}))
    assert plan.summary().names == ("max", "rows (of the half that was used)")


# Numbers without noise


@pytest.mark.parametrize("design", ["worlds", "bits"])
def test_a_cell_that_is_empty_in_the_pool_says_that_it_is_exact(design: str) -> None:
    fn = lc.stats.group_by({"ward": ["A", "B", "C"]})
    options = WORLDS if design == "worlds" else {"cap": 0.7, "seed": 2}
    plan = lc.plan(fn, TABLE, design=design, **options)
    release = plan.release()
    assert release.value["C"] == 0
    assert release.notes == (
        "'C' leaves without noise: it is the same whichever people take part; an exact 0 tells that nobody in the "
        "pool is there",
    )
    assert f"{release.notes[0]}." in plan.summary().hints
    assert release.notes[0] in repr(release)
    low, high = release.interval()
    assert low[2] == high[2] == 0


def test_under_a_pool_cap_an_empty_cell_is_noised_like_any_other() -> None:
    release = lc.release(lc.stats.group_by({"ward": ["A", "B", "C"]}), TABLE, cap=lc.pool_membership(0.7), seed=2)
    assert release.value["C"] != 0
    assert release.notes == ()


def test_under_a_pool_cap_nothing_is_told_that_follows_from_the_data() -> None:
    """A constant column: its answer is exact in the pool and in the halves, and what leaves says nothing of it."""
    fn = lc.stats.group_by({"ward": ["A", "B", "C"]})
    plan = lc.plan(fn, TABLE, cap=lc.pool_membership(0.7), seed=2)
    told = Told.of(plan.run, plan.labels, np.array([1.0, 1.0, 0.0]))
    assert told == Told(plan.labels)
    worlds = lc.plan(fn, TABLE, design="worlds", **WORLDS)
    assert Told.of(worlds.run, worlds.labels, np.array([1.0, 1.0, 0.0])).notes


def test_a_histogram_with_an_empty_bin_says_so_and_one_without_says_nothing() -> None:
    ages = TABLE[["age"]]
    empty = lc.release(partial(lc.stats.histogram, edges=[0, 50, 500, 600]), ages, cap=0.7, seed=1)
    assert empty.notes[0].startswith("'age, 500 or more' leaves without noise")
    assert lc.release(partial(lc.stats.histogram, edges=[0, 50, 60]), ages, cap=0.7, seed=1).notes == ()


def test_a_floor_noises_what_would_leave_exactly() -> None:
    fn = lc.stats.group_by({"ward": ["A", "B", "C"]})
    release = lc.release(fn, TABLE, design="worlds", floor=0.5, **WORLDS)
    assert release.value["C"] != 0
    assert release.notes == ()


# An output that spoils the others


def test_a_maximum_is_named_as_what_spoils_the_others() -> None:
    """A fat tail: without the maximum the mean's noise is about two thirds (0.64 to 0.72 were seen)."""
    pay = pd.Series(np.random.default_rng(0).lognormal(10, 1.2, 1000))
    plan = lc.plan(lambda rows: {"mean": rows.mean(), "max": rows.max()}, pay, cap=0.6, worlds=256, seed=1)
    (hint,) = [hint for hint in plan.summary().hints if "spoils" in hint]
    assert hint.startswith("'max' spoils the others: without it their noise would be about 0.")
    then = lc.plan(lambda rows: {"mean": rows.mean()}, pay, cap=0.6, worlds=256, seed=1)
    told = float(hint.split("about ")[1].split(" ")[0])
    assert told == pytest.approx(then.noise.std / plan.noise.output_deviations[0], abs=0.12)


def test_outputs_that_cost_each_other_alike_are_not_blamed() -> None:
    rows = np.random.default_rng(0).normal(size=(400, 4))
    for seed in (1, 2, 3):
        plan = lc.plan(lambda rows: rows.mean(axis=0), rows, cap=0.6, worlds=256, seed=seed)
        assert not any("spoils" in hint for hint in plan.summary().hints)


# Scores get what a release gives


def ridge(rows: pd.DataFrame) -> Ridge:
    return Ridge(10.0).fit(rows[["age"]], rows["pay"])


FORMS: dict[str, tuple[Any, Any]] = {
    "a number": (lambda rows: rows["age"].mean(), TABLE),
    "a dict": (counted, TABLE),
    "a table": (lambda rows: rows[["age", "pay"]].describe().loc[["mean", "std"]], TABLE),
    "a series": (lambda rows: rows[["age", "pay"]].mean(), TABLE),
    "a table of polars": (lambda rows: rows.select("age", "pay").mean(), pl.DataFrame(TABLE.to_dict("list"))),
    "an estimator": (ridge, TABLE),
    "names of a statistic": (lc.stats.mean, TABLE[["age", "pay"]]),
    "a tuple": (lambda rows: (rows["age"].mean(), rows[["pay"]].to_numpy().mean(axis=0)), TABLE),
}


@pytest.mark.parametrize("name", FORMS)
def test_scores_get_what_release_value_would_be(name: str) -> None:
    fn, data = FORMS[name]
    plan = lc.plan(fn, data, design="worlds", **WORLDS)
    seen: list[Any] = []

    def score(value: Any) -> float:
        seen.append(value)
        return 0.0

    plan.suggest(score, releases=2, worlds=16, seconds=1.0)
    plan.expected(score, releases=2)
    released = plan.release().value
    assert len(seen) > 6
    for value in seen:
        assert type(value) is type(released)
        if isinstance(released, pd.DataFrame):
            assert value.index.equals(released.index) and value.columns.equals(released.columns)
        elif isinstance(released, pd.Series):
            assert value.index.equals(released.index)
        elif isinstance(released, pl.DataFrame):
            assert value.columns == released.columns
        elif isinstance(released, dict):
            assert list(value) == list(released)
        elif isinstance(released, Ridge):
            assert value.predict(TABLE[["age"]]).shape == (200,)


def test_scores_of_an_estimators_plan_get_the_fitted_estimator_everywhere() -> None:
    target = 3 * TABLE["age"] + RNG.normal(0, 5, 200)
    private = PrivateRidge(10.0, cap=0.9, worlds=64, random_state=0).fit(TABLE[["age"]].to_numpy(), target)
    seen: list[Any] = []

    def score(fitted: Any) -> float:
        seen.append(type(fitted))
        return float(fitted.predict(TABLE[["age"]].to_numpy()).mean())

    private.plan_.expected(score, releases=2)
    private.plan_.suggest(score, releases=2, worlds=16, seconds=1.0)
    assert set(seen) == {type(private.estimator_)}
