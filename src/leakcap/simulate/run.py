"""Run a function once in every world: serially, in threads or in processes."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap import checks
from leakcap.cores import one_blas_thread
from leakcap.errors import InputError, LeakcapError, OutputError
from leakcap.kernels import kernel_of
from leakcap.simulate.checkpoint import Checkpoint
from leakcap.simulate.models import PARAMETER
from leakcap.simulate.progress import Forecast, Progress, Watcher, ignore
from leakcap.simulate.rows import Pool
from leakcap.simulate.structure import Difference, Node, Vector, describe
from leakcap.worlds import Units, Worlds

AGREED = 1e-9  # kernels and functions may differ by rounding
SAVED = 0.05  # seconds of work after which answers are stored; a world that takes longer is stored at once
SHORT = 2.0  # seconds of work for which no processes are started unless asked for
__all__ = ["Outputs", "one_answer", "run_worlds", "stored_outputs", "threads_for"]


@dataclass(frozen=True, eq=False)
class Outputs:
    """What the function returned in each world, as rows of `table`; custodian side."""

    table: npt.NDArray[np.float64]
    node: Node
    whole_pool: Vector | None
    forecast: Forecast


def run_worlds(
    fn: Callable[..., Any],
    pool: Pool,
    units: Units,
    worlds: Worlds,
    drop: Iterable[str] = (),
    backend: str | None = None,
    workers: int | None = None,
    watch: Watcher = ignore,
    checkpoint: Checkpoint | None = None,
    certificate_seconds: float = 0.0,
) -> Outputs:
    """Every world's answer, all of one form, all numbers finite; or an error and nothing else.

    With a checkpoint, worlds whose answers it holds are not run.
    """
    workers = 1 if workers is None else checks.count(workers=workers)
    task = _Task(fn, pool, units, worlds, frozenset(drop), checkpoint, alone=workers == 1)
    run = _executor(backend, workers)
    first = checkpoint.kept("form") if checkpoint else None
    pair = [0, worlds.m // 2]
    if first is None:
        (first,) = (run if backend else map)(task.first, [pair])
        if checkpoint:
            checkpoint.keep("form", first)
    node, seconds = first[0], first[2]
    table, done = _known(worlds, first, checkpoint)
    resumed = int(done.sum())
    served = None if done.all() else _served(fn, pool, units, worlds, first[1])
    if served is not None:
        rows, taken = served
        if checkpoint:
            checkpoint.keep_rows(np.arange(worlds.m), rows)
        table, done = rows, np.ones(worlds.m, dtype=np.bool_)
        seconds, workers = taken / worlds.m, 1
    if backend is None and worlds.m * seconds < SHORT:
        run, workers = map, 1  # done before processes have started
    forecast = Forecast(worlds.m, workers, seconds, table.nbytes, certificate_seconds)
    todo = np.flatnonzero(~done)
    # About half a second of work per task keeps the overhead small and the progress smooth.
    size = int(np.clip(0.5 / max(seconds, 1e-6), 1, max(1, len(todo) // (4 * workers))))
    chunks = [todo[i : i + size] for i in range(0, len(todo), size)]
    started = time.perf_counter()

    def tell() -> None:
        watch(Progress(int(done.sum()), worlds.m, time.perf_counter() - started, forecast, resumed))

    tell()
    for chunk, rows in zip(chunks, run(functools.partial(task.rest, node), chunks), strict=True):
        table[chunk], done[chunk] = rows, True
        tell()
    _try_rebuilding(node, table[0])
    whole = checkpoint.kept("whole pool") if checkpoint else None
    if whole is None:
        whole = tuple(run(task.whole_pool, [node]))
        if checkpoint:
            checkpoint.keep("whole pool", whole)
    return Outputs(table, node, whole[0], forecast)


def _served(
    fn: Callable[..., Any], pool: Pool, units: Units, worlds: Worlds, pair: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], float] | None:
    """All worlds' answers by the kernel that the function offers, and the seconds it took; it must agree with it."""
    kernel = kernel_of(fn)
    if kernel is None:
        return None
    started = time.perf_counter()
    rows = kernel(pool.data, units, worlds)
    if rows is None:
        return None
    apart = np.abs(rows[[0, worlds.m // 2]] - pair) if rows.shape == (worlds.m, pair.shape[1]) else np.full(1, np.inf)
    if not (apart <= AGREED * np.maximum(np.abs(pair), np.abs(rows).max(axis=0))).all():
        raise OutputError("the kernel and the function give different answers: see leakcap.testing.check_kernel")
    return np.ascontiguousarray(rows, dtype=np.float64), time.perf_counter() - started


def stored_outputs(worlds: Worlds, checkpoint: Checkpoint) -> Outputs:
    """What a finished run has stored."""
    first, whole = checkpoint.kept("form"), checkpoint.kept("whole pool")
    if first is None or whole is None:
        raise InputError("this run has not finished: resume it with the call or the command that began it")
    table, done = _known(worlds, first, checkpoint)
    if not done.all():
        raise InputError("this run has not finished: resume it with the call or the command that began it")
    return Outputs(table, first[0], whole[0], Forecast(worlds.m, 1, first[2], table.nbytes))


def _known(
    worlds: Worlds, first: tuple[Node, npt.NDArray[np.float64], float], checkpoint: Checkpoint | None
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """The answers that there are, and which they are."""
    node, numbers, _ = first
    table = np.empty((worlds.m, node.size()))
    done = np.zeros(worlds.m, dtype=np.bool_)
    pair = [0, worlds.m // 2]
    table[pair], done[pair] = numbers, True
    for some, rows in checkpoint.rows() if checkpoint else ():
        table[some], done[some] = rows, True
    return table, done


def threads_for(alone: bool) -> AbstractContextManager[Any]:
    """Threads inside numerical libraries: all for one worker, one each for several.

    Models keep the number of threads they were fitted with; it must be the same in every world.
    """
    return nullcontext() if alone else one_blas_thread()


def one_answer(
    fn: Callable[..., Any], pool: Pool, rows: npt.NDArray[np.intp], drop: frozenset[str]
) -> tuple[Node, Vector]:
    """The function's answer on some rows."""
    try:
        return describe(fn(*pool.take(rows)), len(rows), drop)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # some compiled libraries panic with one
        # The text of a foreign exception may quote the data, so only its type leaves.
        kind = type(error).__name__
    raise OutputError(
        f"the function raised {kind} in one of the worlds (its text is withheld: it may quote the data). "
        "Try it on random halves of your data, and make it return a fixed value where it cannot answer"
    )


def refuse(places: list[Difference]) -> None:
    """Raise if anything in the answer cannot be released, naming every such place and the way out."""
    if not places:
        return
    lines = [f"  {path or 'the answer'} {reason}" for path, reason in dict(places).items()]
    attributes = sorted(
        {path.rsplit(".", 1)[-1].split("[")[0] for path, reason in places if "." in path and PARAMETER not in reason}
    )
    way_out = (
        f"\nIf the answer works without them, leave them out of the release with drop={attributes!r}."
        if attributes
        else ""
    )
    raise OutputError("parts of the answer cannot be released:\n" + "\n".join(lines) + way_out)


Run = Callable[[Callable[[Any], Any], list[Any]], Iterable[Any]]


def _executor(backend: str | None, workers: int) -> Run:
    """Something that applies a function to a list, in order."""
    kind = backend or ("serial" if workers == 1 else "processes")
    if kind not in ("serial", "threads", "processes"):
        raise InputError("backend must be 'serial', 'threads' or 'processes'")
    if kind == "serial":
        return map
    from joblib import Parallel, delayed

    engine: dict[str, Any] = {"backend": "threading"}
    if kind == "processes":
        watched = {"initializer": _end_with, "initargs": (os.getpid(),)}
        engine = {"backend": "loky", "max_nbytes": "1M", "mmap_mode": "r", "temp_folder": _closed_folder(), **watched}

    def run(function: Callable[[Any], Any], items: list[Any]) -> Iterable[Any]:
        parallel = Parallel(n_jobs=workers, return_as="generator", **engine)
        try:
            yield from parallel(delayed(function)(item) for item in items)
            return
        except (LeakcapError, KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            stopped = type(error).__name__
        raise OutputError(
            f"the workers stopped with {stopped} (its text is withheld: it may quote the data). Try backend='serial'; "
            "data and function must be picklable for processes"
        )

    return run


@functools.cache
def _closed_folder() -> str:
    """Where data travel to workers: in files that nobody else can open, not even while they are written.

    One for the whole process, because workers are used again. Joblib empties it after each run; the folder itself
    goes when the process ends, also when it is killed.
    """
    from joblib.externals.loky.backend import resource_tracker

    place = "/dev/shm"  # needs no disk
    folder = tempfile.mkdtemp(prefix="leakcap-", dir=place if os.access(place, os.W_OK) else None)
    resource_tracker.register(folder, "folder")

    def remove() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        resource_tracker.unregister(folder, "folder")

    atexit.register(remove)
    return folder


def _end_with(custodian: int) -> None:
    """In a worker: end soon after the process that began the run, which may have been killed."""

    def watch() -> None:
        while os.getppid() == custodian:
            time.sleep(0.2)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _try_rebuilding(node: Node, numbers: Vector) -> None:
    """An answer that cannot be made again from its numbers must fail now, not when it is released."""
    try:
        node.build(numbers)
        return
    except Exception as error:
        kind = type(error).__name__
    raise OutputError(
        f"the answer cannot be made again from its numbers ({kind}): return plain dicts, tuples or arrays"
    )


@dataclass(frozen=True, eq=False)
class _Task:
    """What a worker needs; large arrays in it travel as memory maps."""

    fn: Callable[..., Any]
    pool: Pool
    units: Units
    worlds: Worlds
    drop: frozenset[str]
    checkpoint: Checkpoint | None
    alone: bool  # one worker may use all cores; several get one each, in whichever process a world is run

    def answer(self, world: int) -> tuple[Node, Vector]:
        return one_answer(self.fn, self.pool, self.units.rows_in(self.worlds.mask(world)), self.drop)

    def first(self, pair: list[int]) -> tuple[Node, npt.NDArray[np.float64], float]:
        """A world and its complement: the form of the answer, and the time of one world."""
        with threads_for(self.alone):
            started = time.perf_counter()
            node, numbers = self.answer(pair[0])
            seconds = time.perf_counter() - started
            other, others = self.answer(pair[1])
        seconds = min(seconds, time.perf_counter() - started - seconds)  # the first call also warms up
        refuse([*node.refusals(), *node.differences(other)])
        if not node.size():
            raise OutputError("the function returns no number that could be released")
        return node, np.stack([numbers, others]), seconds

    def rest(self, node: Node, chosen: npt.NDArray[np.intp]) -> npt.NDArray[np.float64]:
        with threads_for(self.alone):
            return self._rest(node, chosen)

    def _rest(self, node: Node, chosen: npt.NDArray[np.intp]) -> npt.NDArray[np.float64]:
        rows = np.empty((len(chosen), node.size()))
        kept, saved = 0, time.perf_counter()
        for i, world in enumerate(chosen):
            found, numbers = self.answer(int(world))
            refuse(list(node.differences(found)))
            rows[i] = numbers
            if self.checkpoint and (i + 1 == len(chosen) or time.perf_counter() - saved > SAVED):
                self.checkpoint.keep_rows(chosen[kept : i + 1], rows[kept : i + 1])
                kept, saved = i + 1, time.perf_counter()
        return rows

    def whole_pool(self, node: Node) -> Vector | None:
        """The answer on the whole pool, to tell the error of a release; None if there is none of that form."""
        try:
            _, numbers = one_answer(self.fn, self.pool, np.arange(self.pool.rows), self.drop)
        except LeakcapError:
            return None
        return numbers if len(numbers) == node.size() and np.isfinite(numbers).all() else None
