"""Any function as an average over blocks of people: then one person moves one answer of many, within public bounds."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.errors import BlocksWarning, InputError, OutputError
from leakcap.ground import checks
from leakcap.ground.arrays import Bools, Floats, Ints
from leakcap.ground.callers import frames_of_ours
from leakcap.ground.interrupts import interrupts_heard
from leakcap.ground.slices import take_alone, take_own
from leakcap.kernels.bounded import Bounded, Declared, Extent
from leakcap.worlds import Units, Worlds
from leakcap.worlds.keyed import KEY_BYTES, keyed_blocks

__all__ = ["ANY_KEY", "COINS_IN_BLOCKS", "Blocks", "InBlocks", "blocks"]

COINS_IN_BLOCKS = 32  # tossed for error bars: the function runs in every block for each
ANY_KEY = bytes(KEY_BYTES)  # where the blocks need be nobody's secret


@dataclass(frozen=True, eq=False)
class Blocks:
    """What `blocks` makes: a function of rows, which averages the answers on blocks of people.

    Attributes:
        fn: any function of rows.
        blocks: how many blocks.
        low: of the bounds, for every number of the answer.
        high: of the bounds.
    """

    fn: Callable[..., Any]
    blocks: int
    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]

    def __call__(self, *rows: Any) -> Any:
        """The answer on these rows, each of which is a unit of its own."""
        first = rows[0]
        count = int(first.shape[0]) if hasattr(first, "shape") else len(first)
        return self.each_row_told(*rows, self.of_rows(Units(count, count)))

    def each_row_told(self, *rows: Any) -> Any:
        """The answer on these rows, of which the last argument tells the blocks."""
        return self.finish(self.counted(rows[:-1], _rows_of(rows[-1], self.blocks))[0].sum(axis=0))

    def of_rows(self, units: Units, key: bytes = ANY_KEY) -> Ints:
        """The block of every row: everybody's own name and the key decide, and nothing else."""
        found = keyed_blocks(units.names, key, self.blocks)
        return found if units.of_row is None else found[units.of_row]

    def counted(
        self, data: tuple[Any, ...], parts: list[Ints], taken: Callable[..., Any] = take_alone
    ) -> tuple[Floats, int, int]:
        """`(parts, d)` answers on these rows, cut to the bounds and measured from their middle; how many numbers were
        outside, and how many parts had no answer."""
        low, high, middle = self._ends
        found, outside, failed = np.zeros((len(parts), len(low))), 0, 0
        stops = list[bool]()
        for place, rows in enumerate(parts):
            with interrupts_heard(stops):
                numbers = self.asked(data, rows, taken)
            if stops:
                raise KeyboardInterrupt
            if numbers is None:
                failed += 1
                continue
            inside = np.clip(numbers, low, high)
            outside += int((inside != numbers).sum())
            found[place] = inside - middle
        return np.clip(found, -(high - low) / 2, (high - low) / 2), outside, failed  # again: differences are rounded

    def asked(self, data: tuple[Any, ...], rows: Ints, taken: Callable[..., Any] = take_alone) -> Floats | None:
        """The function's numbers; None where it fails, or gives anything but finite numbers of the bounds' shape."""
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")  # of a block without rows, again and again
                numbers = np.asarray(self.fn(*(taken(part, rows) for part in data)), dtype=np.float64)
        except BaseException:  # whatever it is, it would tell of a person
            return None
        return numbers.ravel() if numbers.shape == self.low.shape and np.isfinite(numbers).all() else None

    def of_all(self, data: tuple[Any, ...], rows: int) -> Floats | None:
        """The same on all rows together: on a copy, since it may sort them."""
        return self.asked(data, np.arange(rows))

    def finish(self, total: Floats) -> Any:
        """The average over blocks, from the sum of their answers."""
        made = (self._ends[2] + total / self.blocks).reshape(self.low.shape)
        return made if made.shape else float(made)

    @property
    def extent(self) -> Extent:
        """One person moves the answer of one block from any place within the bounds to any other."""
        low, high, _ = self._ends
        return Extent.together(high - low, (high - low) ** -2.0)

    @property
    def _ends(self) -> tuple[Floats, Floats, Floats]:
        low, high = self.low.ravel(), self.high.ravel()
        return low, high, low + (high - low) / 2

    def cut(self, data: tuple[Any, ...], units: Units, key: bytes) -> InBlocks:
        """The pool in blocks, by a key; the custodian is told where they are too small."""
        made = InBlocks(self, data, units, self.of_rows(units, key))
        found, outside, failed = self.counted(data, made.parts)
        if failed == self.blocks:
            largest = max(made.parts, key=len)
            self.fn(*(take_alone(part, largest) for part in data))  # its own error says more than we could
            raise OutputError(
                "the function gives no usable answer in any block: it must return finite numbers of shape "
                f"{self.low.shape}, that of the bounds. Take fewer blocks, or give bounds of the answer's shape"
            )
        if failed:
            _warn(
                f"the function has no usable answer in {failed} of {self.blocks} blocks, which count as the middle of "
                "the bounds: blocks are too small for it. Take fewer"
            )
        elif self._answers_otherwise(found, self.of_all(data, units.rows)):
            _warn(
                "the function answers otherwise on blocks than on all rows together, by more than chance and by about "
                "the noise of a cap at 60 % or more: blocks are too small for it, or the bounds cut it. Take fewer, or "
                "wider bounds"
            )
        return replace(made, outside=outside)

    def _answers_otherwise(self, found: Floats, whole: Floats | None) -> bool:
        if whole is None:
            return False
        low, high, middle = self._ends
        apart = np.abs(found.mean(axis=0) + middle - np.clip(whole, low, high))
        chance = 3 * found.std(axis=0) / np.sqrt(self.blocks)
        return bool(((apart > chance) & (apart > (high - low) / self.blocks)).any())

    def bounded(self, data: tuple[Any, ...], units: Units, declared: Declared) -> Bounded:
        """What every block brings."""
        if declared.bounds is not None:
            raise InputError("blocks have bounds of their own, those of the answer: leave bounds out of plan()")
        made = replace(self.cut(data, units, declared.key), hidden=True)
        return Bounded(made.answers(), self.extent, self.finish, made.outside, people=units.count)


