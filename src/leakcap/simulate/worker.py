"""What a worker does: answers in some worlds, for a function and a pool that all worlds share."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from leakcap.custody.checkpoint import Checkpoint
from leakcap.errors import LeakcapError, OutputError
from leakcap.ground.arrays import Floats
from leakcap.simulate.describe import describe, rebuild
from leakcap.simulate.estimators import PARAMETER
from leakcap.simulate.nodes import Difference, Node, Vector
from leakcap.simulate.pool import Pool
from leakcap.simulate.warm_start import Started, as_start
from leakcap.worlds import Units, Worlds

__all__ = [
    "Form",
    "FunctionFailed",
    "Part",
    "PooledUnits",
    "Remainders",
    "WorldTask",
    "line_of",
    "of_form",
    "one_answer",
    "refuse",
]

SAVED = 0.05  # seconds of work after which answers are stored; a world that takes longer is stored at once
QUICK = 0.0125  # seconds that storing takes where the disk is not busy; where it takes longer, it is done less often
LITTLE = 0.2  # share of that work: what remains of a part and is less is stored together with other remainders

Form: TypeAlias = tuple[Node, Floats, float]  # of all answers; the numbers of the first pair; seconds of one world
# Worlds to run (None: the whole pool), how many were added before these, and where answers are kept.
Part: TypeAlias = tuple["npt.NDArray[np.intp] | None", int, "Checkpoint | None"]


class FunctionFailed(OutputError):
    """The function raised something in a world: what kind, and in which line of its file."""

    def __init__(self, kind: str, line: int | None, worlds: str = "in one of the worlds") -> None:
        super().__init__(kind, line, worlds)

    def __str__(self) -> str:
        return self.said(self.args[2])

    def said(self, worlds: str) -> str:
        """The same of other worlds."""
        kind, line, _ = self.args
        where = "" if line is None else f", in line {line}"
        return (
            f"the function raised {kind}{where}, {worlds} (its text is withheld: it may quote the data). Try it on "
            "random halves of your data, and make it return a fixed value where it cannot answer"
        )


@dataclass(frozen=True, eq=False)
class PooledUnits:
    """What worlds are parts of."""

    pool: Pool
    units: Units


@dataclass(frozen=True, eq=False)
class WorldTask:
    """What is asked in every world. Only bits of the worlds travel: rows are looked up where they are needed."""

    fn: Callable[..., Any]
    drop: frozenset[str]

    def first(self, pooled: PooledUnits, worlds: Worlds, pair: list[int]) -> Form:
        """A world and its complement: the form of the answer, and the time of one world."""
        started = time.perf_counter()
        node, numbers = self._answer(pooled, worlds, pair[0])
        seconds = time.perf_counter() - started
        other, others = self._answer(pooled, worlds, pair[1])
        seconds = min(seconds, time.perf_counter() - started - seconds)  # the first call also warms up
        refuse([*node.refusals(), *node.differences(other)], self._trial(pooled, worlds, pair[0]))
        if not node.size():
            raise OutputError("the function returns no number that could be released")
        return node, np.stack([numbers, others]), seconds

    def part(self, pooled: PooledUnits, worlds: Worlds, node: Node, part: Part) -> tuple[Floats | None, int]:
        """The answers in some worlds, as rows, and how many of them the checkpoint has; or that on the whole pool.

        The latter is None if there is none of that form.
        """
        chosen, before, checkpoint = part
        if chosen is None:
            return self._whole_pool(pooled, node), 0
        rows = np.empty((len(chosen), node.size()))
        kept, saved, due = 0, time.perf_counter(), SAVED
        for i, world in enumerate(chosen):
            found, numbers = self._answer(pooled, worlds, int(world))
            refuse(list(node.differences(found)), self._trial(pooled, worlds, int(world)))
            rows[i] = numbers
            now = time.perf_counter()
            if checkpoint and now - saved > (due if i + 1 < len(chosen) else LITTLE * due):
                checkpoint.keep_rows(before + chosen[kept : i + 1], rows[kept : i + 1])
                kept, saved = i + 1, time.perf_counter()
                due = SAVED * max(1.0, (saved - now) / QUICK)
        return rows, kept

    def start(self, pooled: PooledUnits, nothing: None) -> tuple[bytes, Vector]:
        """The answer on the whole pool without a start: as the start of all worlds, and its numbers."""
        answers: list[Any] = []

        def remembering(*rows: Any) -> Any:
            answers.append(Started(self.fn)(*rows))
            return answers[-1]

        _, numbers = one_answer(remembering, pooled.pool, np.arange(pooled.pool.rows), self.drop)
        return as_start(answers[-1]), numbers

    def _answer(self, pooled: PooledUnits, worlds: Worlds, world: int) -> tuple[Node, Vector]:
        return one_answer(self.fn, pooled.pool, pooled.units.rows_in(worlds.mask(world)), self.drop)

    def answers(self, pooled: PooledUnits, worlds: Worlds, world: int) -> bool:
        """Whether the function answers in a world."""
        try:
            self._answer(pooled, worlds, world)
        except LeakcapError:
            return False
        return True

    def _trial(self, pooled: PooledUnits, worlds: Worlds, world: int) -> Callable[[frozenset[str]], bool]:
        """Whether the answer in a world is still of use without some attributes: advice is tried before it is given."""

        def works(without: frozenset[str]) -> bool:
            rows = pooled.pool.take(pooled.units.rows_in(worlds.mask(world)))
            try:
                node, numbers = describe(self.fn(*rows), len(rows), self.drop | without)
                made = None if any(node.refusals()) else rebuild(node, numbers)
                for name in ("predict", "transform"):
                    if hasattr(made, name):
                        getattr(made, name)(rows[0])
            except Exception:  # whatever it is, it may quote the data
                return False
            return made is not None

        return works

    def _whole_pool(self, pooled: PooledUnits, node: Node) -> Vector | None:
        """The answer on the whole pool, to tell the error of a release."""
        try:
            _, numbers = one_answer(self.fn, pooled.pool, np.arange(pooled.pool.rows), self.drop)
        except LeakcapError:
            return None
        return of_form(numbers, node)


class Remainders:
    """Answers that were too few to be stored on their own where they were computed: stored together, soon."""

    def __init__(self, checkpoint: Checkpoint | None) -> None:
        self._checkpoint = checkpoint
        self._waiting: list[tuple[npt.NDArray[np.intp], Floats]] = []
        self._since = time.perf_counter()

    def __enter__(self) -> Remainders:
        return self

    def __exit__(self, *_: object) -> None:
        self._store()

    def add(self, worlds: npt.NDArray[np.intp], rows: Floats) -> None:
        """Take over the answers in some worlds, which may be none."""
        if self._checkpoint and len(worlds):
            self._waiting.append((worlds, rows))
        if time.perf_counter() - self._since > SAVED:
            self._store()

    def _store(self) -> None:
        waiting, self._waiting = self._waiting, []
        if self._checkpoint and waiting:
            worlds, rows = zip(*waiting, strict=True)
            self._checkpoint.keep_rows(np.concatenate(worlds), np.concatenate(rows))
        self._since = time.perf_counter()


def of_form(numbers: Vector, node: Node) -> Vector | None:
    """Numbers of a whole answer, or None where they are not."""
    return numbers if len(numbers) == node.size() and np.isfinite(numbers).all() else None


def one_answer(
    fn: Callable[..., Any], pool: Pool, rows: npt.NDArray[np.intp], drop: frozenset[str]
) -> tuple[Node, Vector]:
    """The function's answer on some rows."""
    try:
        return describe(fn(*pool.take(rows)), len(rows), drop)
    except (KeyboardInterrupt, LeakcapError):
        raise
    except BaseException as error:  # some compiled libraries panic with one
        # The text of a foreign exception may quote the data, so only its type and its place leave.
        kind, line = type(error).__name__, line_of(fn, error)
    raise FunctionFailed(kind, line)


