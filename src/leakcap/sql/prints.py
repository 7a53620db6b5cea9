"""Numbers that change with the rows, of everybody and of public tables. Custodian side: rows can be guessed by them.

They are for noticing, not against forgers: whoever can write the file holds all rows as they are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["contents", "own_prints", "people_prints", "public_print", "together"]

LARGEST = 9223372036854775807
MANY = 64  # different values, from which on a column of other people would hardly hold the same as often


def contents(file: Any, view: str, columns: Iterable[str]) -> list[str]:
    """Prints of columns as they were given, those of few values and of dense numbers left out: anybody's are such."""
    names = list(columns)
    asked = ", ".join(
        f"approx_count_distinct({one}), sum(hash({one})), "
        f"max(TRY_CAST({one}::VARCHAR AS DOUBLE)) - min(TRY_CAST({one}::VARCHAR AS DOUBLE))"
        for one in names
    )
    rows, *told = file.execute(f"SELECT count(*), {asked} FROM {view}").fetchone()
    found = []
    for different, total, span in zip(told[::3], told[1::3], told[2::3], strict=True):
        if different >= MANY and (span is None or span > 4 * different):
            found.append(hashlib.sha256(f"{total} of {rows}".encode()).hexdigest())
    return sorted(found)


def own_prints(file: Any, parts: Iterable[str], unit: str, people: int) -> npt.NDArray[np.int64]:
    """Of everybody, from prints of their rows by table."""
    found = file.execute(
        f"SELECT {unit} AS who, (sum(h) % {LARGEST})::BIGINT AS print FROM ({' UNION ALL '.join(parts)}) GROUP BY who"
    ).fetchnumpy()
    whole = np.zeros(people, dtype=np.int64)
    whole[np.asarray(found["who"])] = found["print"]
    return whole


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
