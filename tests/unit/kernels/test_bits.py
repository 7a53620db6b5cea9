"""Masks as words: the bits of some units are those that the masks have, in the order in which units are named."""

from __future__ import annotations

import numpy as np
import pytest

from leakcap.kernels.bits import picked


@pytest.mark.parametrize(("worlds", "units", "chosen"), [(1, 1, 1), (8, 64, 64), (13, 100, 63), (21, 1000, 129)])
def test_bits_of_some_units_are_picked_in_their_order(worlds: int, units: int, chosen: int) -> None:
    rng = np.random.default_rng(units)
    masks, some = rng.random((worlds, units)) < 0.5, rng.permutation(units)[:chosen]
    found = picked(np.packbits(masks, axis=1), some)
    assert np.array_equal(found, np.packbits(masks[:, some], axis=1))  # nobody's bits behind the last are 0 too
