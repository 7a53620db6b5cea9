"""Where a row sits while many are computed at once: by what the row itself holds, whoever else is there.

What a matrix product says of a row hangs, in its last digit, on how many rows there are and on the row's place among
them. So blocks have one size, and a row's seat in its block follows from the row alone: then nobody's numbers change
when others come, go or take no part. Equal rows are computed once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.ground.arrays import Floats, Ints
from leakcap.ground.proofs import proves

__all__ = ["Seats"]

FEWEST, MOST = 16, 256  # seats of a block
TOGETHER = 2**21  # numbers of a block


@dataclass(frozen=True, eq=False)
class Seats:
    """Different rows in blocks; custodian side."""

    rows: npt.NDArray[Any]  # (different rows, d)
    targets: npt.NDArray[Any]  # (different rows,)
    which: Ints  # (rows,): the number of each row among those that differ
    blocks: Ints  # (blocks, seats): numbers of rows; -1 where nobody sits

    @classmethod
    @proves("linear-sessions")
    def of(cls, rows: npt.NDArray[Any], targets: npt.NDArray[Any], numbers: int) -> Seats:
        """Seats for rows of which each makes so many numbers."""
        seats = FEWEST
        while seats < MOST and 2 * seats * numbers <= TOGETHER:
            seats *= 2
        held = np.ascontiguousarray(np.column_stack([rows.astype(np.float64), targets.astype(np.float64)]))
        whole = held.view(np.dtype((np.void, held.dtype.itemsize * held.shape[1]))).ravel()
        _, first, which = np.unique(whole, return_index=True, return_inverse=True)
        seat = _seat(held[first], seats)
        # How many of the same seat come before: that many blocks further on.
        order = np.argsort(seat, kind="stable")
        load = np.bincount(seat, minlength=seats)
        block = np.arange(len(order)) - np.repeat(np.cumsum(load) - load, load)
        blocks = np.full((load.max(initial=0), seats), -1)
        blocks[block, seat[order]] = order
        return cls(rows[first], targets[first], which.ravel(), blocks)

    @classmethod
    def of_rows(cls, rows: Floats) -> Seats:
        """Seats for rows that are computed with numbers alone."""
        return cls.of(rows, np.zeros(len(rows)), rows.shape[1])

    def each(self, fn: Callable[[Floats], npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """What a function makes of every row, which it may look at in blocks; row by row, in their order."""
        found: npt.NDArray[Any] | None = None
        for people in self.blocks:
            made = fn(self.block(people)[0])
            if found is None:
                found = np.empty((len(self.rows), *made.shape[1:]), dtype=made.dtype)
            sits = people >= 0
            found[people[sits]] = made[sits]
        assert found is not None, "there are no rows"
        return found[self.which]

    def block(self, people: Ints) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Rows and targets of a block; zeros where nobody sits."""
        sits = people >= 0
        rows = np.zeros((len(people), self.rows.shape[1]), dtype=self.rows.dtype)
        targets = np.zeros(len(people), dtype=self.targets.dtype)
        rows[sits], targets[sits] = self.rows[people[sits]], self.targets[people[sits]]
        return rows, targets


def _seat(held: Floats, seats: int) -> Ints:
    """A number below `seats`, a power of 2, of the bits of each row; the same for the same row in every process."""
    odd = np.random.default_rng(0).integers(2**63, size=held.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    mixed = (held.view(np.uint64) * odd).sum(axis=1, dtype=np.uint64)
    return (mixed >> np.uint64(64 - seats.bit_length() + 1)).astype(np.intp)