@dataclass(frozen=True, eq=False)
class InBlocks:
    """A pool in blocks: what each of them answers for those of its people who take part; custodian side."""

    of: Blocks
    data: tuple[Any, ...]
    units: Units
    of_row: Ints  # the block of every row
    outside: int = 0  # numbers outside the bounds, of answers on all of the pool
    hidden: bool = False  # whether nobody may learn who is in the pool: then blocks know nothing of each other's kinds

    @property
    def parts(self) -> list[Ints]:
        """The rows of every block."""
        return _rows_of(self.of_row, self.of.blocks)

    def answers(self, mask: Bools | None = None) -> Floats:
        """`(blocks, d)`, for the units in `mask`, or for all."""
        return self._counted(self.parts if mask is None else [inside for inside, _ in self._halves(mask)])

    def answers_beside(self, mask: Bools, later: Bools) -> Floats:
        """The same, where those who are not in `mask` are asked as well, block by block, and their answer is forgotten.

        Whoever watches how long it takes learns less of the mask: a function that is slow on somebody's rows is so
        either way. In the blocks of `later`, to be drawn by chance, those in `mask` are asked after the others.
        """
        pairs = zip(self._halves(mask), later, strict=True)
        found = self._counted([half for halves, last in pairs for half in (halves[::-1] if last else halves)])
        return found.reshape(self.of.blocks, 2, -1)[np.arange(self.of.blocks), later.astype(np.intp)]

    def _counted(self, parts: list[Ints]) -> Floats:
        return self.of.counted(self.data, parts, take_own if self.hidden else take_alone)[0]

    def _halves(self, mask: Bools) -> list[tuple[Ints, Ints]]:
        inside = mask if self.units.of_row is None else mask[self.units.of_row]
        return [(rows[inside[rows]], rows[~inside[rows]]) for rows in self.parts]

    def sums(self, coins: Worlds) -> Floats:
        """`(m, d)`: what all blocks answer together, for each of these coins."""
        return np.stack([self.answers(coins.mask(i)).sum(axis=0) for i in range(coins.m)])


def blocks(fn: Callable[..., Any], *, blocks: int, bounds: tuple[npt.ArrayLike, npt.ArrayLike]) -> Blocks:
    """Any function as an average over blocks of people, so that it can be released under all three promises.

    Everybody belongs to one block, by a keyed function of who they are. `fn` is run on every block; its answers are cut
    to `bounds` and averaged. One person then moves one answer of many, within the bounds: with `design="bits"` the cap
    holds whoever else is known, and under `pool_membership` it hides whether a person is in the data at all.

    Args:
        fn: any function of rows that returns a number, or an array of the bounds' shape. Where it fails on a block, or
            returns anything else, the block counts as the middle of the bounds.
        blocks: how many, at least 2. More blocks need less noise; each must be large enough for `fn`. The number must
            not come from the data if the cap is about the pool.
        bounds: `(low, high)` of the answer: two numbers for a single number, two arrays of its shape otherwise. They
            must not come from the data.

    Returns:
        A function for `plan` and `release`.

    Raises:
        InputError: bounds or the number of blocks cannot be used.

    Warns:
        BlocksWarning: when it is planned, blocks are too small for `fn`.

    Guarantee: the one of the plan it is used in.

    Examples:
        >>> import numpy as np
        >>> import leakcap as lc
        >>> incomes = np.random.default_rng(0).lognormal(3, 1, size=4000)
        >>> median = lc.blocks(np.median, blocks=100, bounds=(0, 100))
        >>> made = lc.plan(median, incomes, cap=lc.pool_membership(0.55), seed=1)
        >>> made.certificate.membership_success <= 0.55
        True
    """
    if not callable(fn):
        raise InputError("fn must be a function of rows")
    checks.count(at_least=2, blocks=blocks)
    try:
        low, high = (np.array(end, dtype=np.float64) for end in bounds)
        low, high = np.broadcast_arrays(low, high)
    except (TypeError, ValueError):
        raise InputError("bounds must be (low, high): two numbers, or two arrays of the answer's shape") from None
    if not (low.size and np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise InputError("bounds must be finite, with low below high in every number of the answer")
    if max(np.abs(low).max(), np.abs(high).max()) > 1e100:
        raise InputError("bounds beyond 1e100 leave nothing of an answer: choose narrower ones")
    return Blocks(fn, int(blocks), low, high)


def _warn(text: str) -> None:
    warnings.warn(text, BlocksWarning, stacklevel=1 + frames_of_ours())


def _rows_of(of_row: Ints, count: int) -> list[Ints]:
    """The rows of every block, in their own order."""
    ends = np.cumsum(np.bincount(of_row, minlength=count))[:-1]
    return np.split(np.argsort(of_row, kind="stable"), ends)
