"""What a task has before it: public data sets, a folder of its own, a command line, and what it is told."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import shlex
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from leakcap import datasets
from leakcap.cli import main

__all__ = ["Desk", "error", "told"]

FEW_ROWS = 3000


@functools.cache
def _whole(name: str) -> Any:
    return getattr(datasets, name)()


@functools.cache
def _some(name: str, rows: int) -> Any:
    table = _whole(name)
    return table.sample(min(rows, len(table)), random_state=0).reset_index(drop=True)


@dataclass(frozen=True)
class Desk:
    """Where somebody sits. With `few`, data sets are cut to a few thousand rows."""

    folder: Path
    few: bool = True

    def adult(self) -> Any:
        return self._table("adult")

    def all_adults(self) -> Any:
        """Every one of them, whose rarest categories more than four people carry."""
        return _whole("adult").copy()

    def all_beans(self) -> Any:
        """Every one of them, for models of seven classes."""
        return _whole("dry_bean").copy()

    def beans(self) -> Any:
        return self._table("dry_bean")

    def diabetes(self) -> Any:
        return self._table("diabetes130")

    def heart(self) -> Any:
        return self._table("heart_disease")

    def _table(self, name: str) -> Any:
        return (_some(name, FEW_ROWS) if self.few else _whole(name)).copy()

    def write(self, name: str, text: str, encoding: str = "utf-8") -> Path:
        """A file in the folder, to the letter."""
        path = self.folder / name
        path.write_bytes(text.encode(encoding))
        return path

    def run(self, command: str) -> tuple[int, str]:
        """A command typed in the folder: its exit status, and all that it says."""
        words = shlex.split(command)
        assert words[0] == "leakcap"
        before, said = Path.cwd(), io.StringIO()
        os.chdir(self.folder)
        try:
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                main(words[1:])
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        finally:
            os.chdir(before)
        return code, said.getvalue()


def error(released: Any, plain: Any) -> float:
    """How far released numbers are from the plain answer, relative to its size."""
    found, wanted = np.asarray(released, dtype=float), np.asarray(plain, dtype=float)
    assert found.shape == wanted.shape
    return float(np.linalg.norm(found - wanted) / np.linalg.norm(wanted))


@contextlib.contextmanager
def told(kind: type[Warning], *words: str) -> Iterator[None]:
    """A warning of this kind must come, and say all of these words."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        yield
    texts = [str(one.message) for one in heard if issubclass(one.category, kind)]
    assert texts, f"no {kind.__name__}"
    assert all(word in texts[0] for word in words), texts[0]
