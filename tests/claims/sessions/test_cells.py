"""One number as a finite channel: what is drawn is what is charged."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from leakcap.errors import InputError, NumericalError, OutputError
from leakcap.noise import OperatingSystem
from leakcap.sessions.listed_worlds import cells as channel
from leakcap.sessions.listed_worlds.cells import SCALE, Channel, cells_of
from leakcap.sessions.listed_worlds.engine import ListedWorlds
from leakcap.sessions.listed_worlds.posterior import Posterior
from tests.claims.sessions.play import engine_of, pool

mpmath = pytest.importorskip("mpmath")
OUTPUTS = {
    "spread": np.random.default_rng(0).standard_normal(64),
    "all alike": np.full(8, 3.25),
    "two values": np.array([0.0, 1, 0, 1]),
    "one far away": np.array([0.0, 0.1, -0.3, 1e6]),
    "many far apart": 1e5 * np.arange(12.0),
    "large": 1e9 + np.random.default_rng(1).standard_normal(16),
}


@pytest.mark.parametrize("noise", [0.05, 1.0, 30.0])
@pytest.mark.parametrize("name", OUTPUTS)
def test_every_row_adds_up_exactly_and_is_near_the_normal_law(name: str, noise: float) -> None:
    outputs = OUTPUTS[name]
    table = cells_of(outputs, noise)
    assert table.counts.dtype == np.int64 and table.counts.min() >= 0
    assert [sum(map(int, row)) for row in table.counts] == [SCALE] * len(outputs)
    mean = (table.masses() * table.values).sum(axis=1)
    spread = np.sqrt((table.masses() * (table.values - outputs[:, None]) ** 2).sum(axis=1))
    assert np.abs(mean - outputs).max() < 0.01 * noise, "far worlds have cells of their own"
    assert np.abs(spread / noise - 1).max() < 0.015, "two per cent more variance, from cells of half a deviation"


def test_a_planted_grid_that_misses_a_far_world_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    edges = channel._edges
    monkeypatch.setattr(channel, "_edges", lambda points, *rest, most: edges(points[:-1], *rest, most=most))
    with pytest.raises(AssertionError, match="far worlds"):
        test_every_row_adds_up_exactly_and_is_near_the_normal_law("one far away", 1.0)


def test_masses_agree_with_high_precision() -> None:
    """In both tails, to a few units of the 2^-62 that masses are counted in, the largest apart."""
    outputs = np.array([0.0, 1.7])
    table = cells_of(outputs, 1.0)
    edges, _ = channel._edges(outputs, 0.5, 6.0, most=10**6)
    with mpmath.workdps(50):
        for output, row in zip(outputs, table.counts, strict=True):
            exact = [
                mpmath.ncdf(mpmath.mpf(b) - output) - mpmath.ncdf(mpmath.mpf(a) - output) for a, b in pairwise(edges)
            ]
            off = [abs(int(count) - mass * SCALE) for count, mass in zip(row, exact, strict=True)]
            allowed = [1 + 64 * 2.0**-53 * float(mass) * SCALE for mass in exact]
            off[int(row.argmax())] = mpmath.mpf(0)
            assert all(o <= a for o, a in zip(off, allowed, strict=True))


class Given:
    """Hands out whole numbers one after the other."""

    def __init__(self, *numbers: int) -> None:
        self.numbers = list(numbers)

    def below(self, n: int) -> int:
        assert n == SCALE
        return self.numbers.pop(0)


def test_a_cell_is_drawn_with_exactly_its_mass() -> None:
    """The first and the last number of every cell's stretch fall into it; cells without mass are never drawn."""
    counts = np.array([[0, 5, 0, SCALE - 12, 7, 0]])
    table = Channel(np.arange(6.0), counts)
    ends = np.cumsum(counts[0])
    for cell in np.flatnonzero(counts[0]):
        first, last = int(ends[cell] - counts[0, cell]), int(ends[cell] - 1)
        randomness: Any = Given(first, last)
        assert [table.draw(0, randomness) for _ in range(2)] == [cell, cell]


