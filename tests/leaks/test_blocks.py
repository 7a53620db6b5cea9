"""A release of an average over blocks shows its grid point, and nothing of the coins or of what blocks did."""

from __future__ import annotations

import importlib
import logging
import sys
import warnings
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.noise import GRID
from leakcap.worlds import Units
from tests.leaks.rigged import JITTERS, X, new_token, public_artefacts

POOL = importlib.import_module("leakcap.modes.pool")
NAMED = X[:, 1]


def loud(rows: np.ndarray) -> float:
    """Tells everything it sees, in every way there is."""
    print("rows", rows)
    print("rows", rows, file=sys.stderr)
    logging.getLogger("loud").error("rows %s", rows)
    warnings.warn(f"rows {rows}", UserWarning, stacklevel=1)
    if len(rows) % 2:
        raise ValueError(f"rows {rows}")
    return float(rows.mean())


def planned(fn: Any = np.median) -> lc.Plan:
    return lc.plan(lc.blocks(fn, blocks=3, bounds=(0, 10)), NAMED, cap=0.7, design="bits")


class Rigged:
    """Draws chosen coins, and noise that leads from their sums to one and the same grid point."""

    def __init__(self, plan: lc.Plan, coins: int, point: float, jitter: float) -> None:
        self.coins, self.target = coins, (point + jitter) * GRID
        self.releaser = plan.releaser

    def bits(self) -> np.random.Generator:
        return np.random.default_rng(self.coins)

    def normals(self, size: int) -> np.ndarray:
        deviations = self.releaser.noise.deviations
        answers = self.releaser.brings.answers(self.releaser.draw(self))
        total = POOL.exact_total(answers, deviations)
        whole = total // round(GRID / POOL.FINE)
        assert size == len(total)
        return self.target - whole * GRID - (total * POOL.FINE - whole * GRID)


def telling(plan: lc.Plan) -> set[str]:
    found = set()
    for point in (0.0, 4000.0):
        seen = []
        for coins in range(6):
            plan.randomness, plan._token = Rigged(plan, coins, point, JITTERS[coins % len(JITTERS)]), new_token()
            seen.append(public_artefacts(plan.release()))
        found |= {name for name in seen[0] if len({one[name] for one in seen}) > 1}
    return found


def test_public_bytes_are_the_same_whoever_took_part() -> None:
    assert telling(planned()) == set()


def test_a_planted_trace_of_the_coins_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    released = POOL.released_vector

    def leaky(noise: Any, coordinates: Any, step: float, randomness: Any, *, whole: Any) -> Any:
        return released(noise, coordinates, step, randomness, whole=whole) + 1e-9 * whole

    monkeypatch.setattr(POOL, "released_vector", leaky)
    assert telling(planned())


@pytest.mark.filterwarnings("ignore:the function")  # while it is planned, the custodian may hear
def test_nothing_is_heard_of_the_function_when_coins_have_fallen(capfd: Any, caplog: Any) -> None:
    plan = planned(loud)
    capfd.readouterr(), caplog.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan.release()
    assert capfd.readouterr() == ("", "")
    assert not caplog.records


def test_the_key_of_blocks_comes_from_the_operating_system() -> None:
    blocks = [planned().run.brings.of_row for _ in range(2)]
    assert not np.array_equal(*blocks)
    assert len(set(blocks[0].tolist())) > 1
    assert len(blocks[0]) == Units(len(NAMED), len(NAMED)).rows
