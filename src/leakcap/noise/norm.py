"""Noise of density proportional to `exp(-|x|/s)` in any norm `l_p`, with a weight for each coordinate.

In every such norm a first moment bounds what a release tells about anybody's membership (docs/proofs/first-moment.md).
The length of the noise has the law Gamma(d, s), its direction the cone measure of the norm. It is drawn as independent
numbers of density `exp(-|g|^p)` times one random scale that knows nothing of them, which takes no division:

    p = 1         the numbers themselves (Laplace);
    p = 2         twice the root of a Gamma((d+1)/2) number;
    p whole       p (G_1 ... G_{p-1})^(1/p), with G_k of the law Gamma((d+k)/p), by Gauss's product of Gamma functions;
    p infinite    numbers uniform on (-1, 1), and a scale of the law Gamma(d+1).

Sums over people are released with the Euclidean norm (`leakcap.noise.exponential`), of which more is known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import erf, erfc, gammainccinv, gammaincinv, gammaln, ndtr

from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats
from leakcap.ground.proofs import proves
from leakcap.noise.entropy import GRID, Randomness
from leakcap.noise.exponential import Exponential

__all__ = ["MAX_ORDER", "NormNoise"]

MAX_ORDER = 10  # beyond, small numbers lose their digits
MAX_DIMENSION = 10**5  # for the orders from 3 on: beyond, the quantile of the Gamma law loses digits
_REACH = 8.3  # deviations: normal numbers go beyond with probability below 2^-52, those of a higher order less often
_ERROR = 2.0**-41  # relative, of a number that is made of a normal one, and of a Gamma number to the power 1/p


@dataclass(frozen=True, eq=False)
class NormNoise:
    """Noise of density proportional to `exp(-|x|/scale)`, where `|x| = |x / weights|_p`; custodian side.

    Args:
        weights: `(d,)`, above 0: the unit in which each coordinate counts.
        order: `p`, a whole number up to 10 or infinity.
        scale: `s`, above 0.
    """

    weights: Floats
    order: float
    scale: float

    def __post_init__(self) -> None:
        weights = np.array(self.weights, dtype=np.float64, ndmin=1)
        object.__setattr__(self, "weights", weights)
        if weights.ndim != 1 or not len(weights) or not np.isfinite(weights).all() or (weights <= 0).any():
            raise InputError("weights must be positive and finite, one for each coordinate")
        if not math.isinf(self.order) and not 1 <= checks.count(order=self.order) <= MAX_ORDER:
            raise InputError(f"order must be a whole number from 1 to {MAX_ORDER}, or infinity (math.inf)")
        if 2 < self.order <= MAX_ORDER and len(weights) > MAX_DIMENSION:
            raise InputError(f"orders above 2 are drawn for up to {MAX_DIMENSION:,} coordinates: use 1, 2 or infinity")
        checks.positive(scale=self.scale)

    @property
    def dimension(self) -> int:
        return len(self.weights)

    def length(self, steps: Floats) -> Floats:
        """The norm of each step, `(..., d)` to `(...)`."""
        return np.asarray(np.linalg.norm(steps / self.weights, ord=self.order, axis=-1))

    @proves("first-moment")
    def success(self, lengths: Floats) -> Floats:
        """Of the best guess between two answers that are equally likely, by their distance in this norm; at most.

        Guarantee: no likelihood ratio of the two is above `exp(length / scale)`, so that no guess is right more often
        than `1/2 + 1/2 tanh(length / (2 scale))`; in the Euclidean norm and in one coordinate, sharper.
        """
        relative = np.asarray(lengths) / self.scale
        if self.order == 2 or self.dimension == 1:
            law = Exponential(self.dimension)
            return law.success(relative * law.scale * (1 + 1e-12))
        return np.minimum(1.0, 0.5 + 0.5 * np.tanh(relative / 2) * (1 + 1e-12))

    @cached_property
    def deviations(self) -> Floats:
        """Standard deviation of the noise in each coordinate."""
        d, p = self.dimension, self.order
        if d == 1:
            square = 2.0
        elif math.isinf(p):
            square = (d + 1) * (d + 2) / 3
        else:  # E r^2 = d (d + 1), and |u_1|^p of a direction has the law Beta(1/p, (d-1)/p)
            logs = gammaln(3 / p) + gammaln(d / p) - gammaln(1 / p) - gammaln((d + 2) / p)
            square = d * (d + 1) * math.exp(float(logs))
        return np.asarray(self.scale * math.sqrt(square) * self.weights)

    @proves("first-moment")
    def draw(self, randomness: Randomness) -> Floats:
        """One noise vector, `(d,)`."""
        d, p = self.dimension, 1.0 if self.dimension == 1 else self.order
        if p == 1:
            normal, first, second = randomness.normals(3 * d).reshape(d, 3).T
            return np.asarray(self.scale * self.weights * (normal * np.hypot(first, second)))  # Laplace
        if p == 2:
            return np.asarray(self.scale * self.weights * Exponential(d).draw(d, randomness) * math.sqrt(d + 1))
        if math.isinf(p):
            squares = randomness.normals(2 * (d + 1)) ** 2
            size = math.fsum(squares.tolist()) / 2  # Gamma(d + 1)
            return np.asarray(self.scale * size * self.weights * erf(randomness.normals(d) / math.sqrt(2)))
        whole = int(p)
        gammas = _gamma(randomness.normals(whole - 1), (d + np.arange(1, whole)) / whole)
        size = whole * math.exp(math.fsum(np.log(gammas).tolist()) / whole)
        return np.asarray(self.scale * size * self.weights * _generalised_normal(randomness.normals(d), whole))

    def released(self, value: Floats, randomness: Randomness) -> Floats:
        """A noised vector on a grid of `GRID` noise deviations, which depends on nothing but its grid point."""
        point = np.rint((value / self.deviations + self.draw(randomness) / self.deviations) / GRID)
        # Of -0.0 the sign would tell on which side of the grid point the value was.
        return np.asarray((point + 0.0) * GRID * self.deviations)

    @proves("first-moment")
    def sampler_distance(self, reach: float) -> float:
        """Total variation, at most, between a released grid point and its ideal law; to be added to every success.

        Guarantee: for all values whose coordinates are at most `reach` noise deviations long.
        """
        d = self.dimension
        if d == 1 or self.order == 1:
            return d * Exponential(1).sampler_distance(1, reach)
        if self.order == 2:
            return Exponential(d).sampler_distance(d, reach)
        error = _ERROR * _REACH + 2.0**-52 * (reach + _REACH)
        edges = 2 * (_REACH + 1) / GRID
        coordinates = 4 * d * (2 * error * (1 / GRID + 1) + edges * 2.0**-63 + 2.0**-52)
        if math.isinf(self.order):
            return coordinates + d * (2.0**-45 + (d + 1) * 2.0**-55)
        return coordinates + math.sqrt(d * self.order) * 2.0**-38


def _generalised_normal(normals: Floats, order: int) -> Floats:
    """Numbers of density proportional to `exp(-|g|^p)`, each a growing function of a normal one."""
    size = np.abs(normals) / math.sqrt(2)
    near = gammaincinv(1 / order, erf(np.minimum(size, 1.0)))
    far = gammainccinv(1 / order, erfc(np.maximum(size, 0.25)))
    return np.asarray(np.copysign(np.where(size < 0.5, near, far) ** (1 / order), normals))


def _gamma(normals: Floats, shapes: Floats) -> Floats:
    """Gamma numbers, each a growing function of a normal one."""
    below = gammaincinv(shapes, ndtr(np.minimum(normals, 1.0)))
    above = gammainccinv(shapes, ndtr(-np.maximum(normals, -1.0)))
    return np.asarray(np.where(normals < 0, below, above))
