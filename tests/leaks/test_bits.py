"""A release of `design="bits"` shows its grid point and nothing of the coins that gave it."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

import leakcap as lc
from leakcap.noise import GRID
from leakcap.worlds import fair_bits
from tests.leaks.rigged import JITTERS, X, new_token, public_artefacts

design = importlib.import_module("leakcap.modes.bits")


class Rigged:
    """Tosses chosen coins, and draws noise that leads from them to one and the same grid point."""

    def __init__(self, plan: lc.Plan, toss: int, jitter: float, point: np.ndarray) -> None:
        self.toss, self.jitter, self.point = toss, jitter, point
        mechanism = plan.releaser
        coins = fair_bits(len(X), 1, self.bits()).mask(0)
        self.start = mechanism.coordinates(coins) / mechanism.noise.deviations

    def bits(self) -> np.random.Generator:
        return np.random.default_rng(self.toss)

    def normals(self, size: int) -> np.ndarray:
        assert size == len(self.start)
        return (self.point + self.jitter) * GRID - self.start


def planned(fn: Any = lc.stats.mean) -> lc.Plan:
    return lc.plan(fn, X, cap=lc.membership(0.7), design="bits")


def differing(fn: Any, tosses: int = 6) -> tuple[set[str], list[dict[str, bytes]]]:
    """Public artefacts that are not the same for all coins, the released point held fixed; and one release of each of
    two points."""
    plan = planned(fn)
    rank = plan.noise.space.rank
    telling, plain = set(), []
    for point in (np.zeros(rank), np.arange(rank) * 17.0 - 5):
        seen = []
        for toss in range(tosses):
            plan.randomness, plan._token = Rigged(plan, toss, JITTERS[toss % len(JITTERS)], point), new_token()
            seen.append(public_artefacts(plan.release()))
        telling |= {name for name in seen[0] if len({one[name] for one in seen}) > 1}
        plain.append(seen[0])
    return telling, plain


def test_public_bytes_do_not_depend_on_the_coins() -> None:
    for fn in (lc.stats.mean, lc.stats.sum):
        telling, (first, second) = differing(fn)
        assert not telling
        assert first["pickled release"] != second["pickled release"], "another point is another release"


def test_a_planted_leak_in_the_low_digits_is_caught(monkeypatch: Any) -> None:
    released = design.released_vector

    def leak(noise: Any, coordinates: np.ndarray, step: float, randomness: Any) -> np.ndarray:
        return released(noise, coordinates, step, randomness) * (1 + 1e-13 * coordinates[0])

    monkeypatch.setattr(design, "released_vector", leak)
    assert "pickled release" in differing(lc.stats.mean)[0]


def test_the_certificate_and_the_words_are_complete_before_the_release() -> None:
    plan = planned()
    before = plan.certificate.to_json(), str(plan.certificate), str(plan.summary()), repr(plan)
    released = plan.release()
    assert (plan.certificate.to_json(), str(plan.certificate), str(plan.summary()), repr(plan)) == before
    assert released.certificate.to_json() == before[0]


def test_every_release_tosses_coins_of_its_own_and_from_the_operating_system(monkeypatch: Any) -> None:
    tossed = []

    def watched(n: int, m: int, rng: Any) -> Any:
        tossed.append((type(rng).__name__, found := fair_bits(n, m, rng)))
        return found

    monkeypatch.setattr("leakcap.planning.entry.fair_bits", watched)
    for _ in range(2):
        plan = planned()
        plan._token = new_token()
        plan.release()
    names, coins = zip(*(one for one in tossed if one[0] != "Generator"), strict=True)  # those are for error bars
    assert names == ("_SystemBits", "_SystemBits")
    assert not np.array_equal(coins[0].masks(), coins[1].masks())
