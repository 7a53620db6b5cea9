"""A pool that can be encoded: rows in the unit ball, classes, and the sizes that fit them. Custodian side."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leakcap.errors import InputError
from leakcap.ground.arrays import Floats, Ints
from leakcap.obfuscation.design import MixingDesign, Sizes
from leakcap.obfuscation.rows import RowRule, block_columns, classes_of, numbers
from leakcap.obfuscation.whitening import Whitening

__all__ = ["EncodablePool"]

COMMON_SHAPE = "Rows have {} columns, and {} of them are the same in every row: they teach nothing, leave them out"


@dataclass(frozen=True, eq=False)
class EncodablePool:
    """Rows, their classes by name and number, the columns of every block, the rule and the sizes."""

    rows: Floats
    names: tuple[Any, ...]
    codes: Ints
    columns: tuple[Ints, ...]
    rule: RowRule
    design: MixingDesign
    notes: tuple[str, ...]

    @classmethod
    def of(
        cls, X: Any, y: Any, *, rule: RowRule, blocks: Any, sizes: Sizes, whiten: int | None = None
    ) -> EncodablePool:
        """Whatever is wrong with a pool is found here, before anything is drawn."""
        given = numbers(X)
        names, codes = classes_of(y, len(given))
        shape = tuple(np.shape(X)[1:])
        columns = block_columns(shape, blocks)
        constant = int((given == given[0]).all(axis=0).sum())
        if constant == given.shape[1]:
            raise InputError("all rows are the same: there is nothing to learn from them")
        in_class = np.bincount(codes)
        design = sizes.design(given.shape[1], in_class)
        notes = sizes.notes(design, in_class)
        if constant:
            notes = (*notes, COMMON_SHAPE.format(given.shape[1], constant))
        if whiten is not None:
            rule = replace(rule, whitening=Whitening.of(given, whiten))
        rows = rule(given)
        if whiten is not None:
            columns = (np.arange(rows.shape[1]),)
        return cls(rows, names, codes, columns=columns, rule=rule, design=design, notes=notes)
