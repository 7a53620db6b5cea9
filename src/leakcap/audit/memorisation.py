"""`audit.memorised`: does a model tell which labels were planted in its training, and how large an epsilon is that?"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from leakcap.audit.attacks.appendix_b import Heuristic, normal_rule, weighted_rule
from leakcap.audit.attacks.canary_scores import canary_scores
from leakcap.audit.attacks.memorisation import ONE_DECOY, CanaryGuesses, guesses_of
from leakcap.audit.canaries import CanaryKey
from leakcap.audit.report import AuditReport
from leakcap.audit.run import ALPHA
from leakcap.audit.verdicts import EPSILON, HOLDS, INCONCLUSIVE, REFUTED, SHOWN, UNBOUNDED, Finding
from leakcap.certificates.labels import LabelCertificate
from leakcap.certificates.text import rounded_up
from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats

__all__ = ["MemorisationReport", "memorised"]

SHARES = (1.0, 0.3, 0.1)  # of the canaries, that are guessed about: fixed before any score is seen
THRESHOLDS = (0.5, 0.9)  # of the heuristics
OF_ONE, OF_EPSILON = 0.05, 0.15  # an excess of epsilon that has to be visible before "holds" is said
BEYOND_DELTA, MOST_ALPHA = 1000.0, 0.05  # a promise with delta may fail that often: nobody can be surer of a refutation
TARGET = "labels"


@dataclass(frozen=True)
class MemorisationReport(AuditReport):
    """What a model gives away about planted labels. Custodian side.

    Attributes:
        findings: a lower end on epsilon for each game and number of guesses; then heuristics, marked as such.
        certificate: the certificate of private labels that was put to the test; None where there is none.
        trials: number of canaries.
        alpha: probability of a false "refuted" in the whole report.
        target: "labels".
        seconds: time that the audit took.
        exposed: empty: which labels were planted is the key's alone.
        counts: right guesses of each game.
        delta: at which the lower ends on epsilon hold.
    """

    counts: tuple[CanaryGuesses, ...] = ()
    delta: float = 0.0

    @property
    def epsilon_lower(self) -> float:
        """The training's epsilon is at least this, but for one audit in twenty."""
        return max(one.interval[0] for one in self.findings if not one.heuristic)

    @property
    def sentence(self) -> str:
        """What was found, in plain words."""
        if self.verdict == REFUTED:
            return self._refutation
        shown = (
            f"{self.trials:,} canaries in one training show an epsilon of at least {self.epsilon_lower:.3g} for a label"
        )
        if self.verdict == UNBOUNDED:
            return f"{shown}. Nothing was promised, so there is nothing to refute."
        allowed = f"{rounded_up(self.certified or 0.0, 4):g}"
        if self.certified is not None and self.epsilon_lower > self.certified:
            return (
                f"Suspicious, not refuted at {self.alpha:g}: {shown}, where at most {allowed} is allowed. Plant more "
                "labels and train once more."
            )
        return f"Not refuted: {shown}, where at most {allowed} is allowed. An audit never proves a promise."

    def to_json(self) -> str:
        """All figures; the certificate as it was published. No place and no label of a canary is in it.

        Returns:
            JSON text. Custodian side.
        """
        held = json.loads(super().to_json())
        held |= {"epsilon_lower": self.epsilon_lower, "delta": self.delta}
        held["counts"] = [asdict(one) for one in self.counts]
        return json.dumps(held, indent=1, allow_nan=False)


def memorised(
    predict: Any,
    key: CanaryKey,
    X: Any = None,
    *,
    certificate: LabelCertificate | None = None,
    epsilon: float | None = None,
    delta: float = 0.0,
    shares: Sequence[float] = SHARES,
    looks: int = 1,
    alpha: float = ALPHA,
) -> MemorisationReport:
    """Ask a model for the labels that were planted in its training, and say how large an epsilon its answers show.

    Two games. The attacker is shown a canary's label and a decoy and guesses which was planted; or names it among all
    wrong ones. In each he guesses about fixed shares of the canaries, the surest first. The rules of the paper that
    gave the idea are shown beside them, marked as heuristics: they decide nothing.

    Guarantee: for a training that is (epsilon, delta)-private in each label, the largest of the lower ends exceeds
    epsilon in at most 5 % of audits, and a true certificate is refuted with probability `alpha` at most. One training
    is enough.

    Args:
        predict: a fitted classifier (`predict_proba`, `decision_function`, or `predict` with `classes_`), a function
            of rows, or a table of scores of all rows or of the canaries; a column for each class of the key.
        key: what `plant` gave, or `CanaryKey.load`.
        X: all rows, in the order of the labels; only the canaries' are used. None where `predict` is a table.
        certificate: of the training that is put to the test.
        epsilon: promise to test where there is no certificate.
        delta: beside that epsilon.
        shares: of the canaries that are guessed about. Choose them before you see a score.
        looks: how many audits of one promise there will be with this key, this one among them: of several checkpoints,
            say. Fix it before the first; both errors are divided by it.
        alpha: probability that the audit says "refuted" of a promise that holds. It is raised to 1,000 times delta, up
            to .05, and the report says so: a training may show everything with probability delta and keep its
            promise, so that a smaller alpha would refute nothing.

    Returns:
        A report with a lower end on epsilon for each game and share. Custodian side.

    Raises:
        InputError: rows, scores, key or promise do not fit together.
        OutputError: the model's scores are not numbers, or not a column for each class.

    Examples:
        >>> import leakcap as lc
        >>> from sklearn.neighbors import KNeighborsClassifier
        >>> rng = np.random.default_rng(0)
        >>> X, y = rng.normal(size=(400, 5)), rng.integers(4, size=400)
        >>> labels, key = lc.audit.plant(y, count=200, seed=0)
        >>> found = lc.audit.memorised(KNeighborsClassifier(1).fit(X, labels), key, X, epsilon=1.0)
        >>> found.verdict, found.epsilon_lower > 3
        ('refuted', True)
    """
    began = time.perf_counter()
    if not isinstance(key, CanaryKey):
        raise InputError("key must be what leakcap.audit.plant gave beside the labels, or CanaryKey.load(path)")
    looks = checks.count(looks=looks)
    limit, delta = _promise(certificate, epsilon, delta, key)
    wanted = _checked_shares(shares)
    scores = canary_scores(predict, key, X)
    counts = tuple(guesses_of(scores, key, wanted))
    alpha = max(checks.fraction(alpha=alpha), min(MOST_ALPHA, BEYOND_DELTA * delta))
    looks *= len(counts)
    exact = [_judged(one, limit, delta, alpha=alpha / looks, shown=SHOWN / looks) for one in counts]
    return MemorisationReport(
        findings=(*exact, *_heuristics(scores, key, counts)),
        certificate=certificate,
        trials=key.count,
        alpha=alpha,
        target=TARGET,
        seconds=time.perf_counter() - began,
        counts=counts,
        delta=delta,
    )


