"""The certificate: what is promised, to whom, on which assumptions. A frozen record of public facts only.

It is complete before the secret world is drawn, so it cannot depend on it. Whoever reads it learns pool-level
facts (which it lists), never the noise, the masks or any one person's exposure.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, fields

from leakcap import checks, convert
from leakcap.errors import InputError
from leakcap.proofs import proves

__all__ = ["KINDS", "CappedFigure", "Certificate"]

KINDS = ("exact", "confidence", "closed_form", "pool", "label_dp", "session", "empirical", "simulation")


@dataclass(frozen=True)
class CappedFigure:
    """One cap, what an attacker has without the release, and what was certified with it."""

    cap: str
    meaning: str
    before: float
    limit: float
    certified: float


@dataclass(frozen=True)
class Certificate:
    """What the best possible attacker can do with a release. See `str(certificate)` for the plain words."""

    kind: str
    capped: tuple[CappedFigure, ...]
    membership_success: float
    mutual_information: float
    leakage_curve: tuple[tuple[float, float], ...]
    hockey_sticks: tuple[tuple[float, float], ...]
    known_memberships: tuple[tuple[int, float], ...]
    name_a_member_success: float
    worlds: int
    units: int
    rate: str
    design: str
    outputs: int
    noised_directions: int
    confidence: float
    gamma: float
    gamma_used: float
    attempt: int
    bounds: int
    draws: dict[str, int]
    integrated: bool
    sampler_distance: float
    grid_step: float
    pool_public: tuple[str, ...]
    declared_public: tuple[str, ...]
    assumptions: tuple[str, ...]
    not_promised: tuple[str, ...]
    theorems: tuple[str, ...]
    leakcap_version: str

    @property
    def is_guarantee(self) -> bool:
        """False for simulations (their seed is known) and for the papers' stopping rule (no confidence)."""
        return self.kind not in ("simulation", "empirical")

    @property
    def sampling_rate(self) -> float:
        numerator, denominator = self.rate.split("/")
        return int(numerator) / int(denominator)

    @property
    def unnoised_directions(self) -> int:
        """Output directions that are equal in all worlds and leave as they are."""
        return self.outputs - self.noised_directions

    @property
    def colluders(self) -> int:
        """Known memberships at which the certificate ends: they leave about one of the worlds."""
        return int(math.log2(self.worlds)) if self.kind != "confidence" else self.units

    @proves("leakage-curve")
    def posterior(self, prior: float) -> float:
        """Success of the best attacker at any guess that succeeds with probability `prior` without the release."""
        p = checks.probability(prior=prior)
        if p in (0.0, 1.0):
            return p
        found = [1.0, float(convert.posterior(self.mutual_information, p))]
        for q, bound in self.leakage_curve:
            # S is concave with S(0) = 0 and S(1) = 1: lines through either end bound it on the far side.
            found.append(bound * p / q if p >= q else 1 - (1 - p) * (1 - bound) / (1 - q))
            if p < q <= 1 / self.worlds:
                found.append(bound)
        return max(p, min(found))

    @proves("roc")
    def true_positive_rate(self, fpr: float) -> float:
        """Share of participants recognised at a false positive rate, for the most exposed person."""
        f = checks.probability(fpr=fpr)
        rate = self.sampling_rate
        found = [1.0, f + 2 * self.membership_success - 1]
        found.append(float(convert.true_positive_rate(self.mutual_information, f, rate)))
        for cut, stick in self.hockey_sticks:
            found.append((cut * (1 - rate) * f + stick * 1) / (rate * (1 - cut)))
        return max(f, min(found))

    @proves("collusion")
    def given(self, known: int) -> float:
        """Membership success of an attacker who was told `known` other memberships, chosen at random."""
        k = checks.count(at_least=0, known=known)
        if k == 0:
            return self.membership_success
        if self.kind == "confidence" and self.rate == "1/2":
            # I(X; Y | known) <= I(X; Y); the prior of one more bit grows with the bits that are known.
            free = self.units - k
            if free <= 0:
                return 1.0
            return float(convert.posterior(self.mutual_information, min(1.0, math.ceil(self.units / 2) / free)))
        enough = [success for size, success in self.known_memberships if size >= k]
        return max(self.membership_success, enough[0]) if enough else 1.0

    def to_json(self) -> str:
        """The whole record, in a stable order."""
        return json.dumps(asdict(self), indent=1, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """A certificate from its JSON; anything missing or unknown raises."""
        try:
            given = json.loads(text)
        except json.JSONDecodeError as error:
            raise InputError("this is no JSON text") from error
        names = {field.name for field in fields(cls)}
        if not isinstance(given, dict) or set(given) != names:
            raise InputError("this JSON text is no leakcap certificate of this version")
        if given["kind"] not in KINDS:
            raise InputError("unknown kind of certificate")
        given["capped"] = tuple(CappedFigure(**one) for one in given["capped"])
        pairs = "leakage_curve", "hockey_sticks", "known_memberships"
        for name in pairs:
            given[name] = tuple((first, second) for first, second in given[name])
        for name in ("pool_public", "declared_public", "assumptions", "not_promised", "theorems"):
            given[name] = tuple(given[name])
        return cls(**given)

    def __str__(self) -> str:
        from leakcap.wording import page

        return page(self)
