"""Running a function in every world: what it receives, how far it is, and that workers change nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import leakcap as lc
from leakcap.errors import OwnNoiseWarning
from leakcap.simulate import Forecast, Pool, Progress, run_worlds
from leakcap.simulate.progress import STAGES
from leakcap.worlds import Units, Worlds, draw_worlds

rng = np.random.default_rng(21)
X = rng.normal(size=(30, 2))
PERSON = np.repeat(np.arange(10), 3)
TABLE = pd.DataFrame(X, columns=["a", "b"]).assign(person=PERSON)


def worlds_over(n: int, m: int = 16, rate: float = 0.5) -> Worlds:
    return draw_worlds(n, m, np.random.default_rng(3), rate)


def run(fn: Any, *data: Any, unit: Any = None, m: int = 16, **options: Any) -> tuple[Any, Worlds]:
    pool = Pool(data)
    units = Units.of(pool.rows, unit)
    worlds = worlds_over(units.count, m)
    return run_worlds(fn, pool, units, worlds, **options), worlds


# What comes out


def test_every_row_of_the_table_is_the_functions_answer_in_that_world() -> None:
    found, worlds = run(lambda x: {"mean": x.mean(axis=0), "n": len(x)}, X)
    expected = np.array([np.r_[X[mask].mean(axis=0), mask.sum()] for mask in worlds.masks()])
    assert np.array_equal(found.table, expected)
    assert np.array_equal(found.whole_pool, np.r_[X.mean(axis=0), 30])


def test_every_world_runs_once_and_the_whole_pool_once_more() -> None:
    sizes: list[int] = []
    run(lambda x: sizes.append(len(x)) or x.mean(), X, m=16)
    assert sorted(sizes) == [15] * 16 + [30]


@pytest.mark.parametrize("m", [2, 4, 16, 18])
def test_any_number_of_worlds_is_filled(m: int) -> None:
    found, worlds = run(lambda x: x.mean(), X, m=m)
    assert np.array_equal(found.table[:, 0], [X[mask].mean() for mask in worlds.masks()])


def test_without_an_answer_on_the_whole_pool_there_is_none() -> None:
    def half_only(x: np.ndarray) -> float:
        if len(x) == 30:
            raise ValueError
        return x.mean()

    assert run(half_only, X)[0].whole_pool is None
    assert run(lambda x: x.mean() if len(x) < 30 else np.nan, X)[0].whole_pool is None
    assert run(lambda x: x.mean() if len(x) < 30 else np.zeros(3), X)[0].whole_pool is None


def test_a_function_with_randomness_of_its_own_is_run_once_per_world_and_kept() -> None:
    own = np.random.default_rng(1)
    with pytest.warns(OwnNoiseWarning, match="gives another answer each time"):
        plan = lc.plan(lambda x: x.mean() + own.normal(), X, cap=lc.mutual_information(0.3), worlds=16, seed=2)
    kept = plan.outputs.copy()
    plan.release()
    assert np.array_equal(plan.outputs, kept)


# Workers


@pytest.mark.parametrize("backend", ["threads", "processes"])
@pytest.mark.parametrize("m", [2, 16])
def test_workers_give_exactly_what_the_serial_run_gives(backend: str, m: int) -> None:
    def fn(x: np.ndarray) -> dict[str, Any]:
        return {"mean": x.mean(axis=0), "product": (x[:, 0] @ x[:, 1]), "n": len(x)}

    serial, _ = run(fn, X, m=m)
    parallel, _ = run(fn, X, m=m, backend=backend, workers=2)
    assert parallel.table.tobytes() == serial.table.tobytes()
    assert parallel.whole_pool.tobytes() == serial.whole_pool.tobytes()
    assert list(parallel.node.labels()) == list(serial.node.labels())
    assert not list(parallel.node.differences(serial.node))


@pytest.mark.parametrize("backend", ["threads", "processes"])
def test_plans_made_by_workers_equal_serial_ones_to_the_last_bit(backend: str) -> None:
    options = {"cap": lc.mutual_information(0.3), "worlds": 16, "draws": 256, "seed": 9, "unit": "person"}
    serial = lc.plan(lambda t: t.mean(), TABLE, **options)
    parallel = lc.plan(lambda t: t.mean(), TABLE, backend=backend, workers=2, **options)
    assert parallel.outputs.tobytes() == serial.outputs.tobytes()
    assert parallel.certificate == serial.certificate
    assert parallel.release()._vector.tobytes() == serial.release()._vector.tobytes()


def test_large_data_travel_to_processes_unchanged() -> None:
    big = np.random.default_rng(0).normal(size=(300, 1000))  # above the size at which arrays are memory-mapped
    serial, _ = run(lambda x: x.sum(axis=1)[:5], big, m=4)
    parallel, _ = run(lambda x: x.sum(axis=1)[:5], big, m=4, backend="processes", workers=2)
    assert parallel.table.tobytes() == serial.table.tobytes()


def test_a_function_may_change_its_rows_without_changing_the_pool() -> None:
    before = X.copy()

    def rude(x: np.ndarray) -> float:
        x *= 0
        return float(len(x))

    run(rude, X)
    assert np.array_equal(X, before)
    table = TABLE.copy()

    def spoil(t: pd.DataFrame) -> float:
        t.loc[:, "a"] = 0.0
        return 1.0

    run(spoil, table)
    pd.testing.assert_frame_equal(table, TABLE)


# Progress


@pytest.mark.parametrize("options", [{}, {"backend": "threads", "workers": 2}], ids=["serial", "threads"])
def test_a_watcher_sees_the_forecast_first_and_then_steady_progress(options: dict[str, Any]) -> None:
    seen: list[Progress] = []
    found, _ = run(lambda x: x.mean(axis=0), X, m=64, watch=seen.append, **options)
    done = [state.done for state in seen]
    assert done == sorted(done)
    assert done[0] == 2
    assert done[-1] == 64
    assert {state.total for state in seen} == {64}
    assert [state.seconds for state in seen] == sorted(state.seconds for state in seen)
    assert all(state.forecast == found.forecast for state in seen)
    assert seen[-1].seconds_left == 0
    assert all(state.seconds_left >= 0 for state in seen)
    assert found.forecast.worlds == 64
    assert found.forecast.seconds_per_world > 0
    assert found.forecast.output_bytes == 64 * 2 * 8


def test_the_forecast_follows_from_one_timed_world() -> None:
    forecast = Forecast(worlds=1000, workers=4, seconds_per_world=0.2, output_bytes=2**20)
    assert forecast.seconds == pytest.approx(50)
    assert "1,000 worlds" in str(forecast)
    assert "50 s" in str(forecast)
    assert "1 MiB" in str(forecast)
    assert Progress(0, 1000, 0.0, forecast).seconds_left == pytest.approx(50)
    assert Progress(250, 1000, 10.0, forecast).seconds_left == pytest.approx(30)


@pytest.mark.parametrize("workers", [1, 2, -1])
def test_a_forecast_is_never_negative(workers: int) -> None:
    """-1 means all cores to joblib: either it is refused, or the forecast knows how many that is."""
    try:
        found, _ = run(lambda x: x.mean(), X, backend="threads", workers=workers)
    except lc.InputError:
        assert workers < 0
        return
    assert found.forecast.workers >= 1
    assert found.forecast.seconds > 0


def test_a_watcher_that_raises_stops_the_run() -> None:
    class StopHere(Exception):
        pass

    def stop(state: Progress) -> None:
        raise StopHere

    with pytest.raises(StopHere):
        run(lambda x: x.mean(), X, watch=stop)


def test_the_bar_writes_to_standard_error_only(capfd: Any) -> None:
    lc.plan(lambda x: x.mean(), X, cap=lc.mutual_information(0.3), worlds=16, draws=256, progress=True)
    shown = capfd.readouterr()
    assert shown.out == ""


def test_a_watcher_sees_every_stage_of_a_plan() -> None:
    seen: list[Progress] = []
    lc.plan(lambda x: x.mean(axis=0), X, cap=lc.membership(0.7), worlds=16, draws=256, progress=seen.append)
    assert list(dict.fromkeys(state.stage for state in seen)) == list(STAGES)
    assert seen[-1].done == seen[-1].total == 100


# What goes in


SOURCES: dict[str, Any] = {
    "array": X,
    "frame": TABLE[["a", "b"]],
    "series": TABLE["a"],
    "csr": sp.csr_matrix(X),
    "coo": sp.coo_matrix(X),
    "list": [tuple(row) for row in X.tolist()],
    "tuple": tuple(X[:, 0].tolist()),
    "cube": X.reshape(30, 2, 1).repeat(3, axis=2),
    "texts": np.array([f"t{i}" for i in range(30)]),
}


@pytest.mark.parametrize("name", SOURCES)
def test_the_function_receives_slices_of_the_kind_it_was_given(name: str) -> None:
    source = SOURCES[name]
    seen: list[Any] = []
    _, worlds = run(lambda x: seen.append(x) or 1.0, source, m=4)
    in_order = [0, 2, 1, 3]  # a world and its complement first, then the rest
    for world, part in zip(in_order, seen[:4], strict=True):
        chosen = np.flatnonzero(worlds.mask(world))
        if sp.issparse(part):
            assert part.format == "csr"
            assert np.array_equal(part.toarray(), X[chosen])
        elif isinstance(source, (pd.DataFrame, pd.Series)):
            assert type(part) is type(source)
            assert part.equals(source.iloc[chosen])
        else:
            assert type(part) is type(source)
            assert list(map(repr, part)) == [repr(source[i]) for i in chosen]


def test_all_arguments_are_sliced_alike() -> None:
    rows = np.arange(30)

    def aligned(x: np.ndarray, t: pd.DataFrame, s: Any, names: list[int], y: pd.Series) -> float:
        assert np.array_equal(x, t[["a", "b"]].to_numpy())
        assert np.array_equal(x, s.toarray())
        assert np.array_equal(x, X[names])
        assert np.array_equal(y.to_numpy(), x[:, 0])
        return 1.0

    run(aligned, X, TABLE, sp.csr_matrix(X), rows.tolist(), TABLE["a"])


def test_units_move_together() -> None:
    rows_of = {person: set(np.flatnonzero(person == PERSON)) for person in range(10)}
    seen: list[set[int]] = []
    labels = np.array([f"id {person}" for person in PERSON])[::-1]
    _, worlds = run(lambda i: seen.append(set(i.tolist())) or 1.0, np.arange(30), unit=labels[::-1], m=8)
    assert worlds.n == 10
    for rows in seen[:-1]:
        present = {person for person in range(10) if rows & rows_of[person]}
        assert len(present) == 5
        assert rows == set().union(*(rows_of[person] for person in present))


def test_units_of_many_sizes_and_kinds_of_label_are_counted_as_people() -> None:
    labels = ["x"] * 20 + ["y"] * 5 + list("abcde")
    seen: list[int] = []
    _, worlds = run(lambda x: seen.append(len(x)) or 1.0, X, unit=labels, m=64)
    assert worlds.n == 7
    assert set(seen[:-1]) != {15}, "a person with 20 rows makes worlds of different sizes"
    assert Units.of(4, np.array([3, "a", 3, None], dtype=object)[[0, 1, 2, 1]]).count == 2
    assert Units.of(3, pd.Categorical(["b", "a", "b"])).count == 2


def test_a_named_unit_column_is_dropped_before_the_function() -> None:
    columns: set[tuple[str, ...]] = set()
    people: list[int] = []

    def fn(t: pd.DataFrame, x: np.ndarray) -> float:
        columns.add(tuple(t.columns))
        people.append(len({PERSON[i] for i in t.index}))
        assert np.array_equal(t.to_numpy(), x)
        return 1.0

    plan = lc.plan(fn, TABLE, X, unit="person", cap=lc.membership(0.6), worlds=8)
    assert columns == {("a", "b")}
    assert set(people[:-1]) == {5}
    assert plan.worlds.n == 10
    assert "person" in TABLE.columns, "the custodian's own table is left alone"


@pytest.mark.filterwarnings("ignore::leakcap.errors.RepeatedIdsWarning")  # people are not what is looked at
def test_a_named_strata_column_stays_for_the_function() -> None:
    table = TABLE.assign(kind=np.arange(30) % 2)
    columns: set[tuple[str, ...]] = set()
    counts: set[tuple[int, ...]] = set()

    def fn(t: pd.DataFrame) -> float:
        columns.add(tuple(t.columns))
        counts.add(tuple(np.bincount(t["kind"])))
        return 1.0

    table = table.rename(columns={"person": "ward"})
    lc.plan(fn, table.iloc[:28], strata="kind", cap=lc.membership(0.6), worlds=8)
    assert columns == {("a", "b", "ward", "kind")}
    assert counts == {(7, 7), (14, 14)}


def test_strata_belong_to_units() -> None:
    kind = np.repeat([0, 1], 15)
    people: set[tuple[int, int]] = set()

    def fn(i: np.ndarray) -> float:
        present = set(PERSON[i])
        people.add((len(present & set(range(5))), len(present & set(range(5, 10)))))
        return 1.0

    lc.plan(fn, np.arange(30), unit=PERSON, strata=kind, cap=lc.membership(0.6), worlds=16)
    assert people <= {(2, 3), (3, 2), (5, 5)}


def test_one_person_under_equal_labels_of_different_kinds_is_not_split() -> None:
    """Splitting a person would promise half of them what was asked for the whole; merging two only costs noise."""
    assert Units.of(4, np.array([1, 1.0, 2, np.int8(2)], dtype=object)).count == 2
    assert Units.of(4, np.array([1, "1", "2", 2], dtype=object)).count == 2  # as in a table read in pieces
