"""A function that takes its randomness from a seed, run in many worlds with several seeds in each."""

from __future__ import annotations

import functools
import inspect
import math
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.custody.checkpoint import Checkpoint
from leakcap.errors import InputError, LeakcapError, OutputError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats, Ints
from leakcap.ground.cores import Machine
from leakcap.simulate.estimators import is_estimator
from leakcap.simulate.executors import Workers, workers_for
from leakcap.simulate.nodes import Node, Vector
from leakcap.simulate.progress import Forecast, Progress, Watcher, ignore
from leakcap.simulate.run import Outputs, refuse_unbuildable
from leakcap.simulate.worker import FunctionFailed, PooledUnits, of_form, one_answer, refuse
from leakcap.worlds import Worlds

__all__ = ["SEEDS", "SeedTask", "Seeds", "Sown", "SownTogether", "run_seeds"]

SEEDS = 2**32  # possible seeds of one function: what every generator takes
NAMES = ("seed", "random_state")
PARTS = 16  # in which each worker is given its worlds, at least
STORED = 5.0  # seconds of work after which answers are stored
Seeds = npt.NDArray[np.uint32]  # (worlds, seeds, words): a word for each function


@dataclass(frozen=True)
class Sown:
    """A function and the name by which it takes its seed, a whole number from 0 to 2^32 - 1."""

    fn: Callable[..., Any]
    name: str
    words = 1

    @classmethod
    def of(cls, fn: Callable[..., Any], arguments: int) -> Sown:
        """An InputError for functions of so many data arguments that take no seed."""
        if isinstance(fn, functools.partial) and set(NAMES) & set(fn.keywords):
            raise InputError("the seed of this function is bound to it already: leave it to the plan, which draws one")
        try:
            parameters = inspect.signature(fn).parameters
        except (TypeError, ValueError):  # compiled functions may have none
            parameters = inspect.signature(lambda: None).parameters
        places = list(parameters)
        for name in NAMES:
            asked = parameters.get(name)
            if asked is None or asked.kind not in (asked.KEYWORD_ONLY, asked.POSITIONAL_OR_KEYWORD):
                continue
            # Where data reach so far, it is an argument for data.
            if asked.kind is asked.KEYWORD_ONLY or places.index(name) >= arguments:
                return cls(fn, name)
        raise InputError(
            "randomness='secret' needs a function that takes its seed by name and draws from nothing else, such as "
            "def fit(rows, *, seed): rng = np.random.default_rng(seed). A function without randomness of its own is "
            "planned without randomness= and seeds="
        )

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        return self.fn  # whose lines are named where it fails

    def __call__(self, *rows: Any, seed: Sequence[int]) -> Any:
        (own,) = seed
        return _unseeded(self.fn(*rows, **{self.name: own}), own)


@dataclass(frozen=True)
class SownTogether:
    """Several functions on the same rows, each with a seed of its own; the answer is the tuple of theirs."""

    functions: tuple[Sown, ...]

    @property
    def words(self) -> int:
        return len(self.functions)

    def __call__(self, *rows: Any, seed: Sequence[int]) -> tuple[Any, ...]:
        return tuple(one(*rows, seed=(own,)) for one, own in zip(self.functions, seed, strict=True))


def _unseeded(answer: Any, seed: int) -> Any:
    """The same answer; a fitted estimator forgets the seed, which would otherwise be one of its parameters."""
    if is_estimator(answer):
        held = answer.get_params(deep=True)
        forgotten = {name: None for name, value in held.items() if name.endswith("random_state") and value == seed}
        if forgotten:
            answer.set_params(**forgotten)
    return answer


@dataclass(frozen=True, eq=False)
class SeedTask:
    """What is asked in every world with every seed."""

    fn: Sown | SownTogether
    drop: frozenset[str]

    def answer(self, pooled: PooledUnits, rows: Ints, seed: Sequence[int]) -> tuple[Node, Vector]:
        """Rows are cut out anew for every seed: what the function does to them no other run sees."""
        sown = functools.partial(self.fn, seed=seed)
        return one_answer(sown, pooled.pool, rows, self.drop)

    def part(self, pooled: PooledUnits, worlds: Worlds, seeds: Seeds, node: Node, places: Ints) -> Floats:
        """The answers in some worlds, `(worlds, seeds, outputs)`."""
        found = np.empty((len(places), seeds.shape[1], node.size()))
        for answers, place in zip(found, places, strict=True):
            rows = pooled.units.rows_in(worlds.mask(int(place)))
            for row, seed in zip(answers, seeds[place].tolist(), strict=True):
                form, numbers = self.answer(pooled, rows, seed)
                refuse(list(node.differences(form)))
                row[:] = numbers
        return found


