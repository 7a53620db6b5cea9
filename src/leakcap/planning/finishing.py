"""From noised sums to the answer. What is made of them looks at released numbers alone, so nothing more is spent."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leakcap.errors import OutputError
from leakcap.ground.arrays import Floats
from leakcap.kernels.contributions import Finish, Informed
from leakcap.noise import Noise
from leakcap.planning.accuracy import LEVELS, round_up
from leakcap.simulate import Forecast, Node, Outputs, describe, rebuild
from leakcap.simulate.worker import refuse

__all__ = ["Finishing", "Widths", "finished", "widths_of"]

Widths = tuple[tuple[float, Floats], ...]  # half of an interval's width, for each of some levels
SIMULATED = 512  # noised sums whose answers tell how far off an answer may be


@dataclass(frozen=True, eq=False)
class Finishing:
    """Makes answers of sums: `make` is the user's, or that of a statistic; all answers have the form of `node`."""

    make: Callable[[Floats], Any]
    node: Node
    sums: Floats  # (k, d): without noise, as the secret may have them

    def knowing(self, noise: Noise) -> Finishing:
        """The same, where what makes answers wants to know how large the noise is."""
        if not isinstance(self.make, Informed):
            return self
        return replace(self, make=self.make.knowing(noise.output_deviations))

    def numbers(self, sums: Floats) -> Floats:
        """The answer's numbers, flattened."""
        if isinstance(self.make, Finish):  # a table need not be made to see its numbers
            numbers, other = np.asarray(self.make.numbers(sums), dtype=np.float64).ravel(), False
        else:
            node, numbers = describe(self.make(sums), 0)
            other = any(self.node.differences(node))
        if other or not np.isfinite(numbers).all():
            raise OutputError("what is made of the sums has another form, or is not finite, for other sums")
        return numbers

    def released(self, sums: Floats) -> tuple[Any, Node, Floats]:
        """The answer, its form and its numbers: all of it from released sums, the form too."""
        node, numbers = describe(self.make(sums), 0)
        return rebuild(node, numbers), node, numbers

    def deviations(self, noise: Noise, answers: Floats) -> Floats:
        """Of each output, due to noise: of the same sums, with and without."""
        noised = self.noised(noise)
        return np.asarray(np.sqrt(((noised - np.resize(answers, noised.shape)) ** 2).mean(axis=0)))

    def noised(self, noise: Noise, around: Floats | None = None, seed: int = 0) -> Floats:
        """Answers with noise, for sums as the secret may have them or around given ones."""
        base = self.sums if around is None else around[None]
        drawn = np.random.default_rng(seed).standard_normal((SIMULATED, noise.space.rank))
        sums = np.resize(base, (SIMULATED, base.shape[1])) + noise.space.lift(drawn * noise.deviations)
        return np.stack([self.numbers(one) for one in sums])


def finished(
    make: Callable[[Floats], Any], sums: Floats, rows: int, whole: Floats | None = None
) -> tuple[Finishing, Outputs]:
    """What makes answers of sums, and the answers of these sums: as the secret may have them, and on the whole pool."""
    node, numbers = describe(make(sums[0] if whole is None else whole), rows)
    refuse(list(node.refusals()))
    made = Finishing(make, node, sums)
    return made, Outputs(
        np.stack([made.numbers(one) for one in sums]), node, numbers, Forecast(1, 1, 0.0, numbers.nbytes)
    )


def widths_of(offsets: Floats) -> Widths:
    """Of intervals that hold with each level's probability, as far as these offsets tell."""
    ordered = np.sort(np.abs(offsets), axis=0)
    place = [min(len(ordered), math.ceil((len(ordered) + 1) * level)) - 1 for level in LEVELS]
    return tuple((level, round_up(ordered[at])) for level, at in zip(LEVELS, place, strict=True))
