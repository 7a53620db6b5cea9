"""Algorithm 1 of the paper, for one number: with sigma as printed, and with sigma from the pool.

It lives here and not in the package, because it is no guarantee: sigma is estimated from a few halves, not bounded, and
as printed it is made from the secret half itself, so that the size of the noise tells who is in it (`attacks`). A
bound on a moment goes into `leakcap.convert.scale_for_mip`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError
from reproductions.membership_inference_privacy.paper import mip_scale

__all__ = ["COUNTER_EXAMPLE", "Algorithm1", "half_of"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]
COUNTER_EXAMPLE = (
    "Algorithm 1 is for one number: for d of them its radius, Laplace, would have to be Gamma(d). A million "
    "numbers that are all +1 if a person is in, and all -1 if not, are told apart by the sign of their sum with 98.9 % "
    "where 90 % is claimed (eta .4), and with 93.1 % where 75 % is (eta .25): python -m "
    "reproductions.membership_inference_privacy attacks. Use leakcap.plan, or leakcap.convert.scale_for_mip with noise "
    "of density exp(-|x|/scale)"
)


def half_of(n: int, rng: np.random.Generator) -> Ints:
    """A random half of `n` rows, by their numbers."""
    return np.asarray(rng.permutation(n)[: n // 2])


@dataclass(frozen=True)
class Algorithm1:
    """MIP by noise addition: `fn` on a random half, and Laplace noise.

    Attributes:
        fn: from rows to one number.
        eta: what is claimed: success of at most 1/2 + eta.
        power: M, an even number.
        budget: B, halves that sigma is estimated from.
        printed: sigma from halves of the secret half, and powers without their absolute value, as in the paper;
            otherwise from halves of the pool, with absolute values.
    """

    fn: Callable[[Floats], float]
    eta: float
    power: int = 2
    budget: int = 128
    printed: bool = True

    def released(self, rows: Floats, rng: np.random.Generator) -> tuple[float, Ints]:
        """A released number, and who took part. For simulations, by a generator: leakcap releases nothing with it."""
        secret = half_of(len(rows), rng)
        answer = np.atleast_1d(self.fn(rows[secret]))
        if answer.shape != (1,):
            raise InputError(COUNTER_EXAMPLE)
        sigma = self._sigma(rows[secret] if self.printed else rows, rng)
        return float(answer[0] + rng.laplace(scale=mip_scale(self.eta, self.power) * sigma)), secret

    def _sigma(self, rows: Floats, rng: np.random.Generator) -> float:
        halves = [half_of(len(rows), rng) for _ in range(self.budget)]
        found = np.array([float(np.atleast_1d(self.fn(rows[half]))[0]) for half in halves])
        apart = found - found.mean()
        mean = float(((apart if self.printed else np.abs(apart)) ** self.power).mean())
        if mean < 0:
            raise InputError("an odd power without its absolute value has no root here: use an even one")
        return float(mean ** (1 / self.power))