def _promise(
    certificate: LabelCertificate | None, epsilon: float | None, delta: float, key: CanaryKey
) -> tuple[float | None, float]:
    """Epsilon, if any is promised, and delta."""
    if certificate is None:
        limit = None if epsilon is None else checks.nonnegative(epsilon=epsilon)
        return limit, checks.probability(delta=delta)
    if not isinstance(certificate, LabelCertificate):
        raise InputError("certificate must be that of private labels, such as model.certificate_")
    if epsilon is not None or delta:
        raise InputError("epsilon and delta are the certificate's: leave them out, or leave the certificate out")
    if (certificate.labels, len(certificate.classes)) != (key.labels, len(key.classes)):
        raise InputError(
            f"the certificate is of {certificate.labels:,} labels of {len(certificate.classes)} classes, and canaries "
            f"were planted among {key.labels:,} of {len(key.classes)}: give the certificate of the training on the "
            "planted labels, all of them; keep rows for tests apart before you plant"
        )
    return certificate.epsilon, certificate.delta


def _checked_shares(shares: Sequence[float]) -> tuple[float, ...]:
    if isinstance(shares, str) or not hasattr(shares, "__len__") or not len(shares):
        raise InputError("shares must be a list of shares of the canaries, such as (1.0, 0.3, 0.1)")
    wanted = tuple(checks.probability(shares=one) for one in shares)
    if min(wanted) <= 0 or len(set(wanted)) != len(wanted):
        raise InputError("shares must be different, and above 0: no guess about no canary can be right")
    return wanted


def _judged(one: CanaryGuesses, limit: float | None, delta: float, *, alpha: float, shown: float) -> Finding:
    """One game at one number of guesses, beside the promise."""
    low, high = one.epsilon_lower(delta, shown), one.epsilon_upper(shown)
    p, verdict, slack = 1.0, UNBOUNDED, None
    if limit is not None:
        p, slack = one.p_value(limit, delta), OF_ONE + OF_EPSILON * limit
        verdict = REFUTED if p < alpha else HOLDS if high <= limit + slack else INCONCLUSIVE
    return Finding(
        attack=one.game,
        question=f"epsilon of a label by {one.guesses:,} guesses, at least",
        measured=low,
        interval=(low, high),
        prior=0.0,
        certified=limit,
        p_value=p,
        verdict=verdict,
        trials=one.guesses,
        kind=EPSILON,
        slack=slack,
    )


def _heuristics(scores: Floats, key: CanaryKey, counts: Sequence[CanaryGuesses]) -> Iterator[Finding]:
    """The paper's rules: for the eye, without a verdict."""
    for one in counts:
        if one.game == ONE_DECOY:
            yield _heuristic("normal rule", f"{one.guesses:,} guesses", normal_rule(one.right, one.guesses))
    if float(scores.min()) >= 0 and np.allclose(scores.sum(axis=1), 1.0, atol=1e-3):  # thresholds are for probabilities
        for threshold in THRESHOLDS:
            rule = weighted_rule(scores, key, threshold)
            if rule.canaries:
                yield _heuristic("appendix B", f"all decoys believed by {threshold:g}", rule)


def _heuristic(name: str, what: str, rule: Heuristic) -> Finding:
    estimate, low, high = rule.epsilons
    return Finding(
        attack=name,
        question=f"epsilon by {what}, a heuristic",
        measured=estimate,
        interval=(low, high),
        prior=0.0,
        certified=None,
        p_value=1.0,
        verdict=UNBOUNDED,
        trials=rule.canaries,
        kind=EPSILON,
        heuristic=True,
    )
