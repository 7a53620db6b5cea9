"""What of the machine is ours: cores, memory, a GPU."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["Machine", "crew", "in_parts", "on_all_cores", "one_blas_thread", "threads"]

Item = TypeVar("Item")
Found = TypeVar("Found")
MIN_THREADED_PRODUCTS = 2**26  # multiplications from which threads are worth their start


@dataclass(frozen=True)
class Machine:
    """What the leakage computation may use: bytes of memory, and a device of torch if there is one."""

    memory: int = 2 * 2**30
    device: str | None = None


def threads() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def one_blas_thread() -> AbstractContextManager[Any]:
    """Where our own threads or processes share the work, numerical libraries must not start more."""
    return _libraries(len(sys.modules)).limit(limits=1)  # type: ignore[no-any-return]


@functools.lru_cache(maxsize=1)
def _libraries(modules: int) -> Any:
    """All numerical libraries in this process; a search takes milliseconds, and only an import can bring new ones."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def crew(work: float) -> Iterator[Executor]:
    """A thread for each core, and one for numerical libraries; where there is little work, the caller alone."""
    with one_blas_thread(), ThreadPoolExecutor(threads()) if work > MIN_THREADED_PRODUCTS else _Caller() as pool:
        yield pool


class _Caller(Executor):
    """Does at once what it is given."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(fn(*args, **kwargs))
        return done


def on_all_cores(work: Callable[[Item], Found], items: Iterable[Item]) -> list[Found]:
    """`work` on every item, in order, by a thread for each core; for work that lets other threads run."""
    listed = list(items)
    if len(listed) <= 1:  # nothing to share
        return [work(item) for item in listed]
    with ThreadPoolExecutor(threads()) as pool:
        return list(pool.map(work, listed))


def in_parts(work: Callable[[npt.NDArray[Any]], Found], table: npt.NDArray[Any]) -> list[Found]:
    """`work` on parts of the table, one for each core, all at once."""
    with one_blas_thread():
        return on_all_cores(work, np.array_split(table, min(threads(), max(len(table), 1))))
