"""All worlds at once or one by one: chosen by counting, the same every time, kept, told."""

from __future__ import annotations

import functools
import logging
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap import estimators as le
from leakcap.errors import OutputError
from leakcap.ground.cores import threads
from leakcap.kernels import Costs, deviation_of, kernel_of, offers
from leakcap.kernels.moments import in_blocks, moments, moments_cost
from leakcap.simulate import Outputs, Pool, run_worlds
from leakcap.worlds import Units, draw_worlds

rng = np.random.default_rng(8)
X = rng.normal(size=(40, 3))
PLAN: dict[str, Any] = {"cap": lc.membership(0.9), "worlds": 16, "draws": 256}
KERNEL, LOOP = "all worlds at once", "world by world"


def served(data: tuple[Any, ...], units: Units, worlds: Any, price: float = 1.0, memory: int = 0) -> np.ndarray:
    return np.stack([data[0][units.rows_in(worlds.mask(w))].mean(axis=0) for w in range(worlds.m)])


def priced(data: tuple[Any, ...], units: Units, worlds: Any, memory: int, price: float = 1.0) -> Costs:
    return Costs(kernel=price * worlds.m, loop=2.0 * worlds.m, bytes=2**30)


@offers(served, forecast=priced)
def mean(rows: np.ndarray, price: float = 1.0) -> np.ndarray:
    return rows.mean(axis=0)


def run(fn: Any, m: int = 16, **options: Any) -> Outputs:
    return run_worlds(fn, Pool((X,)), Units.of(40, None), draw_worlds(40, m, np.random.default_rng(3)), **options)


@pytest.mark.parametrize(("price", "memory", "way"), [(1, 2**31, KERNEL), (3, 2**31, LOOP), (1, 2**28, LOOP)])
def test_the_cheaper_way_that_fits_into_memory_is_taken_and_told(
    price: float, memory: int, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="leakcap"):
        found = run(functools.partial(mean, price=price), memory=memory)
    assert way in found.forecast.way and way in str(found.forecast)
    assert [record.getMessage().startswith(f"worlds are run {way}") for record in caplog.records] == [True]
    assert np.allclose(found.table, run(mean).table, rtol=1e-12)


def test_a_kernel_that_does_not_serve_leaves_its_worlds_to_the_loop_and_says_so() -> None:
    @offers(lambda data, units, worlds: None)
    def plain(rows: np.ndarray) -> np.ndarray:
        return rows.mean(axis=0)

    found = run(plain)
    assert found.forecast.way == f"{LOOP}: the kernel does not serve these data"
    assert np.allclose(found.table, run(mean).table, rtol=1e-12)


def test_without_a_kernel_there_is_no_choice() -> None:
    assert run(lambda rows: rows.mean(axis=0)).forecast.way == ""


def test_the_plan_shows_what_was_chosen() -> None:
    plan = lc.plan(functools.partial(mean, price=3.0), X, **PLAN, seed=1)
    assert LOOP in str(plan.summary())


def test_a_resumed_run_keeps_the_way_that_it_began_with(tmp_path: Path, monkeypatch: Any) -> None:
    first = lc.plan(mean, X, **PLAN, checkpoint=tmp_path / "plan")
    # Another version counts otherwise, and some answers are gone: those that are made again come by the same way.
    monkeypatch.setattr("leakcap.custody.checkpoint.Checkpoint.rows", lambda *_: iter(()))
    monkeypatch.setattr(mean, "forecast", lambda *_, **__: Costs(kernel=2.0, loop=1.0))
    again = lc.plan(mean, X, **PLAN, checkpoint=tmp_path / "plan")
    assert again.run.simulation.forecast.way == first.run.simulation.forecast.way
    assert KERNEL in again.run.simulation.forecast.way
    assert np.array_equal(first.outputs, again.outputs)
    assert LOOP in run(mean).forecast.way, "the planted forecast would have chosen the loop"


def test_the_loop_in_the_place_of_a_kernel_has_all_cores_unless_workers_are_given(monkeypatch: Any) -> None:
    monkeypatch.setattr("leakcap.simulate.run.SHORT", 0.0)
    dear = functools.partial(mean, price=3.0)
    assert run(dear).forecast.workers == threads()
    assert run(dear, workers=1).forecast.workers == 1
    assert run(dear, backend="serial").forecast.workers == 1


# Principal components


def computation(table: np.ndarray, components: int) -> Any:
    private = le.PCA(components, random_state=0)
    return private._computation(private._rows(table, None, None))


def flat(answer: dict[str, np.ndarray]) -> np.ndarray:
    return np.concatenate([np.ravel(part) for part in answer.values()])


WIDE = rng.normal(size=(300, 270)) * np.linspace(3, 1, 270)
TIED = np.vstack([np.eye(6) * 4, -np.eye(6) * 4] * 5)  # every direction has the same variance


@pytest.mark.parametrize("table", [X @ np.diag([5.0, 2.0, 1.0]), WIDE], ids=["narrow", "wide"])
def test_components_of_all_worlds_are_those_of_the_function(table: np.ndarray) -> None:
    job, n = computation(table, 2), len(table)
    worlds, units = draw_worlds(n, 6, np.random.default_rng(1)), Units.of(n, None)
    kernel = kernel_of(job.answer)
    assert kernel is not None
    for world, numbers in enumerate(kernel(job.data, units, worlds)):
        expected = flat(job.answer(table[worlds.mask(world)]))
        assert np.abs(numbers - expected).max() < 1e-9 * np.abs(expected).max()


