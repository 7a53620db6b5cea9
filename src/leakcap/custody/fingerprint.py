"""Fingerprints that tell whether a stored run and this one ask the same of the same data.

A function counts as the same if its code, its defaults and what it has captured are, and those of the functions of its
own module that it calls, and CONSTANTS that it reads; functions among defaults and captured things, and methods of an
object that is called, count by their code. Other modules, other variables and classes by name are not looked at.
"""

from __future__ import annotations

import functools
import hashlib
import types
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError

__all__ = ["DataPrint", "every_row", "fingerprint", "row_prints"]

MAX_COMMON_VALUES = 32  # different values, up to which a column may well be that of other people


def fingerprint(*things: Any) -> str:
    """Equal for equal data, settings and code, in every process; custodian side, because data can be guessed by it."""
    return _digest(piece for part in things for piece in _pieces(part, ()))


def _digest(pieces: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece.encode() + b"\0")
    return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class DataPrint:
    """The fingerprint of a pool, computed once when it is first asked for: data may be large. Custodian side."""

    data: tuple[Any, ...]
    units: Any = None  # whose every row is (`Units.owners`, or a label each), where a unit is not a row

    @cached_property
    def of_rows(self) -> str:
        """Equal for equal data, whatever the units; an InputError where data cannot be pickled."""
        return _digest(piece for pieces in self._looked_at for piece in pieces)

    @cached_property
    def of_run(self) -> str:
        """For the identity of a stored run: the data, and whose they are."""
        return fingerprint(self.of_rows, self.units)

    @cached_property
    def of_release(self) -> frozenset[str]:
        """For the warning of a second release in one process: arguments that tell whose data they are, each apart.

        The same table with another target is the same people. A column of a few different values is not: it may be
        that of others. It counts where there is nothing else.
        """
        try:
            each = zip(self._looked_at, self.data, strict=True)
            return frozenset(_digest(pieces) for pieces, data in each if _tells(data)) or frozenset({self.of_rows})
        except InputError:
            return frozenset({f"object {id(self.data[0])}"})

    @cached_property
    def _looked_at(self) -> list[list[str]]:
        return [list(_pieces(argument, ())) for argument in self.data]


def row_prints(table: Any) -> npt.NDArray[np.uint64]:
    """A number for each different row, equal for equal rows; for what has no rows to look at, one for all of it.

    Custodian side, because rows can be guessed by it.
    """
    return np.unique(every_row(table))


def every_row(table: Any) -> npt.NDArray[np.uint64]:
    """The same for every row, in order."""
    import pandas
    from scipy.sparse import issparse

    try:
        if issparse(table):
            raise TypeError("no rows to look at")
        plain = table.to_pandas() if hasattr(table, "to_pandas") else table
        hashed = pandas.util.hash_pandas_object(pandas.DataFrame(plain), index=False)
        return np.asarray(hashed, dtype=np.uint64)
    except Exception:  # its error would quote the data
        (known,) = sorted(DataPrint((table,)).of_release)
    return np.array([int(hashlib.sha256(known.encode()).hexdigest()[:16], 16)], dtype=np.uint64)


def _tells(argument: Any) -> bool:
    """Whether a data argument of others would hardly be the same."""
    shape = getattr(argument, "shape", None)
    if shape is None or len(shape) != 1:
        return True
    try:
        return len(np.unique(np.asarray(argument))) > MAX_COMMON_VALUES
    except TypeError:
        return True


def _pieces(thing: Any, inside: tuple[Any, ...]) -> Iterator[str]:
    """`inside` are the functions that hold this one: a function may have captured itself."""
    if any(thing is outer for outer in inside):
        yield "itself"
    elif isinstance(thing, functools.partial):
        yield "partial"
        yield from _pieces(thing.func, (*inside, thing))
        yield _contents((thing.args, sorted(thing.keywords.items())))
        yield from _functions_in((*thing.args, *thing.keywords.values()), (*inside, thing))
    elif isinstance(thing, types.MethodType):
        yield from _pieces(thing.__func__, (*inside, thing))
        yield _contents(thing.__self__)
        yield from _methods(type(thing.__self__), (*inside, thing))
    elif isinstance(thing, types.FunctionType):
        yield from _function(thing, (*inside, thing))
    elif isinstance(thing, types.ModuleType):
        yield thing.__name__
    elif hasattr(thing, "__wrapped__"):
        yield f"{type(thing).__module__}.{type(thing).__qualname__}"
        yield from _pieces(thing.__wrapped__, (*inside, thing))
    elif callable(thing) and is_dataclass(thing) and not isinstance(thing, type):  # a function made of functions
        yield f"{type(thing).__module__}.{type(thing).__qualname__}"
        for part in fields(thing):
            yield part.name
            yield from _pieces(getattr(thing, part.name), (*inside, thing))
        yield from _methods(type(thing), (*inside, thing))
    elif callable(thing):
        yield f"{type(thing).__module__}.{type(thing).__qualname__}.{getattr(thing, '__qualname__', '')}"
        if not isinstance(thing, (type, types.BuiltinFunctionType)):
            yield _contents(thing)
            yield from _methods(type(thing), (*inside, thing))
    else:
        yield _contents(thing)


def _function(function: types.FunctionType, inside: tuple[Any, ...]) -> Iterator[str]:
    yield f"{function.__module__}.{function.__qualname__}"
    yield from _code(function.__code__)
    yield _contents((function.__defaults__, function.__kwdefaults__))
    yield from _functions_in((*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()), inside)
    for cell in function.__closure__ or ():
        captured = _captured(cell)
        yield from _pieces(captured, inside)
        if not callable(captured):
            yield from _functions_in((captured,), inside)
    for name in _names(function.__code__):
        used = function.__globals__.get(name)
        used = getattr(used, "__wrapped__", used)  # cached or compiled
        if isinstance(used, types.FunctionType) and used.__globals__ is function.__globals__:
            yield from _pieces(used, inside)
        elif isinstance(used, (bool, int, float, str, bytes)) and name.isupper():
            yield f"{name} = {used!r}"


def _functions_in(values: Iterable[Any], inside: tuple[Any, ...]) -> Iterator[str]:
    """Pickles know functions by name alone: their code is looked at here."""
    for value in values:
        if callable(value):
            yield from _pieces(value, inside)
        elif isinstance(value, (list, tuple, dict)) and not any(value is outer for outer in inside):
            yield from _functions_in(value.values() if isinstance(value, dict) else value, (*inside, value))


def _methods(kind: type, inside: tuple[Any, ...]) -> Iterator[str]:
    """What an object that is called does: the methods that its class defines, and classes of that module above it."""
    for above in kind.__mro__:
        for name, method in vars(above).items() if above.__module__ == kind.__module__ else ():
            if isinstance(method, types.FunctionType) and (name == "__call__" or not name.startswith("__")):
                yield from _pieces(method, inside)


def _captured(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return None


def _names(code: types.CodeType) -> Iterator[str]:
    """The global names that a function and those defined in it use."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _code(code: types.CodeType) -> Iterator[str]:
    """What a function does: not where it stands in its file."""
    yield code.co_code.hex()
    yield " ".join(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _code(constant)
        elif isinstance(constant, frozenset):
            yield repr(sorted(map(repr, constant)))
        else:
            yield repr(constant)


def _contents(value: Any) -> str:
    from joblib import hash as contents

    try:
        return str(contents(value))
    except Exception:  # joblib's own error would quote the data
        kind = type(value).__name__
    raise InputError(f"a checkpoint needs data and settings that can be pickled, and a {kind} cannot")
