"""Whose features are public hangs on their own names: neither on who else is there, nor on the order of rows."""

from __future__ import annotations

import numpy as np

from leakcap.tables.distilled import public_people

NAMES = np.array([f"person {number}" for number in range(2000)])


def test_whoever_leaves_makes_nobody_else_public() -> None:
    chosen = public_people(NAMES, 0.3)
    assert abs(chosen.mean() - 0.3) < 0.06
    order = np.random.default_rng(0).permutation(len(NAMES))[:700]
    assert np.array_equal(public_people(NAMES[order], 0.3), chosen[order])
    assert np.array_equal(public_people(np.repeat(NAMES, 2), 0.3), np.repeat(chosen, 2))


def test_a_larger_share_leaves_out_nobody_who_was_public() -> None:
    assert (public_people(NAMES, 0.5) >= public_people(NAMES, 0.3)).all()
