"""A module's weights from answers alone: where rows lie, then steps along noised gradients.

A step is as long as its own noise says: all steps together leave the same noise in the weights, however many rows and
steps there are. Classes bear steps of any length. Numbers do not: there a step is no longer than the noised number of
rows allows, and a mean over past gradients makes up for it. In the end the average of the last steps is taken.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from leakcap.ground.arrays import Floats
from leakcap.kernels.bounded import unit_sums
from leakcap.sessions.brought import Brought, Length
from leakcap.sessions.fitting import Fitting
from leakcap.sessions.networks.gradients import RowGradients, Weights
from leakcap.sessions.networks.sums import GradientSums
from leakcap.sessions.networks.targets import TargetRows
from leakcap.sessions.scaling import Scale, asked_middle
from leakcap.sessions.seats import Seats
from leakcap.simulate.silence import garbage_gone

__all__ = ["Inputs", "Steps", "asked_count", "asked_inputs", "trained_weights"]

MIDDLE_SHARE, COUNT_SHARE = 0.03, 0.01
AVERAGED = 0.25  # of the steps, the last ones
MOMENTUM = 0.9  # for numbers: what past gradients weigh
TURN = 20.0  # for numbers: the longest step, for a mean gradient


@dataclass(frozen=True, eq=False)
class Inputs:
    """What a module is given for features: as they are, or about 0 and of size 1. Public side."""

    scale: Scale | None
    centre: Floats | float
    size: float
    count: float  # of rows
    asked: float  # part of the share that it took

    @property
    def public(self) -> bool:
        return self.scale is None or self.scale.public

    def of(self, features: Floats) -> Floats:
        """Each row from its own features alone."""
        if self.scale is None:
            return np.asarray(features, dtype=np.float64)
        return np.asarray((self.scale.rows(features) - self.centre) * self.size)


@dataclass(frozen=True)
class Steps:
    """How many, how long, and how long a row's gradient is at most."""

    number: int
    rate: float
    clip: float
    of_numbers: bool  # whether the target is a number

    def lengths(self, deviation: float, count: float) -> tuple[float, float]:
        """Of a step along the mean over gradients, and what past ones weigh in it."""
        by_noise = self.rate / math.sqrt(self.number) / deviation
        return (min(by_noise, TURN * self.clip / count), MOMENTUM) if self.of_numbers else (by_noise, 0.0)


def asked_inputs(fitting: Fitting, rows: TargetRows) -> Inputs:
    """From the number of rows, their mean and how wide they lie, which are asked for."""
    scale, share = Scale.of(fitting), fitting.share * MIDDLE_SHARE
    public = scale.public and rows.public
    found = asked_middle(fitting, scale.rows(rows.features), rows.units, share=share, public=public)
    size = math.sqrt(len(scale.size) / found.square)
    return Inputs(scale, found.centre, size, count=found.count, asked=MIDDLE_SHARE)


def asked_count(fitting: Fitting, rows: TargetRows) -> Inputs:
    """Features as they are: only their number is asked for."""
    each = unit_sums(np.ones((len(rows.features), 1)), rows.units.of_row, rows.units.count)
    brought = Brought(each, Length(float(fitting.most_rows), 1), np.asarray, scale=None, declared=rows.public)
    found = fitting.ask(brought, fitting.share * COUNT_SHARE, step="count")
    count = max(float(found.value[0]), 2 * float(found.deviations[0]))
    return Inputs(None, 0.0, 1.0, count=count, asked=COUNT_SHARE)


def trained_weights(
    fitting: Fitting, rows: TargetRows, inputs: Inputs, *, slopes: RowGradients, steps: Steps
) -> Weights:
    """Weights after all steps. Of rows and coins they hold what answers say, and nothing else."""
    public, share = rows.public and inputs.public, fitting.share * (1 - inputs.asked) / steps.number
    made = inputs.of(rows.features).astype(slopes.kind)
    seats = Seats.of(made, rows.targets, sum(map(sum, slopes.shapes)))
    weights: Weights = slopes.start
    mean, last = np.zeros(()), list[Weights]()
    with garbage_gone():  # of the module's: it may speak of rows
        for step in range(steps.number):
            asked = GradientSums(
                seats,
                slopes.at(weights),
                slopes.shapes,
                units=rows.units,
                clip=steps.clip,
                most_rows=fitting.most_rows,
                finish=np.asarray,
                public=public,
            )
            noised = fitting.ask(asked, share, step=step)
            length, past = steps.lengths(float(noised.deviations[0]), inputs.count)
            mean = past * mean + (1 - past) * noised.value
            weights = slopes.moved(weights, -length * mean)
            last = [*last, weights][-max(1, int(AVERAGED * steps.number)) :]
    return {name: sum(one[name] for one in last) / len(last) for name in weights}
