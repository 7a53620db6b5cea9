"""Checks of what a certificate of an encoded set rests on: the size of its noise, and secrets that are drawn anew."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats
from scipy.special import gammaln

from leakcap.audit.encoded.game import EncodedGame, EncodedTrial
from leakcap.audit.verdicts import CHECK, HOLDS, REFUTED, Finding, checked
from leakcap.obfuscation.masking import STEP

__all__ = ["LAW", "law_of_encodings"]

LAW = "law of the encoding"
SHOWN_SIDE = 0.025
SIZE_SLACK = 0.01


def law_of_encodings(game: EncodedGame, trials: Sequence[EncodedTrial], alpha: float) -> Iterator[Finding]:
    """Exact checks, however few encodings there are; the size of the noise only where there is to be any."""
    share = alpha / 5
    if game.noise > 0:
        yield _size(game, trials, share)
        yield _following(trials, share)
    yield _repeats("drawing of rows that was there before", [trial.inside for trial in trials], _samples(game), share)
    yield _repeats("order of labels that was there before", [trial.labels for trial in trials], _orders(game), share)
    yield _repeats("mask that was there before", [trial.mask[0] for trial in trials], math.inf, share)


def _size(game: EncodedGame, trials: Sequence[EncodedTrial], alpha: float) -> Finding:
    """What is left when the masked means are taken out, beside the certified noise. Rounding to the grid is in it."""
    unit = game.noise * math.sqrt(1 + STEP**2 / 12)
    count = sum(trial.rest.size for trial in trials)
    total = sum(float((trial.rest**2).sum()) for trial in trials) / unit**2
    ends = (math.sqrt(total / stats.chi2.ppf(1 - side, count)) for side in (SHOWN_SIDE, 1 - SHOWN_SIDE))
    p = 2 * min(stats.chi2.sf(total, count), stats.chi2.cdf(total, count))
    low, high = ends
    return checked(
        LAW,
        "size of the noise, in units of the certified one",
        measured=math.sqrt(total / count),
        interval=(low, high),
        claim=1.0,
        slack=SIZE_SLACK,
        p=min(1.0, float(p)),
        alpha=alpha,
        trials=len(trials),
        reading="{} of the certified size",
    )


def _repeats(question: str, drawn: Sequence[npt.NDArray[Any]], ways: float, alpha: float) -> Finding:
    """How many trials drew what another had drawn; `ways`: the logarithm of how many there are, all equally likely."""
    twice = len(drawn) - len({np.ascontiguousarray(one).tobytes() for one in drawn})
    pairs = len(drawn) * (len(drawn) - 1) / 2
    # With one pair or more that agree: at most the expected number of such pairs.
    p = min(1.0, math.exp(min(0.0, math.log(pairs) - ways))) if twice else 1.0
    return _check(question, float(twice), p, alpha=alpha, trials=len(drawn))


def _check(question: str, measured: float, p: float, *, alpha: float, trials: int) -> Finding:
    return Finding(
        attack=LAW,
        question=question,
        measured=measured,
        interval=(math.nan, math.nan),
        prior=math.nan,
        certified=None,
        p_value=p,
        verdict=REFUTED if p < alpha else HOLDS,
        trials=trials,
        kind=CHECK,
        reading="{}",
    )


def _following(trials: Sequence[EncodedTrial], alpha: float) -> Finding:
    """How closely the noise of any trial follows that of the one before."""
    rests = [trial.rest.ravel() for trial in trials]
    sizes = [float(np.linalg.norm(one)) or 1.0 for one in rests]
    agree = [abs(float(a @ b)) / (p * q) for a, b, p, q in zip(rests, rests[1:], sizes, sizes[1:], strict=False)]
    most, free = min(max(agree), 1.0), len(rests[0]) - 1
    # Of independent normals this is a t statistic, exactly; two sides, and as many looks as trials.
    reach = math.inf if most == 1 else most * math.sqrt(free / (1 - most**2))
    p = min(1.0, 2 * len(agree) * float(stats.t.sf(reach, free)))
    return _check("noise that follows that of the trial before", most, p, alpha=alpha, trials=len(trials))


def _samples(game: EncodedGame) -> float:
    each = game.law.sampled
    return float(sum(_log_choose(int(size), each) for size in np.bincount(game.law.labels)))


def _orders(game: EncodedGame) -> float:
    """Rows of the same two classes have the same labels: exchanging them changes no order."""
    design = game.pool.design
    each, classes = design.released_per_pair, design.classes
    same = classes * gammaln(each + 1) + classes * (classes - 1) / 2 * gammaln(2 * each + 1)
    return float(gammaln(design.rows_released + 1) - same)


def _log_choose(size: int, chosen: int) -> float:
    return float(gammaln(size + 1) - gammaln(chosen + 1) - gammaln(size - chosen + 1))
