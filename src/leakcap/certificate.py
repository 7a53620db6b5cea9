"""The certificate: what is promised, to whom, on which assumptions. A frozen record of public facts only.

It is complete before the secret world is drawn, so it cannot depend on it. Whoever reads it learns pool-level
facts (which it lists), never the noise, the masks or any one person's exposure.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from leakcap import checks, convert
from leakcap.errors import InputError
from leakcap.json_record import entries, is_number, is_whole, is_words
from leakcap.proofs import proves

__all__ = ["KINDS", "CappedFigure", "Certificate"]

Number = TypeVar("Number", float, npt.NDArray[np.float64])
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
    mode: str
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
    draws: tuple[tuple[str, int], ...]
    integrated: bool
    price_of_confidence: float  # how much more noise the margin for unseen worlds costs (confidence mode)
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
        if self.mode == "individual":
            return 0
        return int(math.log2(self.worlds)) if self.mode == "exact" else self.units

    @proves("leakage-curve")
    def posterior(self, prior: Number) -> Number:
        """Success of the best attacker at any guess that succeeds with probability `prior` without the release."""
        p = _probabilities("prior", prior)
        inside = np.clip(p, 1e-300, 1 - 1e-16)
        best = np.minimum(1.0, convert.posterior(self.mutual_information, inside))
        for q, bound in self.leakage_curve:
            # S is concave with S(0) = 0 and S(1) = 1: lines through either end bound it on the far side.
            best = np.minimum(best, np.where(p >= q, bound * p / q, 1 - (1 - p) * (1 - bound) / (1 - q)))
        return _like(prior, np.where((p == 0) | (p == 1), p, np.maximum(p, best)))

    @proves("roc")
    def true_positive_rate(self, fpr: Number) -> Number:
        """Share of participants recognised at a false positive rate, for the most exposed person."""
        f = _probabilities("fpr", fpr)
        rate = self.sampling_rate
        best = np.minimum(1.0, f + 2 * self.membership_success - 1)
        best = np.minimum(best, convert.true_positive_rate(self.mutual_information, f, rate))
        for cut, stick in self.hockey_sticks:
            best = np.minimum(best, (cut * (1 - rate) * f + stick) / (rate * (1 - cut)))
        return _like(fpr, np.maximum(f, best))

    @proves("collusion")
    def given(self, known: int) -> float:
        """Membership success of an attacker who was told `known` other memberships, chosen at random."""
        k = checks.count(at_least=0, known=known)
        if k == 0:
            return self.membership_success
        if self.mode == "confidence" and self.rate == "1/2":
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
        given = entries(cls, text, "leakcap certificate")
        if given["kind"] not in KINDS or given["kind"] == "label_dp":  # those are LabelCertificates
            raise InputError("unknown kind of certificate")
        try:
            given["capped"] = tuple(CappedFigure(**one) for one in given["capped"])
            for name in ("leakage_curve", "hockey_sticks", "known_memberships", "draws"):
                given[name] = tuple((first, second) for first, second in given[name])
            for name in ("pool_public", "declared_public", "assumptions", "not_promised", "theorems"):
                given[name] = tuple(given[name])
        except (TypeError, ValueError):
            raise InputError("this JSON text is no leakcap certificate: a list in it has another form") from None
        found = cls(**given)
        if not _is_plausible(found):
            raise InputError("this JSON text is no leakcap certificate: an entry is not of its kind, or out of range")
        return found

    def __str__(self) -> str:
        from leakcap.wording import page

        return page(self)

    def _repr_html_(self) -> str:
        from leakcap.report.page import fragment

        return fragment(self)


def _probabilities(name: str, value: Any) -> npt.NDArray[np.float64]:
    given = np.asarray(value, dtype=np.float64)
    if not ((given >= 0) & (given <= 1)).all():
        raise InputError(f"{name} must be a probability from 0 to 1")
    return given


def _like(asked: Any, found: npt.NDArray[np.float64]) -> Any:
    """A number for a number, an array for an array."""
    return found if isinstance(asked, np.ndarray) else float(found)


def _is_plausible(cert: Certificate) -> bool:
    """Whether every entry is of its kind and in its range. It says nothing about who wrote the text."""
    number, whole, words = is_number, is_whole, partial(is_words, least=2)
    lists = cert.pool_public, cert.declared_public, cert.assumptions, cert.not_promised, cert.theorems
    figures = cert.membership_success, cert.name_a_member_success, cert.confidence, cert.gamma, cert.gamma_used
    return (
        number(0, 1, *figures, cert.sampler_distance, cert.grid_step)
        and number(0, math.inf, cert.mutual_information, cert.price_of_confidence)
        and all(number(0, 1, *pair) for pair in (*cert.leakage_curve, *cert.hockey_sticks))
        and all(whole(k) and number(0, 1, success) for k, success in cert.known_memberships)
        and all(words(name) and whole(count) for name, count in cert.draws)
        and whole(cert.worlds, cert.units, cert.outputs, cert.noised_directions, cert.attempt, cert.bounds)
        and isinstance(cert.integrated, bool)
        and words(cert.mode, cert.design, cert.leakcap_version, *(text for one in lists for text in one))
        and isinstance(cert.rate, str)
        and re.fullmatch(r"[1-9]\d*/[1-9]\d*", cert.rate) is not None
        and all(words(one.cap, one.meaning) and number(0, math.inf, one.before, one.limit) for one in cert.capped)
        and all(number(0, math.inf, one.certified) for one in cert.capped)
    )
