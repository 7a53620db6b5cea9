"""Files with a label column, opened by the format that their names say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from leakcap.errors import InputError
from leakcap.tables.csv_labels import CsvLabels
from leakcap.tables.files import open_table
from leakcap.tables.label_column import LabelColumn
from leakcap.tables.parquet_labels import ParquetLabels
from leakcap.tables.reading import Reading

__all__ = ["open_labels"]


def open_labels(path: Path, column: str, read: Sequence[str] = ()) -> LabelColumn:
    """The table in a CSV or Parquet file, all of it, and which of its columns holds the labels."""
    reading = Reading.of(read)
    if reading.of_cells or reading.dates:
        raise InputError(
            "--read here takes encoding= and delimiter= alone: cells leave as they are, however they are written"
        )
    file = open_table(path, reading)
    if path.is_dir():
        raise InputError(f"{path.name} is a folder: labels are privatised in one file, name it")
    name = file.column(column)
    labels: LabelColumn = (ParquetLabels if file.separator is None else CsvLabels).of(file, name)
    if not labels.rows:
        raise InputError(f"{path.name} has column names and no rows: there are no labels in it")
    return labels
