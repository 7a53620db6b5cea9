"""Parquet: one file, or a folder of files that are parts of one table. Errors never quote a cell."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from leakcap.errors import InputError

__all__ = ["PARQUET", "arrow_schema", "arrow_table", "parts_of"]

PARQUET = (".parquet", ".pq")


def parts_of(path: Path) -> tuple[Path, ...]:
    """The files of a folder, in the order in which their rows come: by name. Hidden ones, and those that begin with _,
    are other programs' own."""
    found = (part for part in path.rglob("*") if part.name.lower().endswith(PARQUET) and part.is_file())
    own = (part for part in found if not any(name[0] in "._" for name in part.relative_to(path).parts))
    return tuple(sorted(own, key=lambda part: part.relative_to(path).parts))


def arrow_schema(path: Path) -> Any:
    """Names and types of the columns."""
    from pyarrow import parquet  # type: ignore[import-untyped]

    return _dataset(path).schema if path.is_dir() else parquet.read_schema(path)


def arrow_table(path: Path, columns: Sequence[str]) -> Any:
    """The rows of some columns, in the given order."""
    from pyarrow import parquet

    if path.is_dir():
        return _dataset(path).to_table(columns=list(columns))
    return parquet.read_table(path, columns=list(columns)).select(list(columns))


def _dataset(path: Path) -> Any:
    """All parts as one table; folders such as year=2024 are a column of it."""
    from pyarrow import dataset  # type: ignore[import-untyped]

    parts = parts_of(path)
    _refuse_odd(path, parts)
    return dataset.dataset(
        [str(part) for part in parts], format="parquet", partitioning="hive", partition_base_dir=str(path)
    )


def _refuse_odd(path: Path, parts: Sequence[Path]) -> None:
    """Parts whose columns are not those of the first. The folders that they lie in are not shown: they may be cells."""
    from pyarrow import parquet

    first = parquet.read_schema(parts[0])
    for place, part in enumerate(parts[1:], 2):
        schema = parquet.read_schema(part)
        which = f"part {place:,} of {len(parts):,} in {path.name} ({part.name})"
        if set(schema.names) != set(first.names):
            raise InputError(
                f"{which} has other columns than the first part ({parts[0].name}): parts of one table have the same "
                "columns. Take out what belongs to another table, or write them again"
            )
        for name in first.names:
            if schema.field(name).type != first.field(name).type:
                raise InputError(
                    f"column {name!r} is {schema.field(name).type} in {which}, and {first.field(name).type} in the "
                    f"first ({parts[0].name}): write all parts with the same types"
                )