def test_where_components_are_anybodys_choice_both_choices_agree() -> None:
    job = computation(TIED, 2)
    deviation, frame = deviation_of(job.answer), job.answer.keywords["frame"]
    assert deviation is not None
    turned = np.eye(6)[[4, 5]]
    leading = np.stack([np.eye(6)[[0, 1]], turned])
    spread = np.full((2, 2), TIED.var(axis=0, ddof=1)[0])
    total = np.full(2, TIED.var(axis=0, ddof=1).sum())
    one, other = (
        np.concatenate([part[i].ravel() for part in frame.encode(np.zeros((2, 6)), leading, spread, total)])
        for i in range(2)
    )
    assert np.abs(one - other).max() > 1e-4, "the two are told by different numbers"
    assert deviation(one, other, (TIED,)) < 1e-9


@pytest.mark.parametrize("part", ["leans", "beyond", "within", "variance", "total"])
def test_a_planted_fault_in_any_part_of_the_components_is_seen(part: str) -> None:
    table = X @ np.diag([5.0, 2.0, 1.0])
    job = computation(table, 2)
    right = job.answer(table[:20])
    wrong = {name: value + 1e-3 * np.abs(value).max() * (name == part) for name, value in right.items()}
    deviation = deviation_of(job.answer)
    assert deviation is not None
    assert deviation(flat(right), flat(right), (table[:20],)) < 1e-12
    assert deviation(flat(wrong), flat(right), (table[:20],)) > 1e-9


def test_a_kernel_with_wrong_components_is_refused(monkeypatch: Any) -> None:
    job = computation(X @ np.diag([5.0, 2.0, 1.0]), 2)
    pools = job.answer.keywords["frame"].inside
    monkeypatch.setattr("leakcap.estimators.pca.in_parts", lambda _, scatter: [np.tile(pools, (len(scatter), 1, 1))])
    with pytest.raises(OutputError, match="different answers"):
        run_worlds(job.answer, Pool(job.data), Units.of(40, None), draw_worlds(40, 8, np.random.default_rng(1)))


def test_components_are_checked_in_thirds_strata_and_people_too(monkeypatch: Any) -> None:
    job = computation(X @ np.diag([5.0, 2.0, 1.0]), 2)
    assert lc.testing.check_kernel(job.answer, None, *job.data) < 1e-12
    monkeypatch.setattr(
        "leakcap.estimators.pca._spread", lambda scatter, _: (np.ones((len(scatter), 2)), scatter[:, 0, 0])
    )
    with pytest.raises(OutputError, match="differ"):
        lc.testing.check_kernel(job.answer, None, *job.data)


# Moments


def test_moments_by_matrix_products_are_those_by_sums(monkeypatch: Any) -> None:
    people = Units.of(300, np.arange(300) // 2)
    for units, rate in ((None, 0.5), (people, 1 / 3)):
        worlds = draw_worlds(300 if units is None else 150, 12, np.random.default_rng(2), rate)
        found = []
        for cheaper in (True, False):
            monkeypatch.setattr("leakcap.kernels.moments.entry.products_are_cheaper", lambda *_, c=cheaper: c)
            found.append(moments(WIDE[:, :40] + 100, worlds, units))
        assert np.allclose(found[0].mean, found[1].mean, rtol=1e-13)
        assert np.abs(found[0].scatter - found[1].scatter).max() < 1e-11 * np.abs(found[1].scatter).max()


def test_which_moments_are_cheaper_is_counted() -> None:
    worlds = draw_worlds(100, 64, np.random.default_rng(0))
    sums, products = moments_cost(50_000, 784, worlds)
    assert products < sums / 5
    many = draw_worlds(100, 1024, np.random.default_rng(0))
    sums, products = moments_cost(50_000, 8, many)
    assert sums < products / 2


def test_worlds_in_blocks_are_all_worlds_once_with_their_mates() -> None:
    for rate in (0.5, 1 / 3):
        worlds = draw_worlds(30, 12, np.random.default_rng(0), rate)
        blocks = list(in_blocks(worlds, 5))
        assert len(blocks) > 1
        assert sorted(np.concatenate([numbers for numbers, _ in blocks])) == list(range(12))
        for numbers, some in blocks:
            assert np.array_equal(some.masks(), worlds.masks()[numbers])
            if worlds.paired:
                assert np.array_equal(some.masks()[: some.m // 2], ~some.masks()[some.m // 2 :])


def test_components_obey_memory_and_are_the_same() -> None:
    worlds = draw_worlds(300, 64, np.random.default_rng(0))
    job, units = computation(WIDE, 2), Units.of(300, None)
    found, peaks = [], []
    for memory in (2**24, 2**31):
        kernel = kernel_of(job.answer, memory=memory)
        assert kernel is not None
        tracemalloc.start()
        found.append(kernel(job.data, units, worlds))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[0] < 2**24 < peaks[1], peaks
    assert np.allclose(*found, rtol=0, atol=1e-11)
