"""`worlds="auto"`: a number that sizes decide, before anything runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.ground.cores import Machine
from leakcap.kernels import kernel
from leakcap.planning import how_many
from leakcap.planning.entry import stored_plan
from leakcap.planning.how_many import number_of_worlds
from leakcap.planning.job import Job
from leakcap.simulate import Pool
from leakcap.worlds import Units
from tests.unit.planning.chosen import CALLS, X, counted

CAP = (lc.membership(0.6),)
SETTINGS: dict[str, Any] = {"cap": lc.mutual_information(0.3), "draws": 256, "seed": 7}


def never(*_: Any, **__: Any) -> Any:
    raise AssertionError("nothing runs before the number is known")


SERVED = kernel(never)


def number(rows: int = 100, columns: int = 2, fn: Any = SERVED, caps: Any = CAP, **options: Any) -> int:
    table = np.broadcast_to(np.nan, (rows, columns))
    job = Job(fn, Pool((table,)), Units.of(rows, None), frozenset(), backend=None, workers=None, device=None)
    kept = {"rate": 0.5, "mode": "exact", "machine": Machine(options.pop("memory", 2**31))} | options
    return number_of_worlds(job, caps, **kept)


def test_a_kernel_gets_four_times_as_many_as_a_loop() -> None:
    assert number() == 4096
    assert number(fn=never) == 1024


@pytest.mark.parametrize(
    ("sizes", "worlds"),
    [
        ({"rows": 16_384}, 4096),
        ({"rows": 16_385}, 2048),
        ({"rows": 32_769}, 1024),
        ({"rows": 5_000_000}, 1024),
        ({"rows": 8192, "columns": 1}, 4096),
        ({"rows": 8193, "columns": 1}, 2048),
        ({"rows": 2000, "columns": 132}, 2048),
        ({"rows": 2000, "columns": 784}, 1024),
        ({"rows": 16_000, "memory": 2**24}, 2048),
        ({"rate": 1 / 3}, 4098),
        ({"rate": 3 / 4, "fn": never}, 1024),
        ({"rate": 1 / 3, "fn": never}, 1026),
        ({"mode": "confidence"}, 1024),
        ({"mode": "individual"}, 1024),
        ({"caps": (lc.identification(0.0006),), "fn": never}, 2048),
        ({"caps": (lc.identification(0.0003),), "fn": never}, 4096),
    ],
)
def test_sizes_decide(sizes: dict[str, Any], worlds: int) -> None:
    assert number(**sizes) == worlds


def test_caps_that_no_such_number_keeps_are_refused_as_for_a_number() -> None:
    with pytest.raises(lc.CapError, match="choose a cap above"):
        lc.plan(never, X, cap=lc.identification(1e-5), worlds="auto")


@pytest.mark.parametrize("units", [4, 9])
def test_small_pools_have_more_worlds_than_halves(units: int) -> None:
    plan = lc.plan(lc.stats.mean, X[:units, 1:], worlds="auto", **SETTINGS)
    assert plan.worlds.m == 4096
    assert plan.certificate.capped[0].certified <= 0.3


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(how_many, "SERVED_WORLDS", (64, 32))
    monkeypatch.setattr(how_many, "LOOPED_WORLDS", 16)


@pytest.mark.usefixtures("few")
def test_the_plan_is_that_of_the_number_and_tells_nothing_more() -> None:
    chosen, given = (lc.plan(lc.stats.mean, X[:, 1:], worlds=worlds, **SETTINGS) for worlds in ("auto", 64))
    assert chosen.worlds.m == 64
    assert chosen.certificate.to_json() == given.certificate.to_json()


@pytest.mark.usefixtures("few")
def test_a_run_is_kept_under_its_number(tmp_path: Path) -> None:
    CALLS.clear()
    plan = lc.plan(counted, X, worlds="auto", checkpoint=tmp_path, **SETTINGS)
    assert (plan.worlds.m, len(CALLS)) == (16, 17)
    again = lc.plan(counted, X, worlds=16, checkpoint=tmp_path, **SETTINGS)
    assert len(CALLS) == 17, "a finished run runs nothing"
    assert stored_plan(tmp_path).certificate == plan.certificate == again.certificate


@pytest.mark.usefixtures("few")
def test_estimators_and_other_modes_take_it(monkeypatch: pytest.MonkeyPatch) -> None:
    model = lc.estimators.Mean(cap=lc.mutual_information(0.3), worlds="auto", random_state=1, options={"draws": 256})
    assert model.fit(X[:, 1:]).plan_.worlds.m == 64
    monkeypatch.setattr(how_many, "LOOPED_WORLDS", 64)  # the least that this mode takes
    assert lc.plan(counted, X, worlds="auto", cap=SETTINGS["cap"], mode="confidence", seed=1).worlds.m == 64
