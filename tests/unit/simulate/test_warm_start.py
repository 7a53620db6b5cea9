"""A warm start: every world begins at the answer on the whole pool, and no world at another's."""

from __future__ import annotations

import functools
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap import stats
from leakcap.custody.vault import Vault
from leakcap.planning.entry import stored_plan
from leakcap.simulate import Pool, run, run_worlds
from leakcap.simulate import warm_start as start
from leakcap.simulate import worker as task
from leakcap.simulate.warm_start import takes_start
from leakcap.worlds import Units, Worlds, draw_worlds

rng = np.random.default_rng(8)
X = rng.normal(size=(30, 2)) + 3
CLASS = (X[:, 0] + rng.normal(size=30) > 3).astype(int)
SMALL: dict[str, Any] = {"cap": lc.mutual_information(0.3), "worlds": 16, "draws": 256}
WORDS = "its own answer on the whole pool"


def simulated(fn: Any, *data: Any, order: Any = None, **options: Any) -> Any:
    """Sixteen worlds, in another order if wanted; rows of the table in the first order."""
    pool = Pool(data or (X,))
    worlds = draw_worlds(pool.rows, 16, np.random.default_rng(3))
    places = np.arange(16) if order is None else order
    turned = Worlds(worlds.packed[places], worlds.n, worlds.share, False, worlds.design)
    found = run_worlds(fn, pool, Units.of(pool.rows, None), turned, **options)
    return found.table[np.argsort(places)], found


# Who gets one


def nothing(x: Any) -> Any: ...
def by_default(x: Any, start: Any = None) -> Any: ...
def by_keyword(x: Any, *, start: Any) -> Any: ...
def by_keyword_and_default(x: Any, y: Any, *, start: Any = None) -> Any: ...
def another_default(x: Any, start: int = 0) -> Any: ...
def an_argument(x: Any, start: Any) -> Any: ...
def only_by_place(x: Any, start: Any = None, /) -> Any: ...
def anything(*x: Any, **options: Any) -> Any: ...


@dataclass
class Fit:
    steps: int

    def __call__(self, x: Any, start: Any = None) -> Any: ...
    def method(self, x: Any, start: Any = None) -> Any: ...


@functools.wraps(by_default)
def wrapper(*given: Any) -> Any:
    return by_default(*given)


ASKS: list[tuple[Any, int, bool]] = [
    (nothing, 1, False),
    (by_default, 1, True),
    (by_default, 2, False),  # the second data argument goes there
    (by_keyword, 1, True),
    (by_keyword, 2, True),
    (by_keyword_and_default, 2, True),
    (another_default, 1, False),
    (an_argument, 1, False),
    (only_by_place, 1, False),
    (anything, 1, False),
    (Fit(3), 1, True),
    (Fit(3).method, 1, True),
    (wrapper, 1, False),  # takes none, whatever it wraps
    (functools.partial(by_default, start=3), 1, False),
    (functools.partial(by_keyword_and_default, X), 1, True),
    (functools.partial(by_default), 1, True),
    (sum, 1, False),
    (np.mean, 1, False),
    (stats.mean, 1, False),
]


@pytest.mark.parametrize(("fn", "arguments", "asks"), ASKS, ids=lambda one: getattr(one, "__name__", None))
def test_a_function_asks_for_a_start_by_a_parameter_that_is_none_unless_given(
    fn: Any, arguments: int, asks: bool
) -> None:
    assert takes_start(fn, arguments) is asks


# What they get


@pytest.mark.parametrize("options", [{}, {"backend": "threads", "workers": 2}], ids=["serial", "threads"])
def test_every_world_starts_at_the_answer_on_the_whole_pool_which_is_computed_once(options: dict[str, Any]) -> None:
    given: list[tuple[int, Any]] = []

    def fn(x: np.ndarray, start: Any = None) -> dict[str, Any]:
        given.append((len(x), start))
        return {"mean": x.mean(axis=0)}

    table, found = simulated(fn, **options)
    assert given[0] == (30, None)
    assert len(given) == 17
    assert all(rows == 15 and np.array_equal(one["mean"], X.mean(axis=0)) for rows, one in given[1:])
    assert np.array_equal(found.whole_pool, X.mean(axis=0))
    assert np.array_equal(table, simulated(lambda x: x.mean(axis=0))[0])


