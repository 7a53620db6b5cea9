"""Coins of `design="bits"` come from the operating system; what is shown of them: tests/leaks/test_individual.py."""

from __future__ import annotations

from typing import Any

import numpy as np

import leakcap as lc
from leakcap.worlds import fair_bits
from tests.leaks.rigged import X, new_token


def test_every_release_tosses_coins_of_its_own_and_from_the_operating_system(monkeypatch: Any) -> None:
    tossed = []

    def watched(n: int, m: int, rng: Any) -> Any:
        tossed.append((type(rng).__name__, found := fair_bits(n, m, rng)))
        return found

    monkeypatch.setattr("leakcap.planning.making.fair_bits", watched)
    for _ in range(2):
        plan = lc.plan(lc.stats.mean, X, cap=0.7, design="bits")
        plan._token = new_token()
        plan.release()
    names, coins = zip(*(one for one in tossed if one[0] != "Generator"), strict=True)  # those are for error bars
    assert names == ("_SystemBits", "_SystemBits")
    assert not np.array_equal(coins[0].masks(), coins[1].masks())
