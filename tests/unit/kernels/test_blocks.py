"""Averages over blocks: the answer, what is refused, and what the custodian is told."""

from __future__ import annotations

import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leakcap as lc
from leakcap.errors import BlocksWarning
from leakcap.report.release.files import public_files, table_of
from leakcap.worlds import Units
from tests.leaks.rigged import new_token

X = np.random.default_rng(0).lognormal(3, 1, size=1200)
POOL = lc.pool_membership(0.6)
MEDIAN = lc.blocks(np.median, blocks=20, bounds=(0, 100))
WAYS: dict[str, dict[str, Any]] = {
    "pool": {"cap": POOL},
    "bits": {"cap": 0.6, "design": "bits"},
    "worlds": {"cap": 0.6, "worlds": 64, "draws": 512},
}
every_way = pytest.mark.parametrize("way", WAYS)


@every_way
def test_any_function_under_any_promise(way: str) -> None:
    plan = lc.plan(MEDIAN, X, seed=1, **WAYS[way])
    assert plan.certificate.membership_success <= 0.6
    assert plan.summary().answer[0] == pytest.approx(np.median(X), rel=0.05)
    assert isinstance(plan.release().value, float)
    low, high = plan.noise.std * np.array([-6, 6]) / (20 if way != "worlds" else 1)
    assert low < plan.answer_of(plan.releaser.vector(plan.randomness)) - np.median(X) < high


@every_way
def test_arrays_and_tables_and_several_rows_of_a_person(way: str) -> None:
    table = pd.DataFrame({"cost": X, "stay": X[::-1], "who": np.arange(1200) // 3})
    both = lc.blocks(lambda rows: np.median(rows, axis=0), blocks=20, bounds=([0, 0], [100, 90]))
    plan = lc.plan(both, table, unit="who", seed=1, **WAYS[way])
    assert plan.release().value.shape == (2,)
    assert len(plan.exposure) == 400


def test_rows_of_one_person_share_a_block() -> None:
    who = np.arange(1200) % 400
    plan = lc.plan(MEDIAN, X, unit=who, seed=1, **WAYS["bits"])
    block = plan.run.brings.of_row
    assert all(len(set(block[who == one])) == 1 for one in range(400))
    assert len(set(block)) == 20


def test_everybody_stays_in_one_block_in_all_worlds() -> None:
    """So that halves differ in who takes part, and not in who sits beside whom."""
    beside: set[tuple[float, float]] = set()

    def told(rows: np.ndarray) -> float:
        if len(rows) < 40:  # everybody's rows tell how far blocks are off
            beside.update(pairwise(rows))
        return float(len(rows))

    values = np.arange(40.0)
    made = lc.blocks(told, blocks=4, bounds=(0, 40))
    block = made.of_rows(Units(40, 40))
    lc.plan(made, values, cap=0.9, worlds=8, draws=512, seed=1)
    assert beside
    assert all(block[int(one)] == block[int(other)] for one, other in beside)


@pytest.mark.parametrize("way", ["bits", "worlds"])
def test_a_run_goes_on_where_it_stopped(way: str, tmp_path: Path) -> None:
    plans = [lc.plan(MEDIAN, X, checkpoint=tmp_path / "run", **WAYS[way]) for _ in range(2)]
    assert plans[0].noise.std == plans[1].noise.std


def test_a_plan_compares_all_promises() -> None:
    table = lc.plan(MEDIAN, X, seed=1, **WAYS["pool"]).compare(worlds=64)
    assert {one.name for one in table.promises} == {"worlds", "bits", "pool", "Laplace", "Gaussian", "zCDP"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"blocks": 1}, "at least 2"),
        ({"bounds": (1, 0)}, "low below high"),
        ({"bounds": (0, np.nan)}, "finite"),
        ({"bounds": (0, np.inf)}, "finite"),
        ({"bounds": 3}, r"\(low, high\)"),
        ({"bounds": ("a", "b")}, r"\(low, high\)"),
        ({"bounds": ([0, 0], [1, 1, 1])}, r"\(low, high\)"),
        ({"bounds": (-1e200, 1e200)}, "1e100"),
        ({"bounds": ([], [])}, "finite"),
    ],
)
def test_what_cannot_be_used_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(lc.InputError, match=words):
        lc.blocks(np.median, **{"blocks": 5, "bounds": (0, 1)} | options)
    with pytest.raises(lc.InputError, match="function"):
        lc.blocks("median", blocks=5, bounds=(0, 1))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cap": POOL, "bounds": (0, 1)}, "bounds of their own"),
        ({"cap": 0.6, "design": "bits", "mechanism": "exponential"}, "Gaussian"),
        ({"cap": 0.6, "design": "bits", "floor": 0.1}, "Gaussian"),
    ],
)
def test_what_goes_with_no_blocks_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(lc.InputError, match=words):
        lc.plan(MEDIAN, X, seed=1, **options)


def misspelt(rows: np.ndarray) -> float:
    return rows.meen()  # type: ignore[attr-defined, no-any-return]


@pytest.mark.parametrize("way", ["pool", "bits"])
def test_an_error_of_ones_own_is_shown_where_no_block_answers(way: str) -> None:
    with pytest.raises(AttributeError, match="meen"):
        lc.plan(lc.blocks(misspelt, blocks=5, bounds=(0, 1)), X, **WAYS[way])
    with pytest.raises(lc.OutputError, match="shape"):
        lc.plan(lc.blocks(lambda rows: np.zeros(3), blocks=5, bounds=(0, 1)), X, **WAYS[way])


def test_the_custodian_hears_of_blocks_that_are_too_small() -> None:
    with pytest.warns(BlocksWarning, match="no usable answer in .* of 1000 blocks"):
        lc.plan(lc.blocks(np.median, blocks=1000, bounds=(0, 100)), X, **WAYS["pool"])
    with pytest.warns(BlocksWarning, match="answers otherwise on blocks"):
        lc.plan(lc.blocks(np.max, blocks=60, bounds=(0, 1000)), X, **WAYS["pool"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lc.plan(MEDIAN, X, **WAYS["pool"])


@pytest.mark.filterwarnings("ignore:the function answers otherwise")
@pytest.mark.parametrize("way", ["bits", "worlds"])
def test_intervals_hold_the_functions_own_answer_also_where_blocks_miss_it(way: str) -> None:
    largest = lc.blocks(np.max, blocks=60, bounds=(0, 1000))  # of twenty people each: far below that of all
    plan = lc.plan(largest, X, seed=1, **WAYS[way])
    assert plan.summary().answer[0] == X.max()
    for _ in range(5):
        plan._token = new_token()
        low, high = plan.release().interval(0.95)
        assert low[0] <= X.max() <= high[0]


def test_under_a_pool_cap_an_interval_is_said_to_be_about_the_average() -> None:
    release = lc.plan(MEDIAN, X, **WAYS["pool"]).release()
    files = public_files(release, table_of(release, "median", None))
    assert "holds the average over blocks" in str(files["answer.json"])
    assert "holds the average over blocks" in " ".join(str(files["certificate.html"]).split())
    plain = lc.plan(lc.stats.count, X[:100], cap=POOL).release()
    assert "holds the true answer on all data" in str(
        public_files(plain, table_of(plain, "count", None))["answer.json"]
    )


def test_what_lies_outside_of_the_bounds_is_counted_for_the_custodian() -> None:
    plan = lc.plan(lc.blocks(np.median, blocks=20, bounds=(0, 20)), X, seed=1, **WAYS["pool"])
    assert "entries lay outside the bounds" in str(plan.summary())
