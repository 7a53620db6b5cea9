"""A function run once on each of the inputs that may have been used."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from leakcap.errors import LeakcapError, OutputError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats, Ints
from leakcap.simulate.describe import describe
from leakcap.simulate.executors import workers_for
from leakcap.simulate.nodes import Node, Vector
from leakcap.simulate.progress import Forecast, Progress, Watcher, ignore
from leakcap.simulate.run import Outputs, refuse_unbuildable
from leakcap.simulate.worker import line_of, refuse

__all__ = ["run_inputs"]

NO_ROWS = -1  # what an input is made of is the function's business: no attribute is taken for one of its rows
PARTS = 8  # in which each worker is given its inputs


@dataclass(frozen=True, eq=False)
class InputTask:
    """What is asked of every input."""

    fn: Callable[..., Any]
    drop: frozenset[str]

    def answer(self, one: Any) -> tuple[Node, Vector]:
        """The form and the numbers of an answer; an error says neither what it is about nor what it was given."""
        try:
            return describe(self.fn(one), NO_ROWS, self.drop)
        except (KeyboardInterrupt, LeakcapError):
            raise
        except BaseException as error:  # some compiled libraries panic with one
            kind, line = type(error).__name__, line_of(self.fn, error)
        where = "" if line is None else f", in line {line}"
        raise OutputError(
            f"the function raised {kind}{where}, on one of the inputs (its text is withheld: it may quote it). Try it "
            "on each of them, and make it return a fixed value where it cannot answer"
        )

    def part(self, inputs: Sequence[Any], node: Node, places: Ints) -> Floats:
        """The answers on some inputs, as rows."""
        rows = np.empty((len(places), node.size()))
        for row, place in zip(rows, places, strict=True):
            found, numbers = self.answer(inputs[place])
            refuse(list(node.differences(found)))
            row[:] = numbers
        return rows


def run_inputs(
    fn: Callable[..., Any],
    inputs: Sequence[Any],
    drop: frozenset[str] = frozenset(),
    *,
    backend: Any = None,
    workers: int | None = None,
    watch: Watcher = ignore,
) -> Outputs:
    """Every input's answer, all of one form; or an error and nothing else."""
    count = 1 if workers is None else checks.count(workers=workers)
    task, began = InputTask(fn, drop), time.perf_counter()
    node, numbers = task.answer(inputs[0])
    refuse(list(node.refusals()))
    if not node.size():
        raise OutputError("the function returns no number that could be released")
    seconds = time.perf_counter() - began
    table = np.empty((len(inputs), node.size()))
    table[0] = numbers
    doers = workers_for(backend, workers, alone=count == 1)
    forecast = Forecast(len(inputs), doers.count, seconds, table.nbytes)
    parts = np.array_split(np.arange(1, len(inputs)), min(len(inputs) - 1, PARTS * doers.count))
    done = 1
    try:
        with closing(doers.run(InputTask.part, (task, inputs, node), parts)) as answers:
            for place, rows in answers:
                table[parts[place]] = rows
                done += len(rows)
                watch(Progress(done, len(inputs), time.perf_counter() - began, forecast))
    finally:
        doers.close()
    refuse_unbuildable(node, table[0])
    return Outputs(table=table, node=node, whole_pool=None, forecast=forecast)
