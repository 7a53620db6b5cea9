"""Compiled functions: numba's, without the interpreter's lock, kept on disk where some folder can be written to.

Machine code on the disk belongs to one version of the package and of its loops. Numba itself looks at the file of a
function alone, and a loop may call loops of other files: after an upgrade it could go on with the old ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from numba import njit
from numba.core import event

from leakcap.ground import announce
from leakcap.version import __version__

__all__ = ["compiled"]

SECONDS_PER_LOOP = 0.8  # of one core, about
_not_compiled: dict[str, set[str]] = {}  # by module: functions that no machine code was found for, as far as is known


def compiled(fastmath: set[str]) -> Callable[[Any], Any]:
    """A decorator; `fastmath` names what the compiler may assume about numbers."""

    def compile_one(function: Any) -> Any:
        name = function.__qualname__
        function.__qualname__ = f"{name}-{edition()}"  # numba names the file that it keeps after this
        try:
            dispatcher = njit(nogil=True, cache=True, fastmath=fastmath)(function)
            kept = any(Path(str(dispatcher.stats.cache_path)).glob(f"*.{function.__qualname__}-*.nbi"))
        except RuntimeError:  # no folder to keep the machine code in: compile again in every process
            dispatcher, kept = njit(nogil=True, fastmath=fastmath)(function), False
        finally:
            function.__qualname__ = name
        if not kept:
            _not_compiled.setdefault(function.__module__, set()).add(name)
        return dispatcher

    return compile_one


@cache
def edition() -> str:
    """The version of the package, and a digest of the files with compiled loops, whose names begin with `_`."""
    loops = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].rglob("_[a-z]*.py")):
        loops.update(path.read_bytes())
    return f"{__version__}-{loops.hexdigest()[:12]}".replace(".", "_")


class _Compiling(event.Listener):
    """Says before the first loop of a module is compiled how long that module will take."""

    def on_start(self, event: Any) -> None:
        module = event.data["dispatcher"].py_func.__module__
        if loops := _not_compiled.pop(module, None):
            announce.compiling(SECONDS_PER_LOOP * len(loops))

    def on_end(self, event: Any) -> None:
        pass


event.register("numba:compile", _Compiling())  # type: ignore[no-untyped-call]