def run_seeds(
    task: SeedTask,
    pooled: PooledUnits,
    worlds: Worlds,
    seeds: Seeds,
    *,
    backend: Any = None,
    workers: int | None = None,
    watch: Watcher = ignore,
    memory: int = Machine().memory,
    checkpoint: Checkpoint | None = None,
) -> tuple[Floats, Outputs]:
    """All answers, `(worlds, seeds, outputs)`, and those to the first seed of each world; or an error and no answer.

    With a checkpoint, worlds whose answers it holds are not run.
    """
    count = None if workers is None else checks.count(workers=workers)
    doers = workers_for(backend, count, alone=count in (None, 1))
    try:
        return _run(task, pooled, worlds, seeds, doers=doers, watch=watch, memory=memory, checkpoint=checkpoint)
    except FunctionFailed as error:
        said = str(error)
    finally:
        doers.close()
    raise OutputError(said)


def _run(
    task: SeedTask,
    pooled: PooledUnits,
    worlds: Worlds,
    seeds: Seeds,
    *,
    doers: Workers,
    watch: Watcher,
    memory: int,
    checkpoint: Checkpoint | None,
) -> tuple[Floats, Outputs]:
    rows, one = pooled.units.rows_in(worlds.mask(0)), seeds[0, 0].tolist()
    began = time.perf_counter()
    node, numbers = task.answer(pooled, rows, one)
    seconds = time.perf_counter() - began
    refuse(list(node.refusals()))
    if not node.size():
        raise OutputError("the function returns no number that could be released")
    refuse_unbuildable(node, numbers)
    tau = seeds.shape[1]
    if (needed := 8 * worlds.m * tau * node.size()) > memory:
        raise InputError(
            f"all answers take {needed / 2**30:.3g} GiB, and memory= allows {memory / 2**30:.3g}: allow more, or take "
            "fewer worlds, seeds or outputs"
        )
    table = np.empty((worlds.m, tau, node.size()))
    forecast = Forecast(worlds.m, doers.count, seconds * tau, table.nbytes)
    todo = _resumed(table, checkpoint, node)
    count = max(PARTS * doers.count, math.ceil(len(todo) * tau * seconds / STORED))
    parts = np.array_split(todo, min(len(todo), count)) if len(todo) else []
    resumed = done = worlds.m - len(todo)
    began = time.perf_counter()
    with closing(doers.run(SeedTask.part, (task, pooled, worlds, seeds, node), parts)) as answers:
        for place, found in answers:
            table[parts[place]] = found
            if checkpoint:
                checkpoint.keep_rows(parts[place], found.reshape(len(found), -1))
            done += len(found)
            watch(Progress(done, worlds.m, time.perf_counter() - began, forecast, resumed=resumed))
    return table, Outputs(
        table=table[:, 0], node=node, whole_pool=_whole_pool(task, pooled, node, one), forecast=forecast
    )


def _resumed(table: Floats, checkpoint: Checkpoint | None, node: Node) -> Ints:
    """The worlds that are still to be run; answers in the others go into the table."""
    done = np.zeros(len(table), dtype=np.bool_)
    if checkpoint:
        checkpoint.keep("form", node)  # first: from here on the folder is this run's
        for some, rows in checkpoint.rows(range(len(table))):
            table[some], done[some] = rows.reshape(len(some), *table.shape[1:]), True
    return np.flatnonzero(~done)


def _whole_pool(task: SeedTask, pooled: PooledUnits, node: Node, seed: Sequence[int]) -> Vector | None:
    """The answer on the whole pool, to tell the error of a release."""
    try:
        _, of_all = task.answer(pooled, np.arange(pooled.pool.rows), seed)
    except LeakcapError:
        return None
    return of_form(of_all, node)
