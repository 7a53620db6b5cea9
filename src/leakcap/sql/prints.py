"""Numbers that change with the rows, of everybody and of public tables. Custodian side: rows can be guessed by them.

They are for noticing, not against forgers: whoever can write the file holds all rows as they are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["people_prints", "public_print", "together"]

LARGEST = 9223372036854775807


def people_prints(file: Any, tables: Iterable[Any], unit: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Hidden numbers in order, and a print of the rows of each; who has no rows is not there.

    A row of nobody, or of a number that nobody has, is there under that number: -1 for none.
    """
    parts = [
        f"SELECT coalesce({unit}, -1) AS who, hash({at}, {_columns(one)}) AS h FROM {one.place}"
        for at, one in enumerate(tables)
        if one.private
    ]
    found = file.execute(
        f"SELECT who::BIGINT AS who, (sum(h) % {LARGEST})::BIGINT AS print FROM ({' UNION ALL '.join(parts)}) "
        "GROUP BY who ORDER BY who"
    ).fetchnumpy()
    return np.asarray(found["who"], dtype=np.int64), np.asarray(found["print"], dtype=np.int64)


def public_print(file: Any, tables: Iterable[Any]) -> str:
    """Of the rows of all public tables."""
    found = []
    for one in tables:
        if not one.private:
            row = file.execute(f"SELECT count(*), sum(hash({_columns(one)})) FROM {one.place}").fetchone()
            found.append((one.name, *map(str, row)))
    return hashlib.sha256(repr(found).encode()).hexdigest()


def together(*columns: npt.NDArray[Any]) -> str:
    """Of several columns of numbers."""
    return hashlib.sha256(b"".join(np.ascontiguousarray(one).tobytes() for one in columns)).hexdigest()


def _columns(table: Any) -> str:
    return ", ".join(one.place for one in table.columns) or "0"
