"""The label column of a CSV file: every cell is the text that it was."""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.ground.arrays import Bools, Floats
from leakcap.tables.class_names import ClassNames, Codes, numbers_in
from leakcap.tables.files import TableFile
from leakcap.tables.label_column import LabelColumn

__all__ = ["CsvLabels"]


class CsvLabels(LabelColumn):
    """CSV: every cell is the text that it was."""

    @classmethod
    def of(cls, file: TableFile, name: str) -> CsvLabels:
        """The whole table, with the labels in column `name`."""
        file.refuse_long_lines()
        # In a file of one column, an empty line is a row whose label is missing.
        table = file.read_csv(dtype=str, na_filter=False, skip_blank_lines=len(file.columns) > 1)
        return cls(file, name, table)

    @property
    def ending(self) -> str:
        packed = self.file.path.name.lower().endswith(".gz")
        return (".tsv" if self.file.separator == "\t" else ".csv") + (".gz" if packed else "")

    def named(self, codes: Codes, names: Sequence[str], missing_as: str | None) -> Any:
        return np.asarray(names, dtype=object)[codes]

    def names(self, names: Sequence[str], missing_as: str | None) -> list[Any]:
        return list(names)

    def _codes(self, names: Sequence[str], missing_as: str | None) -> Codes:
        places, distinct = self.table[self.name].factorize()
        return ClassNames(names).codes(distinct.tolist())[places]

    def _numbers(self) -> tuple[Floats, Bools]:
        return numbers_in(self.table[self.name])

    def public_cells(self, name: str) -> npt.NDArray[Any]:
        text = self.table[name].str.strip()
        numbers, missing = numbers_in(text)
        is_text = missing.all() or (np.isnan(numbers) & ~missing).any()
        return np.asarray(text.to_numpy(dtype=object) if is_text else np.where(missing, np.nan, numbers))

    def written(self, cells: Mapping[str, Any]) -> bytes:
        columns: dict[str, Any] = {}
        for name in self.file.columns:
            columns |= cells if name == self.name else {name: self.table[name]}
        text = _as_csv(columns, str(self.file.separator))
        return gzip.compress(text, compresslevel=6, mtime=0) if self.ending.endswith(".gz") else text


def _as_csv(columns: Mapping[str, Any], separator: str) -> bytes:
    """Columns side by side as text, cells in quotes where they need it; many times as fast as row by row."""
    import pyarrow  # type: ignore[import-untyped]
    from pyarrow import compute  # type: ignore[import-untyped]

    def word(text: str) -> Any:
        return pyarrow.scalar(text, pyarrow.large_string())

    def joined(parts: list[Any], between: str) -> Any:
        return compute.binary_join_element_wise(*parts, word(between))

    def quoted(cells: Any) -> Any:
        text = pyarrow.array(cells).cast(pyarrow.large_string())
        need = compute.match_substring_regex(text, f'["\r\n{separator}]')
        if not compute.any(need).as_py():
            return text
        doubled = compute.replace_substring(text, '"', '""')
        return compute.if_else(need, joined([word('"'), doubled, word('"')], ""), text)

    rows = [quoted([name]) for name in columns], [quoted(_plain(cells)) for cells in columns.values()]
    lines = [line for part in rows for line in joined(part, separator).to_pylist()]
    return ("\n".join(lines) + "\n").encode()


def _plain(cells: Any) -> Any:
    return cells.astype(np.uint8) if cells.dtype == bool else cells