def greedy(x: np.ndarray, start: Any = None) -> dict[str, Any]:
    """Changes its start in every way it can, and answers by what it finds there."""
    if start is None:
        return {"mean": x.mean(axis=0), "steps": [0.0]}
    start["mean"] += x.mean(axis=0)
    start["steps"][0] += 1.0
    return {"mean": start["mean"].copy(), "steps": list(start["steps"])}


WAYS: dict[str, dict[str, Any]] = {
    "another order": {"order": np.random.default_rng(0).permutation(16)},
    "threads": {"backend": "threads", "workers": 3},
    "processes": {"backend": "processes", "workers": 2},
    "both": {"workers": 2},
}


def same_in_all_ways(ways: dict[str, dict[str, Any]], monkeypatch: Any) -> bool:
    monkeypatch.setattr(run, "SHORT", -1.0)
    expected = simulated(greedy)[0]
    return all(simulated(greedy, **options)[0].tobytes() == expected.tobytes() for options in ways.values())


def test_what_a_world_does_to_its_start_no_other_world_sees(monkeypatch: Any) -> None:
    assert same_in_all_ways(WAYS, monkeypatch)
    assert (simulated(greedy)[0][:, 2] == 1).all()


def test_a_start_that_is_handed_on_would_be_caught(monkeypatch: Any) -> None:
    """The planted twin: one object for all worlds of a process."""
    opened: dict[bytes, Any] = {}
    monkeypatch.setattr(
        start, "pickle", type("Shared", (), {"loads": staticmethod(lambda b: opened.setdefault(b, pickle.loads(b)))})
    )
    assert not same_in_all_ways({"another order": WAYS["another order"]}, monkeypatch)


def warm(x: np.ndarray, y: np.ndarray, start: Any = None) -> Any:
    from sklearn.linear_model import LogisticRegression  # workers of the tests above need none

    model = LogisticRegression(C=10, tol=1e-8, max_iter=500, warm_start=True)
    if start is not None:
        model.coef_, model.intercept_, model.classes_ = start.coef_, start.intercept_, start.classes_
    return model.fit(x, y)


def test_a_fitted_estimator_is_a_start() -> None:
    warmly, found = simulated(warm, X, CLASS, drop=["n_iter_"])
    coldly, _ = simulated(functools.partial(warm, start=None), X, CLASS, drop=["n_iter_"])
    assert found.start is not None
    assert np.allclose(warmly, coldly, rtol=1e-3, atol=1e-3)
    assert warmly.tobytes() != coldly.tobytes()


def test_a_function_with_a_kernel_chooses_its_own_start() -> None:
    def mean(x: np.ndarray, start: Any = None) -> np.ndarray:
        assert start is None
        return x.mean(axis=0)

    mean.kernel = stats.mean.kernel  # type: ignore[attr-defined]
    assert lc.plan(mean, X, **SMALL).outputs.shape == (16, 2)


# Certificates


def fresh(x: np.ndarray, start: Any = None) -> np.ndarray:
    return x.mean(axis=0) if start is None else (x.mean(axis=0) + start) / 2


@pytest.mark.parametrize("mode", ["exact", "confidence", "empirical"])
def test_the_certificate_lists_the_start_as_known_about_the_pool(mode: str) -> None:
    options = SMALL | {"worlds": 64, "mode": mode}
    with_start = lc.plan(fresh, X, **options).certificate
    assert any(WORDS in words for words in with_start.pool_public)
    assert WORDS in " ".join(str(with_start).split())
    without = lc.plan(lambda x: (x.mean(axis=0) + 3) / 2, X, **options).certificate
    assert not any(WORDS in words for words in without.pool_public)


