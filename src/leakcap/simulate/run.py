"""Run a function once in every world; more worlds may follow the first ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.custody.checkpoint import Checkpoint
from leakcap.errors import InputError, LeakcapError, OutputError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats
from leakcap.ground.cores import Machine, threads
from leakcap.kernels import kernel_of
from leakcap.simulate.choice import Way, refuse_disagreement
from leakcap.simulate.executors import Serial, workers_for
from leakcap.simulate.nodes import Node, Vector
from leakcap.simulate.pool import Pool
from leakcap.simulate.progress import Forecast, Progress, Watcher, ignore
from leakcap.simulate.warm_start import Started, takes_start
from leakcap.simulate.worker import Form, FunctionFailed, Part, PooledUnits, Remainders, WorldTask, of_form
from leakcap.worlds import Units, Worlds

CHUNK = 0.5  # seconds of work in a task: little overhead, and smooth progress
TRIED = 32  # worlds in which a function that failed in one is tried again
SHORT = 2.0  # seconds of work for which no processes are started unless asked for
__all__ = ["Outputs", "Simulation", "refuse_unbuildable", "run_worlds", "stored_outputs"]


@dataclass(frozen=True, eq=False)
class Outputs:
    """What the function returned in each world, as rows of `table`; custodian side."""

    table: Floats
    node: Node
    whole_pool: Vector | None
    forecast: Forecast
    start: bytes | None = None  # what the function was given in every world: its answer on the whole pool


def run_worlds(
    fn: Callable[..., Any],
    pool: Pool,
    units: Units,
    worlds: Worlds,
    drop: Iterable[str] = (),
    backend: Any = None,
    workers: int | None = None,
    watch: Watcher = ignore,
    checkpoint: Checkpoint | None = None,
    certificate_seconds: float = 0.0,
    memory: int = Machine().memory,
) -> Outputs:
    """Every world's answer, all of one form, all numbers finite; or an error and nothing else.

    With a checkpoint, worlds whose answers it holds are not run.
    """
    with Simulation(
        fn=fn,
        pool=pool,
        units=units,
        drop=drop,
        backend=backend,
        workers=workers,
        watch=watch,
        checkpoint=checkpoint,
        memory=memory,
    ) as simulation:
        simulation.add(worlds, certificate_seconds)
        return simulation.outputs()


class Simulation:
    """A function that is run in more and more worlds. The checkpoint numbers them as they are added."""

    def __init__(
        self,
        fn: Callable[..., Any],
        pool: Pool,
        units: Units,
        drop: Iterable[str] = (),
        backend: Any = None,
        workers: int | None = None,
        watch: Watcher = ignore,
        checkpoint: Checkpoint | None = None,
        device: str | None = None,
        memory: int = Machine().memory,
        for_custodian: bool = False,
    ) -> None:
        count = 1 if workers is None else checks.count(workers=workers)
        self._task = WorldTask(fn, frozenset(drop))
        self._pooled = PooledUnits(pool, units)
        # Threads of numerical libraries go on waiting for work for a while after a call, on cores that a kernel needs.
        alone = count == 1 and kernel_of(fn) is None
        self._here, self._workers = Serial(alone), workers_for(backend, None if workers is None else count, alone)
        self._asked = backend is not None
        self._free = backend is None and workers is None
        self._watch, self._checkpoint = watch, checkpoint
        self._for_custodian = for_custodian  # whether whoever asks may see what the function says of the whole pool
        self._way = Way(fn, device, memory, checkpoint)
        self._form: Form | None = None
        self._start: bytes | None = None
        self._whole: tuple[Vector | None] | None = None
        self._tables: list[Floats] = []
        self.forecast = Forecast(0, count, 0.0, 0)

    def __enter__(self) -> Simulation:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._workers.close()

    @property
    def worlds(self) -> int:
        """How many were run."""
        return sum(map(len, self._tables))

    def add(self, worlds: Worlds, certificate_seconds: float = 0.0) -> None:
        """Run these worlds, too."""
        try:
            self._add(worlds, certificate_seconds)
            return
        except FunctionFailed as error:
            failed = error
        raise OutputError(self._explained(failed, worlds))

    def _explained(self, failed: FunctionFailed, worlds: Worlds) -> str:
        """What is said of it: in worlds alone its kind, its line and how often.

        Where it fails on the whole pool as well, its own error is raised from here: it is the custodian's mistake, and
        the custodian's to see.
        """
        if not self._for_custodian:
            return str(failed)
        pool = self._pooled.pool
        try:
            self._task.fn(*pool.take(np.arange(pool.rows)))
        except (KeyboardInterrupt, LeakcapError):
            raise
        except (SystemExit, GeneratorExit):  # these would end more than the plan, and show nothing
            return str(failed)
        except BaseException as error:
            raise error from failed  # the command line prints only the latter, which quotes nothing
        tried, lost, until = 0, list[int](), time.perf_counter() + SHORT
        while tried < min(worlds.m, TRIED) and (not tried or time.perf_counter() < until):
            if not self._task.answers(self._pooled, worlds, tried):
                lost.append(self.worlds + tried + 1)
            tried += 1
        if not lost:
            return str(failed)
        of = f"in {len(lost)} of {tried} worlds, and not on all rows together, first in world {lost[0]}"
        return failed.said(of)

    def _add(self, worlds: Worlds, certificate_seconds: float) -> None:
        before, after = self.worlds, self.worlds + worlds.m
        if self._form is None:
            self._form = self._begun(worlds)
        node, pair, seconds = self._form
        table, done = _known(range(before, after), self._form, None if before else worlds.m, self._checkpoint)
        resumed = before + int(done.sum())
        served = None if done.all() else self._served(worlds, node, None if before else pair)
        if served is not None:
            (table, taken), done[:] = served, True
            seconds = taken / worlds.m
            if self._checkpoint:
                self._checkpoint.keep_rows(np.arange(before, after), table)
        if self._loops_on_all_cores() and self._workers.count == 1:
            self._workers = workers_for(None, threads(), alone=False)
        # What is short is done before processes have started.
        here = not self._asked and (served is not None or worlds.m * seconds < SHORT)
        doers = self._here if here else self._workers
        count = 1 if served else doers.count
        self.forecast = Forecast(
            worlds=after,
            workers=count,
            seconds_per_world=seconds,
            output_bytes=8 * after * node.size(),
            certificate_seconds=certificate_seconds,
            way="" if self._way.choice is None else str(self._way.choice),
        )
        started = time.perf_counter()

        def tell() -> None:
            state = before + int(done.sum()), after, time.perf_counter() - started
            rows = round((state[0] - resumed) * worlds.rate * self._pooled.pool.rows)
            self._watch(Progress(*state, self.forecast, resumed, moved=doers.moved, rows=rows))

        tell()
        chunks = _chunks(np.flatnonzero(~done), seconds, doers.count)
        kept_there = None if doers.elsewhere else self._checkpoint
        parts: list[Part] = [(some, before, kept_there) for some in chunks]
        if self._whole is None:
            # It takes longest: among the first, where others work meanwhile.
            parts.insert(len(parts) if doers.count == 1 else doers.count - 1, (None, 0, None))
        shared = self._task, self._pooled, worlds, node
        with Remainders(self._checkpoint) as remainders, closing(doers.run(WorldTask.part, shared, parts)) as answers:
            for place, (rows, kept) in answers:
                some = parts[place][0]
                if some is None:
                    self._whole = self._kept_whole(rows)
                else:
                    remainders.add(before + some[kept:], rows[kept:])
                    table[some], done[some] = rows, True
                    tell()
        refuse_unbuildable(node, table[0])
        self._tables.append(table)

    def outputs(self, order: npt.NDArray[np.intp] | None = None) -> Outputs:
        """All answers, in the order in which worlds were added or in another one."""
        assert self._form is not None and self._whole is not None
        table = self._tables[0] if len(self._tables) == 1 else np.concatenate(self._tables)
        rows = table if order is None else table[order]
        return Outputs(
            table=rows, node=self._form[0], whole_pool=self._whole[0], forecast=self.forecast, start=self._start
        )

    def _begun(self, worlds: Worlds) -> Form:
        """The start, where the function takes one, and then the form of the answers, from a pair of worlds."""
        stored, doers = self._checkpoint, self._workers if self._asked else self._here
        self._whole = stored.kept("whole pool") if stored else None
        fn, arguments = self._task.fn, len(self._pooled.pool.data)
        if kernel_of(fn) is None and takes_start(fn, arguments):
            found = stored.kept("warm start") if stored else None
            if found is None:
                ((_, found),) = doers.run(WorldTask.start, (self._task, self._pooled), [None])
                if stored:
                    stored.keep("warm start", found)  # before any world's answer, all of which depend on it
            self._start, whole = found
            self._task = WorldTask(Started(fn, self._start), self._task.drop)
        form: Form | None = stored.kept("form") if stored else None
        if form is None:
            ((_, form),) = doers.run(WorldTask.first, (self._task, self._pooled, worlds), [_pair(worlds.m)])
            if stored:
                stored.keep("form", form)
        if self._start is not None and self._whole is None:
            self._whole = self._kept_whole(of_form(whole, form[0]))
        return form

    def _kept_whole(self, numbers: Vector | None) -> tuple[Vector | None]:
        if self._checkpoint:
            self._checkpoint.keep("whole pool", (numbers,))
        return (numbers,)

    def _served(self, worlds: Worlds, node: Node, pair: Floats | None) -> tuple[Floats, float] | None:
        """All worlds' answers by the kernel that the function offers, and the seconds it took; None for the loop.

        It must agree with the function in the first pair of worlds.
        """
        kernel = self._way.kernel(self._pooled, worlds)
        if kernel is None:
            return None
        started = time.perf_counter()
        rows = kernel(self._pooled.pool.data, self._pooled.units, worlds)
        if rows is None:
            self._way.refuse_kernel()
            return None
        if rows.shape != (worlds.m, node.size()):
            raise OutputError("the kernel's answers have another size: see leakcap.testing.check_kernel")
        if pair is not None:
            first = _pair(worlds.m), pair
            refuse_disagreement(self._task.fn, self._pooled, worlds, rows=rows, pair=first)
        return np.ascontiguousarray(rows, dtype=np.float64), time.perf_counter() - started

    def _loops_on_all_cores(self) -> bool:
        """Whether a loop takes the place of a kernel, which would have had all cores, and nobody said how many."""
        return self._free and self._way.choice is not None and not self._way.choice.by_kernel


def stored_outputs(m: int, first: int, checkpoint: Checkpoint, order: npt.NDArray[np.intp] | None = None) -> Outputs:
    """What a finished run of `m` worlds has stored, of which so many were added first."""
    form, whole = checkpoint.kept("form"), checkpoint.kept("whole pool")
    if form is not None and whole is not None:
        node, _, seconds = form
        table, done = _known(range(m), form, first, checkpoint)
        if done.all():
            start = checkpoint.kept("warm start")
            rows = table if order is None else table[order]
            return Outputs(
                table=rows,
                node=node,
                whole_pool=whole[0],
                forecast=Forecast(m, 1, seconds, rows.nbytes),
                start=start[0] if start else None,
            )
    raise InputError("this run has not finished: resume it with the call or the command that began it")


def _pair(m: int) -> list[int]:
    """The first world and, of halves, its complement."""
    return [0, m // 2]


def _known(
    worlds: range, form: Form, first: int | None, checkpoint: Checkpoint | None
) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """The answers that there are in these worlds, and which they are; `first`, if any, of them hold the first pair."""
    node, numbers, _ = form
    table = np.empty((len(worlds), node.size()))
    done = np.zeros(len(worlds), dtype=np.bool_)
    if first is not None:
        table[_pair(first)], done[_pair(first)] = numbers, True
    for some, rows in checkpoint.rows(worlds) if checkpoint else ():  # a kernel's count before the function's own
        table[some - worlds.start], done[some - worlds.start] = rows, True
    return table, done


def _chunks(todo: npt.NDArray[np.intp], seconds: float, workers: int) -> list[npt.NDArray[np.intp]]:
    """Worlds in tasks that get smaller towards the end, so that all workers end together."""
    most = max(1, int(CHUNK / max(seconds, 1e-6)))
    chunks, at = [], 0
    while at < len(todo):
        size = min(max((len(todo) - at) // (3 * workers), 1), most)
        chunks.append(todo[at : at + size])
        at += size
    return chunks


def refuse_unbuildable(node: Node, numbers: Vector) -> None:
    """An answer that cannot be made again from its numbers must fail now, not when it is released."""
    try:
        node.build(numbers)
        return
    except Exception as error:
        kind = type(error).__name__
    raise OutputError(
        f"the answer cannot be made again from its numbers ({kind}): return plain dicts, tuples or arrays"
    )
