"""What is made of a row in blocks is the same to the last bit, whoever else is there."""

from __future__ import annotations

import numpy as np
import pytest

from leakcap.sessions.seats import Seats

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("d", [1, 5, 30, 100])
@pytest.mark.parametrize("outputs", [1, 3, 10])
def test_products_of_a_row_do_not_hang_on_other_rows(d: int, outputs: int) -> None:
    rows, matrix = RNG.standard_normal((700, d)), RNG.standard_normal((d, outputs))
    found = Seats.of_rows(rows).each(lambda block: block @ matrix)
    assert np.allclose(found, rows @ matrix)
    for some in (slice(1, None), slice(0, 699), slice(None, None, -1), slice(5, 6)):
        assert np.array_equal(Seats.of_rows(rows[some]).each(lambda block: block @ matrix), found[some])


def test_functions_may_make_one_thing_of_each_row() -> None:
    rows = RNG.integers(0, 3, size=(50, 2)).astype(float)
    assert np.array_equal(Seats.of_rows(rows).each(lambda block: block.argmax(axis=1)), rows.argmax(axis=1))
