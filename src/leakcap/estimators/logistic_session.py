"""Logistic regression in a session: few full gradient steps, each a noised sum of clipped gradients over people.

Before the steps, three per cent of what the fit may spend buy the mean of the rows and their number, five per cent of
the rest their second moments, where these stand out of their own noise: directions in which rows spread much are drawn
in, so that one length of step suits all. What everything is made of are answers and public constants, which are the
same for all data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import softmax

from leakcap.ground.arrays import Floats, Ints
from leakcap.sessions.fitting import Fitting
from leakcap.sessions.products import Factor, OuterProducts, PairProducts
from leakcap.sessions.scaling import Middle, Scale, asked_middle
from leakcap.sessions.seats import Seats

__all__ = ["LinearScores", "trained"]

MEAN_SHARE = 0.03
MOMENTS_SHARE = 0.05  # of what is left then
CLIP = 0.5  # length of a gradient
NOISE = 0.5  # of the final scores of a row of length 1: fixes the length of a step, without knowing how many rows
EDGE = 0.25  # of the trace: the largest noise at which second moments are worth asking for
CONSTANT = 0.1  # value of the feature that carries the intercepts
TURN = 1.6  # the longest step times the curvature at the start
MIN_STEPS, MAX_STEPS = 10, 100
LARGEST = 1e150


@dataclass(frozen=True, eq=False)
class LinearScores:
    """Scores of the classes as a linear function of features: `features @ weights + level`. Public side."""

    weights: Floats  # (d, classes)
    level: Floats  # (classes,)


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows of length at most 1, and whose they are; custodian side."""

    fitting: Fitting
    rows: Floats
    codes: Ints
    classes: int
    most_rows: int
    public: bool

    @property
    def participants(self) -> float:
        """Of everybody, how many take part."""
        return 1.0 if self.fitting.everybody else 0.5


def trained(fitting: Fitting, scale: Scale, codes: Ints, *, classes: int, public: bool) -> LinearScores:
    """Weights from answers alone; rows whose code is -1 are of no class, and bring nothing to gradients."""
    rows = scale.rows(fitting.features)
    own = _Rows(fitting, rows, codes, classes=classes, most_rows=fitting.most_rows, public=scale.public and public)
    first = asked_middle(fitting, rows, fitting.units, share=fitting.share * MEAN_SHARE, public=own.public)
    left = fitting.share * (1 - MEAN_SHARE)
    map_, radius, largest, left = _levelled(own, first, left)
    moved = Seats.of_rows(rows - first.centre).each(lambda block: block @ map_)
    z = np.hstack(
        [moved / np.maximum(np.linalg.norm(moved, axis=1, keepdims=True), radius), np.full((len(rows), 1), CONSTANT)]
    )
    weights = _descended(own, z, first.count, left=left, largest=largest)
    through = map_ @ weights[:-1] / radius
    level = CONSTANT * weights[-1] - first.centre @ through
    by_feature = through / scale.size[:, None]
    return LinearScores(by_feature, level - scale.middle @ by_feature)


def _levelled(own: _Rows, first: Middle, left: float) -> tuple[Floats, float, float, float]:
    """A map that draws in directions in which rows spread much, the radius of what it leaves, the largest eigenvalue of
    that, and the share that is left."""
    d, count, square = own.rows.shape[1], first.count, first.square
    clock = own.fitting.square
    factor = 1.0 if own.fitting.everybody else 2.0
    share = MOMENTS_SHARE * left
    # Rows are cut to the length that most of them have, which is known by now.
    reach = math.sqrt(square)
    planned = factor * square * own.most_rows / math.sqrt(share * clock)
    edge = planned * math.sqrt(2 * d) / count  # the largest eigenvalue of the noise alone (Wigner)
    if edge >= EDGE * square:
        return np.eye(d), reach, EDGE, left
    moved = Factor.of(own.rows - first.centre, reach)
    noised = own.fitting.ask(
        PairProducts(moved, moved, own.fitting.units, most=square * own.most_rows, finish=_pairs, public=own.public),
        share,
        step="moments",
    )
    matrix, deviation = noised.value / count, float(noised.deviations[0])
    values, vectors = np.linalg.eigh(matrix)
    # The trace is known twice: from the first answer, and as the sum of squares, with independent noise.
    doubts = np.array([(2 * first.deviation / count) ** 2, d * (deviation / count) ** 2])
    trace = float(np.average([square, np.trace(matrix)], weights=1 / doubts))
    map_ = (vectors * np.sqrt(edge / np.maximum(values, edge))) @ vectors.T
    radius = math.sqrt(max(trace - float(np.maximum(values - edge, 0.0).sum()), edge))
    return map_, radius, min(edge / radius**2, 1.0), left - share


def _descended(own: _Rows, z: Floats, count: float, *, left: float, largest: float) -> Floats:
    """Gradient steps from 0. A step is the answer in units of its own noise, so that it holds no number of rows."""
    square = left * own.fitting.square
    length = NOISE * count * own.participants * math.sqrt(square) / CLIP  # of all steps together, for a mean gradient
    steps = min(max(MIN_STEPS, math.ceil(length * largest / (TURN * own.classes))), MAX_STEPS)
    size = float(np.sqrt(1 + CONSTANT**2))
    second, targets = Factor.of(z / size), np.eye(own.classes)[own.codes]
    known = (own.codes >= 0)[:, None]
    seats, weights = Seats.of_rows(z), np.zeros((z.shape[1], own.classes))
    for step in range(steps):
        errors = (seats.each(partial(_chances, weights)) - targets) * known
        # Cut to the length at which the product with the row is CLIP.
        most = CLIP / size / np.maximum(second.length, CLIP / size / math.sqrt(2))
        first = Factor.of(errors / np.maximum(1.0, np.linalg.norm(errors, axis=1) / most)[:, None], math.sqrt(2))
        asked = OuterProducts(
            second,
            first,
            own.fitting.units,
            most=CLIP / size * own.most_rows,
            finish=np.asarray,
            public=own.public,
        )
        noised = own.fitting.ask(asked, left / steps, step=step)
        gradient = noised.value.reshape(weights.shape) / noised.deviations[0]
        weights -= NOISE / math.sqrt(steps) * gradient
    return weights


def _chances(weights: Floats, rows: Floats) -> Floats:
    return np.asarray(softmax(rows @ weights, axis=1))


def _pairs(total: Floats) -> Floats:
    """The symmetric matrix of which the upper half was released."""
    d = int((math.isqrt(8 * len(total) + 1) - 1) // 2)
    square = np.zeros((d, d))
    square[np.triu_indices(d)] = total
    return square + np.triu(square, 1).T
