"""`audit.encoded`: encode a pool again and again as it was encoded, and let attackers guess who was drawn."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from leakcap.audit import statistics
from leakcap.audit.encoded.attacker import EncodedAttack, EncodedAttacker
from leakcap.audit.encoded.game import EncodedGame, EncodedTrial
from leakcap.audit.encoded.insider import insider
from leakcap.audit.encoded.law import LAW, law_of_encodings
from leakcap.audit.encoded.likelihood import likelihood, likelihood_as_printed
from leakcap.audit.report import AuditReport
from leakcap.audit.run import ALPHA
from leakcap.audit.verdicts import INCONCLUSIVE, SHOWN, UNBOUNDED, Finding, needed_for, slack_of, verdict_of
from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Bools, Floats
from leakcap.noise.entropy import OperatingSystem, Seeded

__all__ = ["ENCODED_ATTACKS", "encoded"]

GUESSES: dict[str, EncodedAttack] = {
    "insider": insider,
    "likelihood": likelihood,
    "likelihood as printed": likelihood_as_printed,
}
ENCODED_ATTACKS = (*GUESSES, LAW)
"""Names of the attacks that `audit.encoded` knows."""
LEARN = 0.3  # of the encodings: to learn cuts from, and to choose the most exposed row by
MIN_RELEASES = 20
EVERY, ONE = "whether a row was drawn, all rows asked about", "whether the most exposed row was drawn"


def encoded(
    encoder: Any,
    X: Any,
    y: Any,
    *,
    attacks: Iterable[str] | None = None,
    targets: int = 32,
    releases: int = 200,
    simulated: int = 50,
    alpha: float = ALPHA,
    seed: int | None = None,
) -> AuditReport:
    """Attack encoded sets like the one that an encoder has made, and compare with its certificate.

    The pool is encoded again, `releases` times, by the code that made the one that leaves, with the same settings and
    the same noise; nothing of it leaves. Attackers guess of some rows of the pool whether they were drawn. What is
    measured is balanced success: the mean of the shares of right guesses about rows that were drawn and rows that were
    not. A certificate without claims is compared with nothing.

    Args:
        encoder: an encoder that has encoded the pool.
        X: the pool's rows, as `encode` took them.
        y: the pool's labels.
        attacks: names from `audit.ENCODED_ATTACKS`. None: all of them.
        targets: rows of the pool to ask about, drawn at random.
        releases: encodings for trial, at least 20.
        simulated: encodings with a row, and as many without it, that attackers by likelihood make of their own.
        alpha: probability that the audit says "refuted" of a certificate that holds, over all its attacks.
        seed: makes the audit repeatable; left out, trials draw from the operating system as a release does.

    Returns:
        A report with findings for each attack: all rows asked about, and the most exposed one, which is chosen by
        encodings that are not judged. Custodian side.

    Raises:
        InputError: the encoder has encoded nothing, this is not its pool, or an attack is unknown.

    Examples:
        >>> import leakcap as lc
        >>> rng = np.random.default_rng(0)
        >>> y = np.repeat([0, 1], 20)
        >>> X = rng.normal(size=(40, 4)) + 3 * y[:, None]
        >>> encoder = lc.obfuscation.Encoder(4, mix=2, rows_released=40, rows_sampled=20, noise=0.0, draws=0)
        >>> Z, Y = encoder.encode(X, y)
        >>> found = lc.audit.encoded(encoder, X, y, attacks=["insider"], targets=8, releases=20, seed=0)
        >>> found.verdict, found.findings[0].measured > 0.9
        ('no promise', True)
    """
    wanted = tuple(
        checks.choice(ENCODED_ATTACKS, attacks=one) for one in (ENCODED_ATTACKS if attacks is None else attacks)
    )
    checks.count(at_least=MIN_RELEASES, releases=releases)
    checks.count(simulated=simulated)
    checks.fraction(alpha=alpha)
    game = EncodedGame.of(encoder, X, y)
    rng = np.random.default_rng(seed)
    if not 0 < checks.count(targets=targets) <= len(game.pool.rows):
        raise InputError("targets must be no more than the pool has rows")
    began = time.perf_counter()
    asked = np.sort(rng.permutation(len(game.pool.rows))[:targets])
    attacker = EncodedAttacker(game, asked, simulated, rng=rng)
    randomness = OperatingSystem() if seed is None else Seeded(int(rng.integers(2**63)))
    trials = [game.trial(randomness) for _ in range(releases)]
    found = tuple(_tried(attacker, trials, wanted, alpha))
    return AuditReport(
        findings=found,
        certificate=None,
        trials=releases,
        alpha=alpha,
        target="encoded set",
        seconds=time.perf_counter() - began,
    )


def _tried(
    attacker: EncodedAttacker, trials: Sequence[EncodedTrial], wanted: Sequence[str], alpha: float
) -> Iterator[Finding]:
    learn, inside, share = round(LEARN * len(trials)), attacker.inside(trials), alpha / max(1, 2 * len(wanted))
    for name in wanted:
        if name == LAW:
            yield from law_of_encodings(attacker.game, trials, 2 * share)
            continue
        scores = GUESSES[name](attacker, trials, learn)
        right = (scores > 0) == inside
        yield _everybody(attacker, name, right[learn:], inside[learn:], alpha=share)
        yield from _exposed(attacker, name, right, inside, learn=learn, alpha=share)


def _everybody(attacker: EncodedAttacker, name: str, right: Bools, inside: Bools, *, alpha: float) -> Finding:
    """Balanced success on average over the targets: one value for each encoding, as its rows hang together."""
    rates = attacker.game.law.rates[attacker.targets]
    weights = np.where(inside, 1 / (2 * rates), 1 / (2 * (1 - rates)))
    values, most = (right * weights).mean(axis=1), float((1 / (2 * np.minimum(rates, 1 - rates))).mean())
    low, high = statistics.mean_interval(np.minimum(values, most), SHOWN, 0.0, most)
    bound = attacker.game.bound
    p = 1.0 if bound is None else statistics.mean_p_value(np.minimum(values, most), bound, 0.0, most)
    return found_share(
        name, EVERY, float(values.mean()), (low, min(1.0, high)), bound=bound, p=p, alpha=alpha, trials=len(values)
    )


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
    yield found_share(
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


def found_share(
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
        needed=needed_for(min(1.0, measured), bound, alpha) if open_ and bound is not None else None,
        named=named,
        slack=None if bound is None else slack_of(bound),
    )