def drawn_as_charged(table: Channel, world: int) -> bool:
    """Draws from the operating system, against the table's own row; wrong once in a million."""
    randomness = OperatingSystem()
    seen = np.bincount([table.draw(world, randomness) for _ in range(4000)], minlength=len(table.values))
    often = table.masses()[world] * 4000 > 5
    expected = np.append(table.masses()[world][often], table.masses()[world][~often].sum()) * 4000
    observed = np.append(seen[often], seen[~often].sum())
    return bool(chisquare(observed[expected > 0], expected[expected > 0]).pvalue > 1e-6)


def test_draws_follow_the_table_that_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    table = cells_of(np.array([0.0, 1.0]), 1.0)
    assert drawn_as_charged(table, 1)
    monkeypatch.setattr(Channel, "draw", lambda self, world, randomness: int(np.argmax(self.counts[world])))
    assert not drawn_as_charged(table, 1), "planted: another draw"


def follows_bayes(engine: ListedWorlds) -> bool:
    """After an answer, weights are in the ratio of the masses that the answer was drawn with, in every cell."""
    state = engine.begin()
    priced = engine.price(state, np.linspace(0, 1, engine.worlds.m), 3.0)
    assert priced is not None
    for cell in range(len(priced.cells.values)):
        weights = engine.after(state, priced, cell).posterior.weights()
        masses = priced.cells.masses()[:, cell] / priced.cells.masses()[:, cell].sum()
        if not np.allclose(weights, masses, rtol=1e-12, atol=0):
            return False
    return True


def test_the_posterior_is_that_of_cell_masses_and_planted_densities_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_of(pool(16, 6), reach=6.0)
    assert follows_bayes(engine)

    def densities(self: Posterior, cells: Channel, cell: int) -> Posterior:
        mean = (cells.masses() * cells.values).sum(axis=1)
        weight = np.exp(-((cells.values[cell] - mean) ** 2) / 18)
        fraction, power = np.frexp(self.fraction * weight)
        return Posterior(fraction, self.power + power, self.answers + 1)

    monkeypatch.setattr(Posterior, "after", densities)
    assert not follows_bayes(engine)


def test_weights_come_back_from_far_below_the_smallest_float() -> None:
    """A thousand answers against a world, then a thousand for it: it is where it was, within the stated rounding."""
    away = Channel(np.zeros(2), np.array([[SCALE // 4, SCALE // 4 * 3], [SCALE // 4 * 3, SCALE // 4]]))
    posterior = Posterior.uniform(2)
    for cell in [0] * 1000:
        posterior = posterior.after(away, cell)
    assert posterior.weights()[0] == 0 or posterior.weights()[0] < 1e-300
    for cell in [1] * 1000:
        posterior = posterior.after(away, cell)
    assert posterior.weights() == pytest.approx([0.5, 0.5], rel=posterior.rounding(away))


def test_impossible_histories_and_useless_questions_are_refused() -> None:
    with pytest.raises(NumericalError, match="impossible"):
        Posterior.uniform(2).after(Channel(np.zeros(2), np.array([[SCALE, 0], [SCALE, 0]])), 1)
    with pytest.raises(OutputError, match="finite"):
        cells_of([0.0, np.nan], 1.0)
    with pytest.raises(InputError, match="above 0"):
        cells_of([0.0, 1.0], 0.0)
    with pytest.raises(InputError, match="more noise"):
        cells_of(np.linspace(0, 1e9, 4), 1e-9)
    with pytest.raises(InputError, match="more noise"):
        cells_of(np.random.default_rng(0).standard_normal(4096), 1e-6)
    with pytest.raises(InputError, match="every world"):
        engine_of(pool(16, 6)).price(engine_of(pool(16, 6)).begin(), [0.0, 1.0], 1.0)
