"""What guesses about rows that were drawn, or not, amount to: balanced success, beside the certificate's bound."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from leakcap.audit import statistics
from leakcap.audit.encoded.attacker import EncodedAttacker
from leakcap.audit.verdicts import INCONCLUSIVE, SHOWN, UNBOUNDED, Finding, slack_of, verdict_of
from leakcap.ground.arrays import Bools, Floats, Ints
from leakcap.obfuscation.sampled import MixingLaw

__all__ = ["guessed"]

EVERY, ONE = "whether a row was drawn, all rows asked about", "whether the most exposed row was drawn"


def guessed(
    attacker: EncodedAttacker, name: str, right: Bools, inside: Bools, *, learn: int, alpha: float
) -> Iterator[Finding]:
    """All targets on average, and the most exposed one, on the trials after the first `learn`."""
    yield _everybody(attacker, name, right[learn:], inside[learn:], alpha=alpha / 2)
    yield from _exposed(attacker, name, right, inside, learn=learn, alpha=alpha / 2)


def _everybody(attacker: EncodedAttacker, name: str, right: Bools, inside: Bools, *, alpha: float) -> Finding:
    """Balanced success on average over the targets: one value for each encoding, as its rows hang together."""
    game = attacker.game
    rates = game.law.rates[attacker.targets]
    weights = np.where(inside, 1 / (2 * rates), 1 / (2 * (1 - rates)))
    most = _most(game.law, attacker.targets) * (1 + 1e-9)
    values = (right * weights).mean(axis=1)
    low, high = statistics.mean_interval(values, SHOWN, 0.0, most)
    bound = game.mean_bound if len(attacker.targets) == len(game.pool.rows) else game.bound
    p = 1.0 if bound is None else statistics.mean_p_value(values, bound, 0.0, most)
    return _share(
        name, EVERY, float(values.mean()), (low, min(1.0, high)), bound=bound, p=p, alpha=alpha, trials=len(values)
    )


def _most(law: MixingLaw, targets: Ints) -> float:
    """What no encoding exceeds, all guesses right: so many of a class are drawn, no more and no fewer."""
    asked, sizes = (np.bincount(labels, minlength=law.classes) for labels in (law.labels[targets], law.labels))
    rates = law.sampled / sizes
    fewest, largest = np.maximum(0, asked - (sizes - law.sampled)), np.minimum(asked, law.sampled)
    ends = [drawn / (2 * rates) + (asked - drawn) / (2 * (1 - rates)) for drawn in (fewest, largest)]
    return float(np.maximum(*ends).sum() / len(targets))


def _exposed(
    attacker: EncodedAttacker, name: str, right: Bools, inside: Bools, *, learn: int, alpha: float
) -> Iterator[Finding]:
    """The target that was told best in the first trials, judged on the others."""
    shares = [_balanced_shares(right[:learn], inside[:learn]), _balanced_shares(right[learn:], inside[learn:])]
    able = ~np.isnan(shares[0]) & ~np.isnan(shares[1])
    if not able.any():
        return
    worst = int(np.argmax(np.where(able, shares[0], -1.0)))
    hits, drawn = right[learn:, worst], inside[learn:, worst]
    counts = int(hits[drawn].sum()), int(drawn.sum()), int(hits[~drawn].sum()), int((~drawn).sum())
    balanced, bound = statistics.Balanced(*counts), attacker.game.bound
    p = 1.0 if bound is None else balanced.p_value(bound)
    yield _share(
        name,
        ONE,
        balanced.estimate,
        balanced.interval(SHOWN),
        bound=bound,
        p=p,
        alpha=alpha,
        trials=len(hits),
        named=True,
    )


def _balanced_shares(right: Bools, inside: Bools) -> Floats:
    """Of every target; not a number where it was always drawn, or never."""
    with np.errstate(invalid="ignore"):
        sides = [(right & some).sum(axis=0) / some.sum(axis=0) for some in (inside, ~inside)]
    return np.asarray((sides[0] + sides[1]) / 2)


def _share(
    attack: str,
    question: str,
    measured: float,
    interval: tuple[float, float],
    *,
    bound: float | None,
    p: float,
    alpha: float,
    trials: int,
    named: bool = False,
) -> Finding:
    """A finding beside the certificate's bound, or beside nothing."""
    verdict = UNBOUNDED if bound is None else verdict_of(p, interval[1], bound, alpha)
    open_ = bound is not None and verdict == INCONCLUSIVE
    return Finding(
        attack=attack,
        question=question,
        measured=measured,
        interval=interval,
        prior=0.5,
        certified=bound,
        p_value=p,
        verdict=verdict,
        trials=trials,
        needed=_needed(measured, interval[1], bound, trials) if open_ and bound is not None else None,
        named=named,
        slack=None if bound is None else slack_of(bound),
    )


def _needed(measured: float, high: float, bound: float, trials: int) -> int | None:
    """About how many judged trials bring the end of the interval below the bound: its width falls with their root."""
    room = bound + slack_of(bound) - measured
    return None if room <= 0 else math.ceil(1.2 * trials * ((high - measured) / room) ** 2)
