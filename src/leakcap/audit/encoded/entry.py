"""`audit.encoded`: encode a pool again and again as it was encoded, and let attackers guess who was drawn."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from leakcap.audit.encoded.attacker import EncodedAttack, EncodedAttacker
from leakcap.audit.encoded.bayes import bayes, can_be_listed
from leakcap.audit.encoded.chosen_plaintexts import CHOSEN, chosen_plaintexts
from leakcap.audit.encoded.game import EncodedGame
from leakcap.audit.encoded.guesses import guessed
from leakcap.audit.encoded.insider import insider
from leakcap.audit.encoded.known_plaintext import KNOWN, known_plaintext
from leakcap.audit.encoded.law import LAW, law_of_encodings
from leakcap.audit.encoded.likelihood import likelihood, likelihood_as_printed
from leakcap.audit.encoded.similarity import similarity
from leakcap.audit.report import AuditReport
from leakcap.audit.run import ALPHA
from leakcap.audit.verdicts import Finding
from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Ints
from leakcap.noise.entropy import OperatingSystem, Randomness, Seeded

__all__ = ["ENCODED_ATTACKS", "encoded"]

GUESSES: dict[str, EncodedAttack] = {
    "insider": insider,
    "likelihood": likelihood,
    "likelihood as printed": likelihood_as_printed,
    "similarity": similarity,
    "bayes": bayes,
}
ENCODED_ATTACKS = (*GUESSES, KNOWN, CHOSEN, LAW)
"""Names of the attacks that `audit.encoded` knows."""
LEARN = 0.3  # of the encodings: to learn cuts from, and to choose the most exposed row by
MIN_RELEASES = 20


def encoded(
    encoder: Any,
    X: Any,
    y: Any,
    *,
    attacks: Iterable[str] | None = None,
    targets: int | Sequence[int] | None = 32,
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
        X: the pool's rows, as `encode` took them. Of other rows the certificate says nothing.
        y: the pool's labels.
        attacks: names from `audit.ENCODED_ATTACKS`. None: all of them, but "bayes" for tiny pools alone.
        targets: how many rows of the pool to ask about, half of them those farthest from their class; or their numbers;
            None for all rows, whose average is compared with that of the certificate. At most as many as there are.
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
    wanted = _wanted(attacks)
    checks.count(at_least=MIN_RELEASES, releases=releases)
    checks.count(simulated=simulated)
    checks.fraction(alpha=alpha)
    game = EncodedGame.of(encoder, X, y)
    if attacks is None and not can_be_listed(game):
        wanted = tuple(one for one in wanted if one != "bayes")
    began, rng = time.perf_counter(), np.random.default_rng(seed)
    attacker = EncodedAttacker(game, _asked_about(game, targets, rng), simulated, rng=rng)
    randomness = OperatingSystem() if seed is None else Seeded(int(rng.integers(2**63)))
    found = tuple(_tried(attacker, wanted, releases=releases, alpha=alpha, randomness=randomness))
    return AuditReport(
        findings=found,
        certificate=None,
        trials=releases,
        alpha=alpha,
        target="encoded set",
        seconds=time.perf_counter() - began,
    )


def _wanted(attacks: Iterable[str] | None) -> tuple[str, ...]:
    return tuple(
        checks.choice(ENCODED_ATTACKS, attacks=one) for one in (ENCODED_ATTACKS if attacks is None else attacks)
    )


def _asked_about(game: EncodedGame, targets: int | Sequence[int] | None, rng: np.random.Generator) -> Ints:
    """Rows of the pool: those given, or half of them far from the mean of their class, where a swap changes most."""
    rows, labels = game.pool.rows, game.law.labels
    if targets is None:
        return np.arange(len(rows))
    if not isinstance(targets, (int, np.integer)):
        named = np.asarray(targets)
        if named.ndim != 1 or named.dtype.kind not in "iu" or not len(named) or len(np.unique(named)) != len(named):
            raise InputError("targets must be how many rows to ask about, or a list of their numbers, each once")
        if named.min() < 0 or named.max() >= len(rows):
            raise InputError(f"targets must be numbers of rows, from 0 to {len(rows) - 1}")
        return named.astype(np.intp)
    targets = min(checks.count(targets=int(targets)), len(rows))
    centres = np.array([rows[labels == one].mean(axis=0) for one in range(game.law.classes)])
    far = np.argsort(-((rows - centres[labels]) ** 2).sum(axis=1), kind="stable")
    first, rest = far[: targets // 2], rng.permutation(far[targets // 2 :])
    return np.sort(np.concatenate([first, rest[: targets - len(first)]])).astype(np.intp)


def _tried(
    attacker: EncodedAttacker, wanted: Sequence[str], *, releases: int, alpha: float, randomness: Randomness
) -> Iterator[Finding]:
    learn, share = round(LEARN * releases), alpha / max(1, len(wanted))
    trials = [attacker.game.trial(randomness) for _ in range(releases)]
    inside = attacker.inside(trials)
    for name in wanted:
        if name == LAW:
            yield from law_of_encodings(attacker.game, trials, share)
        elif name == KNOWN:
            yield known_plaintext(attacker, trials)
        elif name == CHOSEN:
            yield chosen_plaintexts(attacker, releases=releases, learn=learn, randomness=randomness)
        else:
            right = (GUESSES[name](attacker, trials, learn) > 0) == inside
            yield from guessed(attacker, name, right, inside, learn=learn, alpha=share)
