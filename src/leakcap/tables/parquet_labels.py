"""The label column of a Parquet file: every column keeps its type."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError
from leakcap.ground.arrays import Bools, Floats
from leakcap.tables.class_names import MISSING, STRANGE, ClassNames, Codes, number_in, numbers_in, whole_number_in
from leakcap.tables.files import TableFile, tried
from leakcap.tables.label_column import LabelColumn

__all__ = ["ParquetLabels"]

TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
NUMBERS = "numbers: name numbers, such as --classes 0,1"


class ParquetLabels(LabelColumn):
    """Parquet: every column has the type that it had.

    But for numbers of which some may be missing: pandas writes whole ones as fractions as soon as one is. There the
    type would tell whether any is, and so it follows from the names of the classes.
    """

    @classmethod
    def of(cls, file: TableFile, name: str) -> ParquetLabels:
        """The whole table, with the labels in column `name`."""
        from pyarrow import parquet  # type: ignore[import-untyped]

        # A path such as year=2024/labels.parquet must not add a column.
        table = tried(file.path, lambda _: parquet.read_table(file.path, partitioning=None))
        return cls(file, name, table)

    @property
    def ending(self) -> str:
        return ".parquet"

    def named(self, codes: Codes, names: Sequence[str], missing_as: str | None) -> Any:
        import pyarrow  # type: ignore[import-untyped]

        return self._cells(names, missing_as).take(pyarrow.array(codes))

    def names(self, names: Sequence[str], missing_as: str | None) -> list[Any]:
        return list(self._cells(names, missing_as).to_pylist())

    def _cells(self, names: Sequence[str], missing_as: str | None) -> Any:
        import pyarrow

        try:
            if missing_as is None or self._is_text or pyarrow.types.is_boolean(self._type):
                return pyarrow.array(self._typed(names), type=self._type)
            whole, numbers = [whole_number_in(name) for name in names], [number_in(name) for name in names]
            if None not in whole:
                return pyarrow.array(whole, type=pyarrow.int64())
            if None not in numbers:
                return pyarrow.array(
                    [float(number) for number in numbers if number is not None], type=pyarrow.float64()
                )
        except (InputError, pyarrow.ArrowException, OverflowError):
            pass
        return pyarrow.array(names, type=pyarrow.string())  # a class 'missing' among numbers

    def _codes(self, names: Sequence[str], missing_as: str | None) -> Codes:
        self._typed([])  # refuses what can be no label
        places, distinct = self._encoded()
        if self._is_text:
            return np.append(ClassNames(names).codes(distinct), MISSING)[places]
        possible = [name for name in names if name != missing_as or self._could_hold(name)]
        code = dict(zip(self._typed(possible), map(names.index, possible), strict=True))
        if len(code) < len(possible):
            raise InputError(f"two of --classes mean the same in column {self.name!r}: name each class once")
        codes = [code.get(cell, MISSING if cell is None else STRANGE) for cell in map(_without_nan, distinct)]
        return np.array([*codes, MISSING], dtype=np.int64)[places]

    def _could_hold(self, name: str) -> bool:
        try:
            self._typed([name])
        except InputError:
            return False
        return True

    def _encoded(self) -> tuple[Codes, list[Any]]:
        """Which of a few different cells each row has, -1 where it is empty."""
        column = self._column.dictionary_encode()
        return column.indices.fill_null(-1).to_numpy().astype(np.int64), column.dictionary.to_pylist()

    @property
    def _column(self) -> Any:
        column = self.table.column(self.name).combine_chunks()
        return column if column.type.equals(self._type) else column.cast(self._type)

    @property
    def _type(self) -> Any:
        """The type of the cells; the names that a column of categories lists are labels too, and stay here."""
        from pyarrow import types  # type: ignore[import-untyped]

        kind = self.table.schema.field(self.name).type
        return kind.value_type if types.is_dictionary(kind) else kind

    @property
    def _is_text(self) -> bool:
        from pyarrow import types

        return types.is_string(self._type) or types.is_large_string(self._type)

    def _typed(self, names: Sequence[str]) -> list[Any]:
        """Names as cells of this column."""
        from pyarrow import types

        kind = self._type
        cells: list[Any]
        if self._is_text:
            return list(names)
        if types.is_boolean(kind):
            cells, what = [TRUTH.get(name.lower()) for name in names], "yes or no: name true and false"
        elif types.is_integer(kind):
            cells, what = [whole_number_in(name) for name in names], f"whole {NUMBERS}"
        elif types.is_float32(kind) or types.is_float64(kind):
            size = kind.to_pandas_dtype()
            cells, what = [None if number_in(name) is None else float(size(float(name))) for name in names], NUMBERS
        elif types.is_decimal(kind):
            cells, what = [number_in(name) for name in names], NUMBERS
        else:
            raise InputError(
                f"column {self.name!r} is of type {kind}, and labels are numbers, text, or yes and no: turn it into one"
            )
        if None in cells:
            raise InputError(f"the labels in column {self.name!r} are {what}")
        return cells

    def _numbers(self) -> tuple[Floats, Bools]:
        if self._is_text:
            return numbers_in(self._column.fill_null("").to_pandas())
        self._typed([])
        numbers = self._column.cast("float64", safe=False).to_numpy(zero_copy_only=False)
        return numbers, np.isnan(numbers)

    def public_cells(self, name: str) -> npt.NDArray[Any]:
        from pyarrow import types

        cells = self.table.column(name).combine_chunks()
        if types.is_dictionary(cells.type):
            cells = cells.cast(cells.type.value_type)
        if types.is_string(cells.type) or types.is_large_string(cells.type):
            return np.asarray(cells.fill_null("").to_pandas().str.strip().to_numpy(dtype=object))
        if types.is_boolean(cells.type):
            cells = cells.cast("uint8")
        if not any(kind(cells.type) for kind in (types.is_integer, types.is_floating, types.is_decimal)):
            raise InputError(
                f"column {name!r} is of type {cells.type}, and features are numbers, text, or yes and no: turn it into "
                "one, or name the columns to use with --features"
            )
        return np.asarray(cells.cast("float64", safe=False).to_numpy(zero_copy_only=False))

    def written(self, cells: Mapping[str, Any]) -> bytes:
        import pyarrow
        from pyarrow import parquet

        place = self.table.schema.names.index(self.name)
        # Notes in the file may tell about the labels: pandas writes how many categories there are, for instance.
        table = self.table.replace_schema_metadata(None).remove_column(place)
        if table.num_columns:
            table = table.cast(pyarrow.schema([field.remove_metadata() for field in table.schema]))
        for further, (name, values) in enumerate(cells.items()):
            column = values if isinstance(values, pyarrow.Array) else pyarrow.array(values)
            table = table.add_column(place + further, pyarrow.field(name, column.type), column)
        content = io.BytesIO()
        parquet.write_table(table, content)
        return content.getvalue()


def _without_nan(cell: Any) -> Any:
    return None if isinstance(cell, float) and math.isnan(cell) else cell