def test_the_fresh_secret_world_has_the_same_start() -> None:
    given: list[Any] = []

    def fn(x: np.ndarray, start: Any = None) -> np.ndarray:
        given.append(start)
        return x.mean(axis=0)

    plan = lc.plan(fn, X, **(SMALL | {"worlds": 64, "mode": "confidence"}))
    assert len(given) == 65
    plan.release()
    assert len(given) == 66
    assert np.array_equal(given[-1], X.mean(axis=0))


# Stopped, and going on


CALLS: list[int] = []


def moody(x: np.ndarray, start: Any = None) -> np.ndarray:
    """A random answer on the whole pool, which every world repeats; sometimes none at all."""
    CALLS.append(len(x))
    if len(CALLS) in (1, 6, 9):
        raise ValueError
    return np.random.default_rng().normal(size=2) if start is None else start


def test_a_resumed_run_starts_where_it_had_started(tmp_path: Path, monkeypatch: Any) -> None:
    CALLS.clear()
    monkeypatch.setattr(task, "SAVED", -1.0)
    monkeypatch.setattr(run.Simulation, "_explained", lambda self, failed, worlds: str(failed))  # it would call again
    options = SMALL | {"checkpoint": tmp_path / "plan"}
    for _ in range(3):
        with pytest.raises(lc.OutputError):
            lc.plan(moody, X, **options)
    plan = lc.plan(moody, X, **options)
    assert len(set(map(bytes, plan.outputs))) == 1
    assert CALLS.count(30) == 2, "once in vain, once for good"
    assert len(CALLS) == 3 + 1 + 16 + 1, "and once more in the first world, to see whether it answers alike"
    assert stored_plan(tmp_path / "plan").certificate == plan.certificate
    assert lc.plan(moody, X, **options).outputs.tobytes() == plan.outputs.tobytes()
    assert len(CALLS) == 21


def failing(x: np.ndarray, start: Any = None) -> np.ndarray:
    if start is not None:
        raise ValueError
    return x.mean(axis=0)


def test_the_start_of_a_run_that_failed_is_none_for_another(tmp_path: Path) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (its own)
        lc.plan(failing, X, checkpoint=tmp_path / "plan", **SMALL)
    plan = lc.plan(fresh, X + 1, checkpoint=tmp_path / "plan", **SMALL)
    for found, mask in zip(plan.outputs, plan.worlds.masks(), strict=True):
        assert np.allclose(found, ((X + 1)[mask].mean(axis=0) + (X + 1).mean(axis=0)) / 2)


def test_the_stored_start_is_sealed(tmp_path: Path) -> None:
    pytest.importorskip("cryptography")

    def fn(x: np.ndarray, start: Any = None) -> dict[str, float]:
        return {"remarkable": float(x.mean())}

    lc.plan(fn, X, checkpoint=tmp_path / "plan", **SMALL)
    files = {path.name: path.read_bytes() for path in (tmp_path / "plan").iterdir()}
    assert "warm start" in Vault.existing(tmp_path / "plan").names()
    assert not any(b"remarkable" in content for content in files.values())


# Failures


def test_a_function_without_an_answer_on_the_whole_pool_has_no_start() -> None:
    def fn(x: np.ndarray, start: Any = None) -> float:
        if len(x) == 30:
            raise ValueError(f"{x[0, 0]}")
        return x.mean()

    with pytest.raises(ValueError, match=f"{X[0, 0]}") as caught:
        lc.plan(fn, X, **SMALL)
    assert type(caught.value) is ValueError, "the function's own error"


def test_an_answer_that_cannot_be_copied_is_no_start() -> None:
    class Answer(dict[str, Any]):
        def __reduce__(self) -> Any:
            raise RuntimeError(f"{X[0, 0]}")

    def fn(x: np.ndarray, start: Any = None) -> Any:
        return Answer(mean=x.mean())

    with pytest.raises(lc.OutputError, match="cannot be copied") as caught:
        lc.plan(fn, X, **SMALL)
    assert f"{X[0, 0]}" not in str(caught.value)
    assert caught.value.__context__ is None