def line_of(fn: Callable[..., Any], error: BaseException) -> int | None:
    """The last line of the function's own file that was being run."""
    code = getattr(inspect.unwrap(getattr(fn, "func", fn)), "__code__", None)
    file = None if code is None else code.co_filename
    lines = [frame.tb_lineno for frame in _frames(error.__traceback__) if frame.tb_frame.f_code.co_filename == file]
    return lines[-1] if lines else None


def _frames(frame: TracebackType | None) -> Iterator[TracebackType]:
    while frame is not None:
        yield frame
        frame = frame.tb_next


def refuse(places: list[Difference], works: Callable[[frozenset[str]], bool] | None = None) -> None:
    """Raise if anything in the answer cannot be released, naming every such place, and the way out if there is one.

    `works` says whether the answer is of use without some attributes.
    """
    if not places:
        return
    lines = [f"  {path or 'the answer'} {reason}" for path, reason in dict(places).items()]
    attributes = sorted(
        {path.rsplit(".", 1)[-1].split("[")[0] for path, reason in places if "." in path and PARAMETER not in reason}
    )
    way_out = ""
    if attributes and works is not None:
        way_out = (
            f"\nIt works without them: leave them out of the release with drop={attributes!r}."
            if works(frozenset(attributes))
            else "\nIt does not work without them, so that they cannot be left out."
        )
    raise OutputError("parts of the answer cannot be released:\n" + "\n".join(lines) + way_out)
