"""Is the noise the one that the certificate speaks of? Checks of the mechanism rather than attacks.

What was released, less the answer of the very world it is said to come from, must be the claimed noise: as large in
every direction, normal, without a trace of the world or of other releases, each number independent of the others.
Every test is exact in finite samples: under the claim, each score below is standard normal given what it is given.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy import special

from leakcap.audit.attacks.noise import Noises, magnitudes, row_scores
from leakcap.audit.statistics import laws
from leakcap.audit.trials import Known
from leakcap.audit.verdicts import CHECK, HOLDS, INCONCLUSIVE, REFUTED, SHOWN, Finding, checked
from leakcap.ground.arrays import Bools, Floats

__all__ = ["NAME", "QUESTIONS", "law", "of_grid", "trace", "worst"]

NAME = "law of the noise"
QUESTIONS = 7  # that `law` asks
SIZE_SLACK, DIRECTION_SLACK = 0.01, 0.05  # of the claimed size
LINK_SLACK = 0.05  # a correlation
SHAPE_SLACK = 0.01  # a difference between probabilities
CUT_SEEN = 3.5  # deviations at which cut noise has to be visible
BEYOND = (1.0, 2.0, 3.0, 4.0)  # deviations beyond which numbers are counted
LAGS = (1, 2, 3, 4)  # releases apart
FOLLOWED = 2048  # units, the most exposed first, whose membership the noise must not know


def law(known: Known, noise: Noises, alpha: float, coins: Bools | None = None) -> Iterator[Finding]:
    """Size, shape and tails of the noise; what it knows of the world, of itself and of other releases.

    `coins`, where every release has a world of its own: of some units, who took part in each.
    """
    share = alpha / QUESTIONS
    yield size_of(NAME, noise.numbers, share)
    yield _directions(noise, share)
    yield _trace(known, noise, share, coins)
    yield from shape_and_tails(NAME, noise.numbers, noise.mixed, share)
    yield _together(noise, share)
    yield _successive(noise, share)


def worst(*p_values: float) -> float:
    """One p-value for several questions: the smallest, times their number."""
    return min(1.0, len(p_values) * min(p_values))


def of_grid(attack: str, numbers: Floats, step: float, rng: np.random.Generator, *, alpha: float) -> Iterator[Finding]:
    """Whether noise on a grid, `(releases, d)` in units of the claimed one, is as large and as normal as claimed."""
    even = (numbers + rng.uniform(-step / 2, step / 2, numbers.shape)) / np.sqrt(1 + step**2 / 6)  # spread over cells
    mixed = even.sum(axis=1, keepdims=True) / np.sqrt(even.shape[1])
    yield size_of(attack, even, alpha)
    yield from shape_and_tails(attack, even, mixed, alpha)


def size_of(attack: str, numbers: Floats, alpha: float) -> Finding:
    """The sum of all squares is chi-square: both tails, exactly."""
    energy, count = float((numbers**2).sum()), numbers.size
    ends = np.sqrt(energy / special.chdtri(count, [SHOWN / 2, 1 - SHOWN / 2]))
    return checked(
        attack,
        "size of the noise, in units of the claimed one",
        measured=np.sqrt(energy / count),
        interval=(ends[0], ends[1]),
        claim=1.0,
        slack=SIZE_SLACK,
        p=laws.energies_p_value(energy, count),
        alpha=alpha,
        trials=len(numbers),
        reading="the noise is {} times as large as certified",
    )


def _directions(noise: Noises, alpha: float) -> Finding:
    """Along each direction the sum of squares is chi-square and the sum of numbers is normal, exactly."""
    along = np.hstack([noise.numbers, noise.mixed])
    k, energies = len(noise), (along**2).sum(axis=0)
    sizes = np.sqrt(energies / k)
    furthest, each = int(np.abs(sizes - 1).argmax()), SHOWN / len(sizes)
    ends = np.sqrt(energies[furthest] / special.chdtri(k, [each / 2, 1 - each / 2]))
    return checked(
        NAME,
        "size along the direction where it is most wrong",
        measured=sizes[furthest],
        interval=(ends[0], ends[1]),
        claim=1.0,
        slack=DIRECTION_SLACK,
        p=worst(laws.energies_p_value(energies, k), laws.scores_p_value(along.sum(axis=0) / math.sqrt(k))),
        alpha=alpha,
        trials=k,
        reading="{} times as large as certified, at worst, along any direction",
    )


def shape_and_tails(attack: str, numbers: Floats, mixed: Floats, alpha: float) -> Iterator[Finding]:
    """Whether numbers are standard normal: their distribution, and how far out they go.

    Distances by Massart's inequality, counts by the binomial law, the largest by the exact law of a maximum.
    """
    n, k = numbers.size, len(numbers)
    pooled = laws.distances(special.ndtr(numbers.reshape(-1, 1)))
    columns = laws.distances(special.ndtr(np.hstack([numbers, mixed])))
    distance = float(pooled[0])
    half = math.sqrt(math.log(2 / SHOWN) / (2 * n))
    yield checked(
        attack,
        "distance of the noise from the normal law",
        measured=distance,
        interval=(max(0.0, distance - half), distance + half),
        claim=0.0,
        slack=SHAPE_SLACK,
        p=worst(laws.distances_p_value(pooled, n), laws.distances_p_value(columns, k)),
        alpha=alpha,
        trials=k,
        reading="probabilities differ by {} at most, where 0 is expected",
    )
    yield _tails(attack, numbers, alpha)


def _tails(attack: str, numbers: Floats, alpha: float) -> Finding:
    size, n = np.abs(numbers), numbers.size
    far = float(size.max())
    counts = [
        laws.count_p_value((size > limit).sum(), n, float(special.erfc(limit / math.sqrt(2)))) for limit in BEYOND
    ]
    p = worst(laws.extremes_p_value(far, n), *counts)
    # The maximum alone refutes a cut at `visible` deviations, whatever is drawn.
    rarest = math.log(2 * (len(BEYOND) + 1) / alpha) / n
    visible = -float(special.ndtri(rarest / 2)) if rarest < 1 else 0.0
    verdict = REFUTED if p < alpha else HOLDS if visible >= CUT_SEEN else INCONCLUSIVE
    more = rarest / float(special.erfc(CUT_SEEN / math.sqrt(2)))
    return Finding(
        attack=attack,
        question="deviations that the noise reaches",
        measured=far,
        interval=(math.nan, math.nan),
        prior=math.nan,
        certified=None,
        p_value=p,
        verdict=verdict,
        trials=len(numbers),
        needed=math.ceil(len(numbers) * more) if verdict == INCONCLUSIVE else None,
        kind=CHECK,
        reading=f"the largest is {{}} deviations; noise cut at {visible:.1f} or less would have been seen",
        slack=CUT_SEEN,
    )


def _together(noise: Noises, alpha: float) -> Finding:
    """Given one number of each release, its products with another are normal; so for magnitudes, made normal first.

    A function of absolute values or of squares goes through the magnitudes: all three are the same ranks.
    """
    r, wide = noise.numbers.shape[1], np.hstack([noise.numbers, magnitudes(noise.numbers)])
    scores = (wide.T @ wide) / np.linalg.norm(wide, axis=0)[:, None]
    first, second = np.triu_indices(2 * r, 1)
    apart = second - first != r  # a number and its own magnitude are not independent
    return _link(
        "noise numbers, or their sizes, that go together",
        scores[first[apart], second[apart]],
        len(noise),
        alpha=alpha,
        reading="correlations up to {}, where 0 is expected",
    )


def _trace(known: Known, noise: Noises, alpha: float, coins: Bools | None) -> Finding:
    scores, p = trace(known, noise, coins)
    return _link(
        "trace of the world in the noise (should be 0)",
        scores,
        len(noise),
        alpha=alpha,
        reading="correlations up to {} with the world, where 0 is expected",
        p=p,
    )


def trace(known: Known, noise: Noises, coins: Bools | None = None) -> tuple[Floats, float]:
    """What noise, its sizes and its lengths know of answers, members and worlds: scores and a p-value.

    Given the worlds, sums over the releases of a world are normal, each with its count as the variance, and so are
    their combinations; the sum of their squares, each divided by its count, is chi-square.
    """
    wide = np.column_stack([noise.numbers, magnitudes(noise.numbers), row_scores(noise.numbers)])
    m = len(noise.points)
    count = np.bincount(noise.secret, minlength=m).astype(np.float64)
    sums = np.empty((m, wide.shape[1]))
    for place, column in enumerate(wide.T):
        sums[:, place] = np.bincount(noise.secret, weights=column, minlength=m)
    scores = [_against(noise.points, sums, count)]
    weight = float((noise.points[noise.secret] ** 2).sum())
    along = float((noise.numbers * noise.points[noise.secret]).sum()) / math.sqrt(weight) if weight else 0.0
    scores.append(np.array([along]))
    if known.worlds is not None:
        members = known.worlds.masks()[:, known.exposed[:FOLLOWED]].astype(np.float64)
        scores.append(_against(members, sums, count))
    elif coins is not None:
        scores.append(_against(coins.astype(np.float64), sums, count))
    drawn = count > 0
    energies = (sums[drawn] ** 2 / count[drawn, None]).sum(axis=0)
    families = [laws.scores_p_value(part) for part in scores if part.size]
    every = np.concatenate([part.ravel() for part in scores])
    return every, worst(*families, laws.energies_p_value(energies, int(drawn.sum())))


def _against(features: Floats, sums: Floats, count: Floats) -> Floats:
    """Scores of sums by world against features of worlds, centred over the releases."""
    centred = features - (count @ features) / count.sum()
    spread = np.sqrt(count @ centred**2)
    varying = spread > 1e-9 * np.abs(features).max(axis=0, initial=1e-300) * math.sqrt(count.sum())
    return np.asarray((centred[:, varying].T @ sums) / spread[varying, None])


def _successive(noise: Noises, alpha: float) -> Finding:
    """Given some releases, products with others are normal: neighbours, and the second half at every distance.

    Releases are taken in disjoint pairs, so that what is given never depends on what is tested.
    """
    wide = np.column_stack([noise.numbers, row_scores(noise.numbers)])
    scores = []
    for lag in LAGS:
        given = np.flatnonzero((np.arange(len(wide) - lag) // lag) % 2 == 0)
        size = np.linalg.norm(wide[given], axis=0)
        scores.append(((wide[given].T @ wide[given + lag]) / size[:, None]).ravel())
    half = len(wide) // 2
    first, second = (np.fft.rfft(part[:, :-1], axis=0) for part in (wide[:half], wide[half : 2 * half]))
    shifted = np.fft.irfft((first.conj() * second).sum(axis=1), n=half)
    far = shifted / np.linalg.norm(wide[:half, :-1])
    near = np.concatenate(scores)
    return _link(
        "noise that repeats or follows other releases",
        np.concatenate([near, far]),
        half,
        alpha=alpha,
        reading="correlations up to {} between releases, where 0 is expected",
        p=worst(laws.scores_p_value(near), laws.scores_p_value(far)),
    )


def _link(question: str, scores: Floats, k: int, *, alpha: float, reading: str, p: float | None = None) -> Finding:
    """A finding from scores that are standard normal under the claim: the largest, as a correlation over k releases."""
    most = float(np.abs(scores).max(initial=0.0))
    half = -float(special.ndtri(SHOWN / 2))
    return checked(
        NAME,
        question,
        measured=min(1.0, most / math.sqrt(k)),
        interval=(min(1.0, max(0.0, most - half) / math.sqrt(k)), min(1.0, (most + half) / math.sqrt(k))),
        claim=0.0,
        slack=LINK_SLACK,
        p=laws.scores_p_value(scores) if p is None else p,
        alpha=alpha,
        trials=k,
        reading=reading,
    )
