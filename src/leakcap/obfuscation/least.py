"""The least noise at which nobody of the pool is exposed by more than a cap, certified on draws of its own.

The search looks at estimates; what it finds is certified once, on fresh draws. If that fails, there is more noise, and
another share of the failure probability is spent (proof page: obfuscation-confidence).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from leakcap.errors import CapError, InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats, Ints
from leakcap.ground.proofs import proves
from leakcap.leakage.confidence import Attempts, MeanEstimate, forecast, log_term
from leakcap.obfuscation.obfuscated import Obfuscated
from leakcap.obfuscation.one_unit import Statements, UnitBounds, UnitEffort, certify_units

__all__ = ["NoiseForCap", "least_noise", "likely_noise"]

LOOK = 6  # draws of a search
FEW = 256  # units that it looks at
WITHIN = 0.01  # relative
TRIES = 8  # certifications
UNION = 10**5  # statements, about: it only aims the search
LARGEST, SMALLEST = 1e3, 1e-6  # deviations, beside rows of length 1


@dataclass(frozen=True, eq=False)
class NoiseForCap:
    """Noise that keeps a cap, and what was certified with it.

    Attributes:
        obfuscated: the release with that noise.
        bounds: for every unit; `bounds.worst` is at most the cap.
        attempts: certifications that were made; together they fail with probability `gamma` at most.
    """

    obfuscated: Obfuscated
    bounds: UnitBounds
    attempts: int
    gamma: float


@proves("obfuscation-confidence")
def least_noise(
    obfuscated: Obfuscated,
    cap: float,
    *,
    effort: UnitEffort,
    attempts: Attempts,
    rng: np.random.Generator,
    nats: bool = False,
    tick: Callable[[int, int], None] | None = None,
) -> NoiseForCap:
    """Noise with which every unit's balanced success is certified to be at most `cap`, hardly more than needed.

    Guarantee: as that of `certify_units`, with the probability of `attempts` for all certifications together.

    Args:
        obfuscated: what is released; its noise is where the search begins.
        cap: balanced success that nobody may exceed, above 1/2.
        effort: draws of one certification.
        attempts: shares of the failure probability, spent here.
        rng: where all draws come from; independent of the release's own randomness.
        nats: also bound information.
        tick: called with draws made and draws at most, in every certification.

    Raises:
        CapError: no noise is enough for so few draws, or certification failed too often.
    """
    checks.fraction(cap=cap)
    if cap <= 0.5:
        raise InputError("cap must be above 0.5: nobody is exposed less than by a coin")
    share = attempts.share(attempts.made + 1)
    noise = likely_noise(obfuscated, cap, effort=effort, gamma=share, rng=rng)
    spent = 0.0
    for made in range(1, TRIES + 1):
        found = obfuscated.with_noise(noise)
        gamma = attempts.next()
        spent += gamma
        bounds = certify_units(found, effort=effort, gamma=gamma, rng=rng, cap=cap, nats=nats, tick=tick)
        if bounds.worst <= cap:
            return NoiseForCap(found, replace(bounds, gamma=spent), made, spent)
        noise *= float(np.clip(1.25 * (bounds.worst - 0.5) / (cap - 0.5) - 0.25, 1.02, 1.5))
    raise CapError("the cap could not be certified: allow more draws, or a larger cap")


def likely_noise(
    obfuscated: Obfuscated, cap: float, *, effort: UnitEffort, gamma: float, rng: np.random.Generator
) -> float:
    """Noise that will likely be certified: by some units, then by those who are most exposed. An estimate."""
    units = len(obfuscated.pool)
    some = np.linspace(0, units - 1, min(FEW, units)).astype(np.intp)
    rough = _bisected(obfuscated, cap, some, effort=effort, gamma=gamma, rng=rng, within=0.1)
    statements = Statements(obfuscated.with_noise(rough))
    exposed = sum(statements.of_draw(rng, swaps=effort.swaps)[0] for _ in range(LOOK))
    worst = np.sort(np.argsort(-np.asarray(exposed), kind="stable")[:FEW]).astype(np.intp)
    near = obfuscated.with_noise(rough)
    return _bisected(near, cap, worst, effort=effort, gamma=gamma, rng=rng, within=WITHIN)


def _bisected(
    obfuscated: Obfuscated,
    cap: float,
    units: Ints,
    *,
    effort: UnitEffort,
    gamma: float,
    rng: np.random.Generator,
    within: float,
) -> float:
    """The least deviation that these units' forecasts allow, on the same draws for every deviation."""
    seed = int(rng.integers(2**63))

    def kept(log_noise: float) -> bool:
        statements = Statements(obfuscated.with_noise(math.exp(log_noise)))
        same = np.random.default_rng(seed)
        most = statements.most[0][units]
        told = np.array([statements.of_draw(same, swaps=4 * effort.swaps, units=units)[0] for _ in range(LOOK)])
        return 0.5 + 0.5 * _forecast(told, most, effort, gamma) <= cap

    low = high = math.log(obfuscated.noise_std)
    step = max(within, 0.1)
    while not kept(high):
        low, high, step = high, high + step, 2 * step
        if high > math.log(LARGEST):
            raise CapError("this cap is too close to a coin flip for so few draws: allow more draws, or a larger cap")
    step = max(within, 0.1)
    while low == high or (low > math.log(SMALLEST) and kept(low)):
        high = low
        low, step = low - step, 2 * step
    while high - low > within:
        middle = (low + high) / 2
        low, high = (low, middle) if kept(middle) else (middle, high)
    return math.exp(high)


def _forecast(told: Floats, most: Floats, effort: UnitEffort, gamma: float) -> float:
    """What the largest bound of these units will likely be; units that differ by chance alone count as alike."""
    draws = len(told)
    mean, variance = told.mean(axis=0), told.var(axis=0, ddof=1)
    variance = (variance + variance.mean()) / 2
    chance = variance / draws
    apart = max(float(mean.var() - chance.mean()), 0.0)
    share = apart / np.maximum(apart + chance, np.finfo(float).tiny)
    estimate = mean.mean() + share * (mean - mean.mean())
    counted = np.full(len(mean), float(max(effort.draws, effort.again)))
    seen = MeanEstimate(estimate, variance, counted, span=np.maximum(most - estimate, 0.01), rounding=0.0)
    term = log_term(gamma / (2 if effort.again else 1), UNION)
    return float(forecast(seen, max(effort.draws, effort.again), term, sigmas=1.5).max())
