"""Under a pool cap everything public is the same with and without a person, the noisy sums held fixed."""

from __future__ import annotations

import importlib
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars
import pytest

import leakcap as lc
from leakcap.noise import GRID
from tests.leaks.rigged import JITTERS, new_token, public_artefacts

POOL = importlib.import_module("leakcap.modes.pool")
ROWS = np.random.default_rng(4).normal(50, 20, size=(30, 2))
ROWS[0] = 1e7, -3.0  # the person: an outlier
TABLE = pd.DataFrame(ROWS, columns=["cost", "stay"]).assign(
    ward=["alone"] + list("AB") * 14 + ["A"], sick=ROWS[:, 0] > 50
)
KEYS = {"ward": ["A", "B", "alone", "nobody"]}
BOUNDS = (0, 100)
QUESTIONS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "mean": (lc.stats.mean, ROWS, {"bounds": BOUNDS}),
    "sum": (lc.stats.sum, ROWS, {"bounds": BOUNDS}),
    "count": (lc.stats.count, ROWS, {}),
    "share": (lc.stats.share, TABLE["sick"], {}),
    "covariance": (lc.stats.covariance, ROWS, {"bounds": BOUNDS}),
    "histogram": (partial(lc.stats.histogram, edges=[0, 50, 100]), ROWS, {}),
    "gram": (lc.stats.gram, ROWS, {"bounds": (-20, 100)}),
    "quantiles": (partial(lc.stats.quantile, q=[0.1, 0.5], grid=range(0, 101, 10)), ROWS, {}),
    "categories": (partial(lc.stats.categories, levels=["A", "B"]), TABLE["ward"], {}),
    "means by group": (lc.stats.group_by(KEYS, "mean", of=["cost", "stay"]), TABLE, {"bounds": BOUNDS}),
    "counts by group": (lc.stats.group_by(KEYS), TABLE, {}),
    "groups of polars": (lc.stats.group_by(KEYS, "sum", of="cost"), polars.from_pandas(TABLE), {"bounds": BOUNDS}),
    "own": (
        lc.additive(lambda rows: [1.0, float(rows[0, 0] > 60)], finish=lambda s: {"share": s[1] / max(s[0], 1.0)}),
        ROWS,
        {"bounds": (0, 1)},
    ),
    "blocks": (lc.blocks(lambda rows: np.median(rows, axis=0), blocks=4, bounds=([0, 0], [100, 100])), ROWS, {}),
    "three rows each": (lc.stats.mean, ROWS, {"bounds": BOUNDS, "unit": np.arange(30) // 3, "rows_per_unit": 2}),
}


class Rigged:
    """Noise that leads from the sums of a plan to one and the same grid point."""

    def __init__(self, plan: lc.Plan, point: np.ndarray, jitter: float) -> None:
        self.plan, self.target = plan, (point + jitter) * GRID

    def normals(self, size: int) -> np.ndarray:
        total = self.plan.releaser.total
        whole = total // round(GRID / POOL.FINE)  # steps are added after the noise is rounded
        return self.target - whole * GRID - (total * POOL.FINE - whole * GRID)


def seen(name: str, point: float, kept: slice) -> dict[str, bytes]:
    fn, data, options = QUESTIONS[name]
    unit = {"unit": options["unit"][kept]} if "unit" in options else {}
    some = data.iloc[kept] if hasattr(data, "iloc") else data[kept]
    plan = lc.plan(fn, some, cap=lc.pool_membership(0.55), **options | unit)
    rank = plan.noise.space.rank
    plan._token = new_token()
    plan.randomness = Rigged(plan, np.arange(rank) * 3.0 + point, JITTERS[kept.start or 0])
    return public_artefacts(plan.release())


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("point", [0.0, 40_000.0])
def test_public_bytes_are_the_same_without_the_person(name: str, point: float) -> None:
    first = 3 if name == "three rows each" else 1
    with_person, without = seen(name, point, slice(None)), seen(name, point, slice(first, None))
    assert with_person == without
    assert "intervals" in with_person


@pytest.mark.parametrize("unit", [None, "ward"])
def test_row_numbers_of_a_table_do_not_tell_how_many_came_before(unit: str | None) -> None:
    """Somebody who leaves moves everybody else up by a row: what the others bring must not change with that."""
    table = TABLE.reset_index(drop=True)
    options = {"unit": unit, "rows_per_unit": 3} if unit else {}
    place = lc.additive(lambda rows: float(rows.index[-1]))
    plans = [
        lc.plan(place, some.reset_index(drop=True), cap=lc.pool_membership(0.55), bounds=(0, 40), **options)
        for some in (table, table[table.ward != "alone"])
    ]
    moved = abs(plans[0].run.brings.values.sum() - plans[1].run.brings.values.sum())
    assert moved <= 2
    kept = lc.blocks(lambda rows: float(rows.index[-1]), blocks=2, bounds=(0, 40))
    lengths = kept.counted((table,), [np.arange(20), np.arange(20, 30)])[0] + 20
    assert lengths.ravel().tolist() == [19.0, 9.0]


def test_another_point_is_another_release() -> None:
    assert seen("mean", 0.0, slice(None))["pickled release"] != seen("mean", 5.0, slice(None))["pickled release"]


@pytest.mark.parametrize("leak", ["the number of people", "the sums"])
def test_planted_leaks_are_caught(leak: str, monkeypatch: Any) -> None:
    if leak == "the number of people":
        certified = POOL.certificate
        monkeypatch.setattr(
            POOL, "certificate", lambda *given, **figures: certified(*given, **figures | {"bounds": people[0]})
        )
        people = [30]
        first = seen("mean", 0.0, slice(None))
        people[0] = 29
        assert first != seen("mean", 0.0, slice(1, None))
        return
    released = POOL.released_vector

    def leaky(noise: Any, coordinates: Any, step: float, randomness: Any, *, whole: Any) -> Any:
        return released(noise, coordinates, step, randomness, whole=whole) + 1e-9 * whole

    monkeypatch.setattr(POOL, "released_vector", leaky)
    assert seen("sum", 40_000.0, slice(None)) != seen("sum", 40_000.0, slice(1, None))
