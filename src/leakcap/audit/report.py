"""What an audit has found: measured beside promised, as text, JSON and a page."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from leakcap.audit.verdicts import CHECK, EPSILON, INCONCLUSIVE, REFUTED, SHARE, UNBOUNDED, Finding, overall
from leakcap.certificates.display import Displayed
from leakcap.certificates.labels import LabelCertificate
from leakcap.certificates.release import Certificate
from leakcap.certificates.session import SessionCertificate
from leakcap.certificates.text import rounded_up
from leakcap.errors import LeakcapError

__all__ = ["AuditReport"]


@dataclass(frozen=True)
class AuditReport(Displayed):
    """What an audit has found. Custodian side: its figures reveal something about the people it attacked.

    Attributes:
        findings: one for each attack and question.
        certificate: the certificate that was put to the test; None where there is none.
        trials: number of releases, plans or models that were made.
        alpha: probability of a false "refuted" in the whole report.
        target: what was attacked, in a word.
        seconds: time that the audit took.
        exposed: numbers of units, the most exposed first.
    """

    findings: tuple[Finding, ...]
    certificate: Certificate | LabelCertificate | SessionCertificate | None
    trials: int
    alpha: float  # chance of a false "refuted" in the whole report
    target: str
    seconds: float
    exposed: tuple[int, ...] = ()  # units by number, the most exposed first
    _custodian_only: ClassVar[bool] = True

    @property
    def verdict(self) -> str:
        """`refuted` if any attack refutes; `inconclusive` if none does but some need more releases; otherwise `holds`.

        `no promise` where nothing was claimed.
        """
        return overall(self.findings)

    @property
    def holds(self) -> bool:
        """Whether nothing was refuted."""
        return self.verdict != REFUTED

    @property
    def worst(self) -> Finding:
        """The finding that speaks most against the promise: refuted first, then the success nearest to its bound.

        Raises:
            LeakcapError: no attack applied to the target.
        """
        if not self.findings:
            raise LeakcapError("no attack applied to this target")

        def weight(one: Finding) -> tuple[bool, float]:
            over = one.measured - one.certified if one.certified is not None else -math.inf
            return one.verdict == REFUTED, over

        return max(self.findings, key=weight)

    @property
    def measured(self) -> float:
        """Measured success of the worst finding."""
        return self.worst.measured

    @property
    def interval(self) -> tuple[float, float]:
        """Interval of the measured success of the worst finding."""
        return self.worst.interval

    @property
    def certified(self) -> float | None:
        """Certified bound beside the worst finding; None where nothing was promised."""
        return self.worst.certified

    def to_json(self) -> str:
        """All figures; the certificate as it was published.

        Returns:
            JSON text. Custodian side.
        """
        held = {
            "verdict": self.verdict,
            "target": self.target,
            "trials": self.trials,
            "alpha": self.alpha,
            "seconds": self.seconds,
            "most exposed units, by number": list(self.exposed),
            "findings": [_plain(asdict(one) | {"within_chance": one.within_chance}) for one in self.findings],
            "certificate": json.loads(self.certificate.to_json()) if self.certificate else None,
        }
        return json.dumps(held, indent=1, allow_nan=False)

    def __str__(self) -> str:
        lines = [self.sentence, ""]
        head = f"{'attack':36}{'guessed':52}{'prior':>8}{'measured':>10}{'interval':>18}{'certified':>11}  verdict"
        lines += [head, "-" * len(head)]
        for one in self.findings:
            low, high = one.interval
            between = f"{low:.4f} to {high:.4f}" if not math.isnan(low) else ""
            prior = f"{one.prior:.4f}" if not math.isnan(one.prior) else ""
            bound = f"{rounded_up(one.certified, 4):.4f}" if one.certified is not None else ""
            lines.append(
                f"{one.attack:36}{one.question:52}{prior:>8}{one.measured:>10.4f}{between:>18}{bound:>11}  "
                f"{self.verdict_in_words(one)}"
            )
        return "\n".join(lines)

    def verdict_in_words(self, one: Finding) -> str:
        """The verdict of a finding: what would decide where it is open, and whether chance explains an excess.

        Args:
            one: a finding of this report.

        Returns:
            A few words.
        """
        needed = self.trials_needed(one)
        more = f", {needed:,} trials would decide" if needed else ""
        return f"{one.verdict}{' (above its bound, within chance)' if one.within_chance else ''}{more}"

    def trials_needed(self, one: Finding) -> int | None:
        """Trials, in all, of an audit that would decide: those to learn from and to choose by included.

        Args:
            one: a finding of this report.

        Returns:
            About how many; None where these decide, or no number does.
        """
        return None if one.needed is None or not one.trials else math.ceil(one.needed * self.trials / one.trials)

    @property
    def sentence(self) -> str:
        """What was found, in plain words."""
        if self.verdict == REFUTED:
            return self._refutation
        if self.verdict == UNBOUNDED:
            return self._exposure
        return (
            f"Nothing refuted in {self.trials:,} releases{self._best}{self._open}. "
            "An audit finds faults; it never proves their absence."
        )

    @property
    def _refutation(self) -> str:
        worst, claim = self.worst, "certificate" if self.certificate else "claim"
        chance = f"{worst.p_value:.0e}" if worst.p_value > 1e-300 else "below 1e-300"
        if worst.kind == CHECK:
            found = worst.reading.replace("{}", f"{worst.measured:.3g}")
            what = f"the mechanism is not the one that the {claim} is about ({worst.attack}, {worst.question}: {found}"
        elif worst.certified is None:
            what = f"{worst.attack} does what the {claim} rules out ({worst.question}"
        else:
            measured, allowed = f"{worst.measured:.2%}", _rounded_up(worst.certified)
            if worst.kind == EPSILON:
                measured, allowed = f"{worst.measured:.3g}", f"{rounded_up(worst.certified, 4):g}"
            what = (
                f"{worst.attack} does what the {claim} rules out ({worst.question}: {measured}, where at most "
                f"{allowed} is allowed"
            )
        return f"REFUTED: {what}; chance of that if it held: {chance}). Do not publish."

    @property
    def _best(self) -> str:
        """The figure nearest to its bound, in words; of a person named in advance, if there is any."""
        shares = [one for one in self.findings if one.kind == SHARE and one.certified is not None]
        shares = [one for one in shares if one.named] or shares
        if not shares:
            return ""
        best = max(shares, key=lambda one: one.measured - (one.certified or 0.0))
        allowed = _rounded_up(best.certified or 0.0)
        return (
            f": the best attack ({best.question}) was right in {best.measured:.2%} of cases, at most {allowed} allowed"
        )

    @property
    def _open(self) -> str:
        above = sum(one.within_chance for one in self.findings)
        undecided = [one for one in self.findings if one.verdict == INCONCLUSIVE]
        words, of = "", f"of {len(self.findings)} figures"
        if above:
            words += f"; {above} {of} {'lies' if above == 1 else 'lie'} above the bound, within chance"
        if undecided:
            counts = [self.trials_needed(one) for one in undecided]
            enough = max((count for count in counts if count), default=0)
            when = f" ({enough:,} would decide)" if enough and None not in counts else ""
            words += f"; {len(undecided)} {of} need more releases to decide{when}"
        return words

    @property
    def _exposure(self) -> str:
        """How exposed people are where nothing was promised, for somebody who has to decide."""
        if not self.findings:
            return "No attack applied: nothing was measured."
        worst = max(self.findings, key=lambda one: one.interval[0])
        sure = worst.interval[0]
        how = (
            "clearly more often than by guessing" if sure > worst.prior + 0.05 else "hardly more often than by guessing"
        )
        return (
            f"Whoever sees what is published can tell {worst.question} in {100 * worst.measured:.0f} of 100 cases (at "
            f"least {100 * sure:.0f}, allowing for chance; guessing is right in {100 * worst.prior:.0f}): {how}. "
            "Nothing was promised, so there is nothing to refute."
        )

    def __reduce__(self) -> Any:
        raise LeakcapError("an audit is custodian-side and is not pickled: keep its to_json() with the custodian")


def _rounded_up(bound: float) -> str:
    return f"{math.ceil(1e4 * bound - 1e-9) / 100:.2f}%"


def _plain(found: dict[str, Any]) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else _ends(value)
        for name, value in found.items()
    }


def _ends(value: Any) -> Any:
    if isinstance(value, tuple):
        return [end if math.isfinite(end) else None for end in value]
    return value
