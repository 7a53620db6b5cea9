"""The sizes of an encoding: how many rows are sampled, mixed and released, and into how many masked columns.

All of it is public, and none of it depends on which rows were sampled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Ints

__all__ = ["MixingDesign", "Sizes"]

SHARE_SAMPLED = 0.8  # of the smallest class, where it is not said
SHARE_MIXED = 20  # one of so many sampled rows of a class is in a mean, where it is not said


@dataclass(frozen=True)
class MixingDesign:
    """The sizes of one encoding, fitted to the classes of its pool.

    Attributes:
        classes: number of classes, c.
        rows_sampled: n, a multiple of c: the same number of rows of every class.
        rows_released: m, a multiple of c^2: the same number of rows for every ordered pair of classes.
        mix: k; a released row is the mean of k rows of one class and k of another, or of the same.
        mask_dim: d, released columns; a multiple of `blocks`.
        blocks: parts of a row that have masks of their own.
        columns: of a row of the pool.
    """

    classes: int
    rows_sampled: int
    rows_released: int
    mix: int
    mask_dim: int
    blocks: int
    columns: int

    @property
    def sampled_per_class(self) -> int:
        return self.rows_sampled // self.classes

    @property
    def released_per_pair(self) -> int:
        return self.rows_released // self.classes**2

    @property
    def block_dim(self) -> int:
        """Released columns of one block; entries of its mask have variance 1 / block_dim."""
        return self.mask_dim // self.blocks


@dataclass(frozen=True)
class Sizes:
    """What the owner asks for, before the pool is seen; None where it is left open."""

    mask_dim: int
    mix: int | None
    rows_sampled: int | None
    rows_released: int
    blocks: int

    @classmethod
    def of(cls, *, mask_dim: Any, mix: Any, rows_sampled: Any, rows_released: Any, blocks: int) -> Sizes:
        asked = cls(
            checks.count(mask_dim=mask_dim),
            None if mix is None else checks.count(mix=mix),
            None if rows_sampled is None else checks.count(rows_sampled=rows_sampled),
            checks.count(rows_released=rows_released),
            blocks,
        )
        if asked.mask_dim % blocks:
            raise InputError(f"mask_dim must be a multiple of blocks ({blocks}): every block gets as many columns")
        return asked

    def design(self, columns: int, in_class: Ints) -> MixingDesign:
        """Fitted to a pool of this many columns, and rows in every class."""
        classes, smallest = len(in_class), int(in_class.min())
        if self.mask_dim > columns:
            raise InputError(
                f"mask_dim is {self.mask_dim} and rows have {columns} columns: choose mask_dim={columns} or fewer. "
                "More masked columns than there are columns teach the server nothing but what the noise hides"
            )
        if self.mask_dim // self.blocks > columns // self.blocks:
            raise InputError("a block would get more masked columns than it has: choose a smaller mask_dim")
        if smallest < 2:
            raise InputError(
                "a class has a single row: nothing hides whether it is sampled. Leave the class out, or join it with "
                "another"
            )
        each = self._each(classes, smallest)
        mix = max(1, each // SHARE_MIXED) if self.mix is None else self.mix
        if mix > each:
            raise InputError(
                f"mix is {mix} and {each} rows of every class are sampled: choose a smaller mix, or sample more rows"
            )
        if self.rows_released < classes**2:
            raise InputError(
                f"rows_released must be at least {classes**2}: one row for every ordered pair of {classes} classes"
            )
        return MixingDesign(
            classes=classes,
            rows_sampled=each * classes,
            rows_released=self.rows_released // classes**2 * classes**2,
            mix=mix,
            mask_dim=self.mask_dim,
            blocks=self.blocks,
            columns=columns,
        )

    def notes(self, design: MixingDesign, in_class: Ints) -> tuple[str, ...]:
        """What was rounded or left out, for the owner; it says nothing about which rows were sampled."""
        notes = []
        each = design.sampled_per_class
        if in_class.min() < in_class.max():
            notes.append(
                f"Classes are of {in_class.min():,} to {in_class.max():,} rows, and {each:,} of each are sampled: of "
                f"the largest class {in_class.max() - each:,} rows are left out"
            )
        if self.rows_sampled is not None and design.rows_sampled != self.rows_sampled:
            notes.append(f"rows_sampled is {design.rows_sampled:,}: {each:,} of each of {design.classes} classes")
        if design.rows_released != self.rows_released:
            notes.append(
                f"rows_released is {design.rows_released:,}: {design.released_per_pair:,} for each of "
                f"{design.classes**2} ordered pairs of classes"
            )
        return tuple(notes)

    def _each(self, classes: int, smallest: int) -> int:
        if self.rows_sampled is None:
            return min(max(1, int(np.floor(SHARE_SAMPLED * smallest))), smallest - 1)
        each = self.rows_sampled // classes
        if not 0 < each < smallest:
            raise InputError(
                f"rows_sampled must be from {classes} to {classes * (smallest - 1)}: at least one row of every class "
                f"({classes} of them), and not all rows of the smallest, or it is known who was sampled"
            )
        return each
