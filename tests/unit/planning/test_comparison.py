"""`Plan.compare` and the hints of a summary, as users meet them: order, words, pictures, refusals."""

from __future__ import annotations

import os
import pickle
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leakcap as lc
from leakcap.planning.comparison import in_order, size_of

RNG = np.random.default_rng(4)
X = RNG.normal(50, 10, size=(200, 2))
TABLE = pd.DataFrame({"ward": RNG.choice(list("ABC"), 200), "cost": X[:, 0]})
NAMES = {"worlds", "bits", "pool", "Laplace", "Gaussian", "zCDP"}


@cache
def planned() -> lc.Plan:
    return lc.plan(lc.stats.mean, X, cap=0.6, worlds=64, draws=2048, seed=1)


@cache
def compared() -> Any:
    return planned().compare((0, 100))


def promise(total: float, strength: int) -> Any:
    return replace(compared().best, total=total, strength=strength)


def order(*pairs: tuple[float, int]) -> list[tuple[float, int]]:
    return [(one.total, one.strength) for one in in_order([promise(*pair) for pair in pairs])]


def test_the_least_error_is_first_and_within_a_tenth_the_stronger_promise() -> None:
    assert order((2.0, 1), (1.0, 3)) == [(1.0, 3), (2.0, 1)]
    assert order((1.0, 1), (1.09, 3)) == [(1.09, 3), (1.0, 1)]
    assert order((1.0, 1), (1.11, 3)) == [(1.0, 1), (1.11, 3)]
    assert order((1.0, 3), (1.05, 3)) == [(1.0, 3), (1.05, 3)]
    # What is near the second but not near the first does not overtake the first.
    assert order((1.0, 1), (1.08, 2), (1.15, 3)) == [(1.08, 2), (1.0, 1), (1.15, 3)]


def test_all_promises_are_there_in_order() -> None:
    made = compared()
    assert {one.name for one in made} == NAMES
    assert len(made) == 6
    assert made.left_out == ()
    assert made.own == "worlds"
    assert made.success == 0.6
    assert tuple(one.name for one in in_order(made.promises)) == tuple(one.name for one in made)
    assert made.best.total <= 1.1 * min(one.total for one in made)
    assert all(one.seconds >= 0 and one.hides and one.how for one in made)


def test_plain_differential_privacy_never_beats_the_pool_cap_by_normal_noise() -> None:
    made = compared()
    assert made["pool"].total < made["zCDP"].total < made["Gaussian"].total


def test_totals_are_relative_to_the_size_of_the_answer() -> None:
    assert size_of(np.array([3.0, 4.0]), np.array([0.0, 50.0]), np.ones(2)) == pytest.approx(0.1)
    assert size_of(np.array([3.0, 4.0]), np.array([6.0, 50.0]), np.array([1.0, 0.0])) == pytest.approx(0.5)
    assert size_of(np.array([3.0, 4.0]), np.zeros(2), np.ones(2)) == pytest.approx(5.0)


def test_the_text_says_whose_it_is_what_is_hidden_and_what_the_star_means() -> None:
    text = str(compared())
    assert text.startswith("CUSTODIAN ONLY")
    assert "Nothing was released" in text
    assert "worlds *" in text
    assert "whoever else is known" in text
    assert "in the data at all" in text
    assert "epsilon 0.4055, delta 1e-05" in text
    assert "[1]" in text
    assert max(map(len, text.splitlines())) < 130
    assert "CUSTODIAN ONLY" in repr(compared())


def test_the_page_has_the_table_and_a_picture_and_is_for_its_owner_alone(tmp_path: Any) -> None:
    page = compared().to_html()
    for name in NAMES:
        assert f">{name}" in page
    assert "<svg" in page
    assert "do not publish" in page
    assert "<script" not in page
    compared().save(tmp_path / "promises.html")
    assert (tmp_path / "promises.html").read_text() == page
    if os.name == "posix":
        assert (tmp_path / "promises.html").stat().st_mode & 0o077 == 0
    assert "<svg" in compared()._repr_html_()


def test_a_page_of_one_promise_without_error_is_drawn() -> None:
    plan = lc.plan(lc.stats.count, X, cap=lc.pool_membership(0.6), seed=1)
    made = plan.compare(worlds=16)
    assert made["worlds"].total == made["bits"].total == 0  # the number of people in the pool is not hidden there
    assert made.best.name == "bits"
    assert "<svg" in made.to_html()


def test_what_cannot_be_promised_has_a_reason() -> None:
    made = lc.plan(lc.stats.variance, X, cap=0.6, worlds=64, draws=2048, seed=1).compare((0, 100))
    assert [one.name for one in made] == ["worlds"]
    assert {name for name, _ in made.left_out} == NAMES - {"worlds"}
    assert "add up what every unit brings" in " ".join(str(made).split())
    assert "Not compared: pool, Laplace, Gaussian, zCDP: " in str(made)
    with pytest.raises(lc.InputError, match="no figures for 'bits'"):
        made["bits"]
    without = planned().compare()
    assert {one.name for one in without} == {"worlds", "bits"}
    assert "bounds" in dict(without.left_out)["pool"]
    assert "Not compared: pool" in without.to_html()


def test_clips_are_for_worlds_alone() -> None:
    made = lc.plan(lc.stats.mean, X, cap=0.6, worlds=64, draws=2048, seed=1, clip=(0, 100)).compare((0, 100))
    assert [one.name for one in made] == ["worlds"]
    assert "clip=" in dict(made.left_out)["bits"]


