"""What other promises would cost at the same success: a table and a picture; custodian side."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from leakcap.certificates.display import Displayed
from leakcap.certificates.text import percent
from leakcap.errors import InputError, LeakcapError
from leakcap.ground.arrays import Floats

__all__ = ["CLOSE", "Alternatives", "Comparison", "Promise", "in_order", "share", "size_of"]

CLOSE = 1.1  # within this factor the stronger promise goes first
WIDTH = 100
MAX_OUTPUTS = 20  # that are listed


@dataclass(frozen=True, eq=False)
class Promise:
    """One promise at the stated success: what it hides, and how far its answers are from that of the whole pool.

    Attributes:
        name: "worlds", "bits", "pool", "Laplace", "Gaussian" or "zCDP".
        hides: what the attacker cannot tell, and what else they may know.
        how: what it was made with.
        strength: the larger, the more it promises.
        before_noise: error of each output without any noise: of using a part of the pool, and of cut values.
        noise: deviation of each output that is due to noise.
        error: root-mean-square error of each output.
        total: of all outputs together, relative to the size of the answer.
        seconds: of CPU time that it took to find the noise; of the plan's own promise, that the plan took.
        deviations: standard deviations of the noise where it is added: to sums, or along the directions of outputs.
    """

    name: str
    hides: str
    how: str
    strength: int
    before_noise: Floats
    noise: Floats
    error: Floats
    total: float
    seconds: float
    deviations: Floats


@dataclass(frozen=True, eq=False)
class Comparison(Displayed):
    """Promises at one success, the least total error first; within 10 % of each other, the stronger one.

    Attributes:
        success: of the best guess about one person, at most; the same for all.
        own: name of the plan's own promise; "" where it is none of these.
        promises: those that can be kept, in order.
        left_out: name, and why it has no figures.
        names: of the outputs.
        answer: on the whole pool.
        answers: simulated, where figures have no closed form.
        scale: how much an error of each output counts.
    """

    success: float
    own: str
    promises: tuple[Promise, ...]
    left_out: tuple[tuple[str, str], ...]
    names: tuple[str, ...]
    answer: Floats
    answers: int
    scale: Floats
    _custodian_only: ClassVar[bool] = True

    @property
    def best(self) -> Promise:
        """The first one."""
        return self.promises[0]

    def __getitem__(self, name: str) -> Promise:
        """The promise of this name.

        Args:
            name: "worlds", "bits", "pool", "Laplace", "Gaussian" or "zCDP".

        Returns:
            Its figures.

        Raises:
            InputError: there is none; the reason is in the text.
        """
        for one in self.promises:
            if one.name == name:
                return one
        why = dict(self.left_out).get(name, "there is no such promise")
        raise InputError(f"no figures for {name!r}: {why}")

    def __iter__(self) -> Iterator[Promise]:
        return iter(self.promises)

    def __len__(self) -> int:
        return len(self.promises)

    @property
    def sentence(self) -> str:
        """What follows, in plain words."""
        best = self.best
        told = f"First choice at this success: {best.name} ({best.how}), with a total error of {share(best.total)}"
        own = next((one for one in self.promises if one.name == self.own), None)
        if own is None or own is best:
            return f"{told}." if own is None else f"{told}: what this plan promises."
        return f"{told}, against {share(own.total)} of what this plan promises ({own.name})."

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def __repr__(self) -> str:
        return f"Comparison(CUSTODIAN ONLY, {len(self.promises)} promises, first: {self.best.name})"

    def __reduce__(self) -> Any:
        raise LeakcapError("a comparison is custodian-side and is not pickled; keep str(comparison) if you need it")

    def _lines(self) -> Iterator[str]:
        yield f"CUSTODIAN ONLY: promises at a success of {percent(self.success)} at most. Nothing was released."
        yield f"{'promise':<10}{'total error':>12}{'before noise':>14}{'noise':>10}{'time':>10}  made with"
        for one in self.promises:
            sign = " *" if one.name == self.own else ""
            before, noise = self.relative(one.before_noise), self.relative(one.noise)
            yield (
                f"{one.name + sign:<10}{share(one.total):>12}{share(before):>14}{share(noise):>10}"
                f"{one.seconds:>8.2g} s  {one.how}"
            )
        yield ""
        for hides in dict.fromkeys(one.hides for one in self.promises):
            who = ", ".join(one.name for one in self.promises if one.hides == hides)
            yield from textwrap.wrap(f"{who}: hides {hides}.", WIDTH, subsequent_indent="  ")
        for line in self.not_compared:
            yield from textwrap.wrap(line, WIDTH, subsequent_indent="  ")
        yield from self._outputs()
        yield ""
        yield from textwrap.wrap(self.sentence, WIDTH)
        yield from textwrap.wrap(self.reading, WIDTH)

    @property
    def reading(self) -> str:
        """How to read the figures."""
        return (
            ("* what this plan promises. " if self.own else "")
            + "Errors are against the answer on the whole pool: root mean squares over all outputs, as a share of the "
            "size of that answer, outputs weighed as a plan's noise weighs them. Promises within 10 % of each other: "
            f"the stronger one first. Simulated figures are those of {self.answers:,} answers. Time: CPU s; of what "
            "the plan promises as worlds, how long the plan took."
        )

    @property
    def not_compared(self) -> tuple[str, ...]:
        """Which promises have no figures, and why, in words."""
        reasons = dict.fromkeys(why for _, why in self.left_out)
        return tuple(
            f"Not compared: {', '.join(name for name, own in self.left_out if own == why)}: {why}." for why in reasons
        )

    def relative(self, errors: Floats) -> float:
        """Errors of all outputs as one number, the way `total` is made.

        Args:
            errors: one for each output.

        Returns:
            Their root mean square, weighed, over that of the answer.
        """
        return size_of(errors, self.answer, self.scale)

    def _outputs(self) -> Iterator[str]:
        if len(self.answer) < 2:
            return
        yield ""
        names = [name[:31] for name in self.names[:MAX_OUTPUTS]]
        yield f"{'error of output':<32}{'whole pool':>12}" + "".join(f"{one.name:>10}" for one in self.promises)
        for i, name in enumerate(names):
            row = "".join(f"{one.error[i]:>10.3g}" for one in self.promises)
            yield f"{name:<32}{self.answer[i]:>12.5g}{row}"
        if len(self.answer) > len(names):
            yield f"... and {len(self.answer) - len(names):,} more outputs"


class Alternatives(Protocol):
    """Knows a plan's function and data, and so what other promises would cost; custodian side."""

    def compare(
        self, plan: Any, *, bounds: Any, rows_per_unit: int | None, worlds: int, answers: int, seed: int
    ) -> Comparison: ...

    def hints(self, plan: Any, answer: Floats, errors: tuple[Floats, Floats]) -> tuple[str, ...]: ...


def size_of(errors: Floats, answer: Floats, scale: Floats) -> float:
    """Root mean square of weighed errors over that of the weighed answer; as it is where the answer is 0."""
    return float(np.linalg.norm(errors * scale)) / (float(np.linalg.norm(answer * scale)) or 1.0)


def in_order(promises: Sequence[Promise]) -> tuple[Promise, ...]:
    """The least total error first; of those within 10 % of the least that is left, the strongest."""
    left, found = sorted(promises, key=lambda one: one.total), []
    while left:
        close = [one for one in left if one.total <= CLOSE * left[0].total]
        chosen = max(close, key=lambda one: one.strength)  # of equally strong ones, the first: the least error
        found.append(chosen)
        left.remove(chosen)
    return tuple(found)


def share(value: float) -> str:
    """A relative error in per cent."""
    if value < 1e-9:
        return "0"  # rounding
    return f"{100 * value:.3g} %" if value < 100 else f"{value:.2g} x"
