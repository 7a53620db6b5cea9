"""The analyst's own text, in plain DuckDB, on the rows of some people: what every answer is compared with."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow

from leakcap.sql import Catalog


class Plain:
    """The registered tables under their own names, of some people alone."""

    def __init__(self, catalog: Catalog, mask: np.ndarray) -> None:
        self.file = duckdb.connect(str(catalog.path), read_only=True)
        self.file.register("who", pyarrow.table({"u": np.flatnonzero(mask).astype(np.int32)}))
        for table in catalog.tables.values():
            columns = ", ".join(f'{one.place} AS "{one.name}"' for one in table.columns)
            where = " WHERE unit IN (SELECT u FROM who)" if table.private else ""
            self.file.execute(f'CREATE TEMP VIEW "{table.name}" AS SELECT {columns} FROM {table.place}{where}')

    def run(self, text: str) -> pd.DataFrame:
        return self.file.sql(text).to_arrow_table().to_pandas()

    def close(self) -> None:
        self.file.close()


def rows_of(frame: pd.DataFrame, keys: int) -> dict[tuple[str, ...], list[Any]]:
    """Rows by their first columns, which are keys."""
    found = {}
    for row in frame.itertuples(index=False):
        key = tuple("NULL" if pd.isna(one) else _told(one) for one in row[:keys])
        found[key] = [None if pd.isna(one) else float(one) for one in row[keys:]]
    return found


def total(text: str) -> str:
    """The question as plain DuckDB would have to be asked for what we answer: a division by 0 is NULL, not infinite."""
    return re.sub(r"/ (\w+\.\w+)", r"/ nullif(\1, 0)", text)


def _told(one: Any) -> str:
    if isinstance(one, (date, pd.Timestamp)):
        return str(one)[:10]
    return (
        f"{float(one):.9g}"
        if isinstance(one, (int, float, np.integer, np.floating)) and not isinstance(one, bool)
        else str(one)
    )