def test_units_with_several_rows_need_the_most_that_count() -> None:
    whose = np.arange(200) // 2
    plan = lc.plan(lc.stats.mean, X, cap=0.6, design="bits", unit=whose, seed=1)
    assert "rows_per_unit" in dict(plan.compare((0, 100), worlds=16).left_out)["pool"]
    one, two = (plan.compare((0, 100), rows, worlds=16)["pool"] for rows in (1, 2))
    assert np.allclose(two.deviations, 2 * one.deviations)
    assert np.allclose(one.before_noise, np.abs(X[::2].mean(axis=0) - X.mean(axis=0)))
    assert np.allclose(two.before_noise, 0, atol=1e-9)


def test_a_plan_with_other_caps_beside_is_compared_by_its_membership_cap_alone() -> None:
    strict = [lc.membership(0.6), lc.mutual_information(0.001)]
    plan = lc.plan(lc.stats.mean, X, cap=strict, worlds=64, draws=2048, seed=1)
    assert plan.noise.std > 1.5 * planned().noise.std
    again = plan.compare()["worlds"]
    assert again.how.endswith("for this cap alone")
    assert np.allclose(again.noise, compared()["worlds"].noise, rtol=0.1)


@pytest.mark.parametrize("mode", ["confidence", "individual"])
def test_plans_of_other_modes_are_compared_with_worlds_of_their_own(mode: str) -> None:
    plan = lc.plan(lc.stats.mean, X, cap=0.7, worlds=64, mode=mode, seed=1)
    made = plan.compare((0, 100), worlds=32)
    assert made.own == ""
    assert {one.name for one in made} == NAMES
    assert made["worlds"].how == "32 worlds, simulated for this table"
    assert "*" not in str(made)


def test_totals_of_simulated_worlds_are_on_the_scale_of_the_whole_pool() -> None:
    plan = lc.plan(lc.stats.sum, X, cap=0.6, design="bits", seed=1)
    made = plan.compare(worlds=64)
    assert made["worlds"].total < 0.2
    assert np.allclose(made.answer, X.sum(axis=0))


def test_nothing_is_spent_and_the_plan_stays_what_it_was() -> None:
    plan = lc.plan(lc.stats.mean, X, cap=0.6, worlds=64, draws=2048, seed=1)
    before = plan.certificate.to_json()
    plan.compare((0, 100))
    assert plan.certificate.to_json() == before
    plan.release()
    with pytest.raises(lc.AlreadyReleased):
        plan.release()


def test_the_same_seed_gives_the_same_figures() -> None:
    first, second = (planned().compare((0, 100), answers=128, seed=3) for _ in range(2))
    assert [one.total for one in first] == [one.total for one in second]
    assert first.answers == 128


def test_a_comparison_is_not_pickled() -> None:
    with pytest.raises(lc.LeakcapError, match="custodian-side"):
        pickle.dumps(compared())


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"worlds": 1}, "worlds"),
        ({"answers": 10}, "answers"),
        ({"answers": 2.5}, "answers"),
        ({"seed": -1}, "seed"),
        ({"rows_per_unit": 0}, "rows_per_unit"),
    ],
)
def test_bad_input_is_refused(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(lc.InputError, match=words):
        planned().compare(**asked)


@pytest.mark.parametrize("bounds", [5, (1,), (3, 2), (0, np.inf), {"cost": (0, 1)}])
def test_bounds_that_cannot_be_used_are_a_reason(bounds: Any) -> None:
    assert "bounds" in dict(planned().compare(bounds).left_out)["Laplace"]


def test_a_cap_that_is_not_about_one_person_is_refused() -> None:
    plan = lc.plan(lc.stats.mean, X, cap=lc.mutual_information(0.1), worlds=64, draws=2048, seed=1)
    with pytest.raises(lc.InputError, match="about one person"):
        plan.compare()
    assert plan.summary().hints == ()


def test_a_stored_plan_is_refused(tmp_path: Any) -> None:
    from leakcap.planning.entry import stored_plan

    lc.plan(lc.stats.mean, X, cap=0.6, worlds=64, draws=2048, checkpoint=tmp_path)
    with pytest.raises(lc.InputError, match="neither the data nor the function"):
        stored_plan(tmp_path).compare()


def test_a_summary_points_to_coins_where_they_are_better_by_a_tenth() -> None:
    summary = planned().summary()
    (hint,) = summary.hints
    assert hint.startswith('design="bits" would do better')
    assert "plan.compare()" in hint
    assert hint[:60] in str(summary)
    assert "would do better" in planned().to_html()
    assert 1.1 * compared()["bits"].total < compared()["worlds"].total
    bits = lc.plan(lc.stats.mean, X, cap=0.6, design="bits", seed=1)
    assert bits.summary().hints == ()
    assert lc.plan(lc.stats.median, X, cap=0.6, worlds=64, draws=2048, seed=1).summary().hints == ()


def test_a_summary_names_outputs_that_drown_and_the_way_out() -> None:
    fn = lc.stats.group_by({"ward": ["A", "B", "C", "D"]}, "count")
    plan = lc.plan(fn, TABLE.assign(ward=["D"] * 5 + ["A"] * 195), cap=lc.pool_membership(0.52), seed=1)
    (hint,) = plan.summary().hints
    drowned = int((plan.summary().noise > np.abs(plan.summary().answer)).sum())
    assert drowned == 3
    assert hint.startswith("3 of 4 outputs drown in noise")
    assert "fewer groups or coarser bins" in hint
    assert "narrower bounds" in hint
    assert not lc.plan(fn, TABLE, cap=lc.pool_membership(0.9), seed=1).summary().hints[1:]


def test_nothing_drowns_where_the_answer_is_large() -> None:
    assert lc.plan(lc.stats.mean, X, cap=lc.pool_membership(0.8), bounds=(0, 100), seed=1).summary().hints == ()
