"""Partitions: where rows come from, one part after the other; all parts have the same columns of the same types."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from leakcap.cluster.parted.files import ParquetPart, parquet_parts
from leakcap.errors import InputError, LeakcapError
from leakcap.ground import checks

__all__ = ["Partitions", "partitions"]

MEMORY = 2**30  # bytes
LEAST_MEMORY = 2**24
WITHHELD = "{} could not be read: it stopped with {} (its text is withheld: it may quote the data)"
NO_TABLE = "{} cannot be read as a table ({}): every column must hold values of one kind"


class Partition(Protocol):
    """One partition."""

    @property
    def name(self) -> str: ...

    def schema(self) -> Any:
        """Of Arrow; None where it is known only by reading."""
        ...

    def batches(self) -> Iterator[Any]:
        """Record batches of Arrow."""
        ...


@dataclass(frozen=True, eq=False)
class _Made:
    """A frame, an array or a table; or a function that makes one, which is held no longer than it is read."""

    name: str
    made: Any = field(repr=False)

    def schema(self) -> Any:
        return None

    def batches(self) -> Iterator[Any]:
        yield from _as_table(_computed(self.made, self.name), self.name).to_batches()


@dataclass(eq=False)
class _Stream:
    """Record batches that can be read once."""

    name: str
    reader: Any = field(repr=False)
    read: bool = False

    def schema(self) -> Any:
        return None if self.read else self.reader.schema

    def batches(self) -> Iterator[Any]:
        if self.read:
            raise InputError("this stream was read, and cannot be read again: make it, and its partitions, anew")
        self.read = True
        try:
            yield from self.reader
        except Exception as error:
            kind = type(error).__name__
        else:
            return
        raise InputError(WITHHELD.format(self.name, kind))


@dataclass(frozen=True, eq=False)
class Partitions:
    """Data in parts, to be given to `leakcap.Session` in the place of a table. Custodian side.

    Attributes:
        memory: bytes that rows may take at a time.
        folder: where rows go that memory has no room for, encrypted; None for the system's own.
    """

    _custodian_only = True

    _parts: tuple[Partition, ...] = field(repr=False)
    memory: int = MEMORY
    folder: str | None = None

    def __len__(self) -> int:
        """How many parts there are."""
        return len(self._parts)

    def batches(self) -> Iterator[Any]:
        """All rows, as record batches of Arrow with the same columns of the same types; an InputError otherwise."""
        known: Any = None
        for part in self._parts:
            for batch in part.batches():
                if known is None:
                    known = batch.schema
                    _refuse_names(part.name, known.names)
                if batch.schema.names != known.names or batch.schema.types != known.types:
                    raise InputError(_other(part.name, batch.schema, known))
                yield batch

    def __reduce__(self) -> Any:
        raise InputError("partitions may hold rows: they are not pickled. Make them where they are used")


def partitions(
    source: Any, *, memory: int = MEMORY, folder: str | None = None, options: Mapping[str, Any] | None = None
) -> Partitions:
    """Data in parts, which need not fit in memory together; one person's rows may lie in many of them.

    Args:
        source: a Parquet file or a folder of them, by its path or fsspec address; a Dask DataFrame or array; a reader
            of Arrow record batches; or a list, of paths, frames, arrays, Arrow tables, or functions that make these.
        memory: bytes that rows may take at a time; beyond it they go to `folder`, encrypted.
        folder: for rows that memory has no room for. None: the system's folder for such files.
        options: of the file system of an fsspec address.

    Returns:
        The partitions. Nothing but the ends of files is read before they are used.

    Raises:
        InputError: there is nothing to read, two parts are the same file, or have other columns.

    Examples:
        >>> import pandas as pd
        >>> import leakcap as lc
        >>> january = pd.DataFrame({"who": ["a", "b"], "paid": [1.0, 2.0]})
        >>> february = pd.DataFrame({"who": ["a"], "paid": [3.0]})
        >>> len(lc.partitions([january, february]))
        2
    """
    if checks.count(memory=memory) < LEAST_MEMORY:
        raise InputError(f"memory must be {LEAST_MEMORY:,} bytes at least: a batch of rows has to fit in")
    parts = _parts(source, options)
    _refuse_twins([part for part in parts if isinstance(part, ParquetPart)])
    schemas = [(part.name, found) for part in parts if (found := part.schema()) is not None]
    for name, schema in schemas:
        _refuse_names(name, schema.names)
        if schema.names != schemas[0][1].names or schema.types != schemas[0][1].types:
            raise InputError(_other(name, schema, schemas[0][1]))
    return Partitions(tuple(parts), memory, folder)


def _parts(source: Any, options: Mapping[str, Any] | None) -> list[Partition]:
    if isinstance(source, (str, os.PathLike)):
        return list(parquet_parts(os.fspath(source), options))
    if hasattr(source, "to_delayed"):
        return [_Made(f"partition {place}", _computing(one)) for place, one in enumerate(_delayed(source), 1)]
    if isinstance(source, (list, tuple)):
        if not source:
            raise InputError("there are no partitions: give a list of tables, or of the names of Parquet files")
        named = isinstance(source[0], (str, os.PathLike))
        if named:
            return [part for one in source for part in parquet_parts(os.fspath(one), options)]
        return [_Made(f"partition {place}", one) for place, one in enumerate(source, 1)]
    if hasattr(source, "read_next_batch") or hasattr(source, "__arrow_c_stream__"):
        import pyarrow as pa

        # Through Arrow's interface all batches would be taken for what the first one was.
        own = isinstance(source, pa.RecordBatchReader)
        return [_Stream("the stream", source if own else pa.RecordBatchReader.from_stream(source))]
    raise InputError(
        "partitions are a folder of Parquet files, a list of tables, a Dask DataFrame or array, or a reader of Arrow "
        f"record batches, not a {type(source).__name__}: a single table can be given as a list of one"
    )


def _delayed(source: Any) -> list[Any]:
    """The parts of a Dask collection; of an array those along rows, in which all columns are."""
    if not hasattr(source, "chunks"):
        return list(source.to_delayed())
    whole = source.rechunk({1: -1}) if source.ndim == 2 else source
    return list(np.ravel(whole.to_delayed()))


def _computing(one: Any) -> Callable[[], Any]:
    return lambda: one.compute(scheduler="synchronous")


def _computed(made: Any, name: str) -> Any:
    if not callable(made):
        return made
    try:
        return made()
    except LeakcapError:
        raise
    except Exception as error:
        kind = type(error).__name__
    raise InputError(WITHHELD.format(name, kind))


def _as_table(made: Any, name: str) -> Any:
    import pyarrow as pa

    try:
        if isinstance(made, pa.RecordBatch):
            return pa.Table.from_batches([made])
        if isinstance(made, pa.Table):
            return made
        if isinstance(made, np.ndarray):
            columns = made.reshape(len(made), -1)
            names = list(map(str, range(columns.shape[1])))
            return pa.table(dict(zip(names, map(np.ascontiguousarray, columns.T), strict=True)))
        if hasattr(made, "to_arrow"):
            return made.to_arrow()
        if hasattr(made, "iloc") and hasattr(made, "columns"):
            named = made.rename(columns=str)
            _refuse_names(name, list(named.columns))
            return pa.Table.from_pandas(named, preserve_index=False).replace_schema_metadata(None)
        kind = f"a {type(made).__name__}"
    except LeakcapError:
        raise
    except (pa.ArrowException, TypeError, ValueError) as error:
        kind = type(error).__name__  # its text may quote cells
    raise InputError(NO_TABLE.format(name, kind))


def _refuse_twins(parts: Sequence[ParquetPart]) -> None:
    """Rows that count twice would be charged twice, and nobody means them to be; files without rows may be alike."""
    known: dict[Any, ParquetPart] = {}
    for part in parts:
        size, footer = part.look[:2]
        other = known.setdefault((size, footer), part)
        if other is part or not part.rows():
            continue
        if other.path == part.path or other.digest() == part.digest():
            raise InputError(
                f"{other.name} and {part.name} are the same file: leave one out, its rows would count twice"
            )


def _refuse_names(name: str, columns: Sequence[str]) -> None:
    """Of two columns of one name it would be chance which one is asked about; names of ours begin with NUL."""
    for place, column in enumerate(columns):
        if column in columns[:place]:
            raise InputError(f"two columns of {name} are called {column!r}: give each a name of its own")
        if "\0" in column:
            raise InputError(f"a column of {name} is called {column!r}: give it a name without NUL")


def _other(name: str, schema: Any, known: Any) -> str:
    """What is different, in the words of columns and types alone."""
    for column in known.names:
        if column not in schema.names:
            return f"{name} has no column {column!r}, which the parts before it have: all need the same columns"
    for column in schema.names:
        if column not in known.names:
            return f"{name} has a column {column!r}, which the parts before it do not have: all need the same columns"
    for column, kind in zip(schema.names, schema.types, strict=True):
        if known.field(column).type != kind:
            return f"column {column!r} is of type {kind} in {name}, and {known.field(column).type} before: make it one"
    return f"{name} has its columns in another order than the parts before it: write them in one order"
