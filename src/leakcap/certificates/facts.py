"""What a certificate of a release states, and what follows from it by arithmetic: the fields and their bounds.

Below both the record that users hold and the words it is told in, so that neither needs the other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from leakcap import convert
from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.proofs import proves

__all__ = ["IN_SECRET_ORDER", "CappedFigure", "ReleaseFacts"]

IN_SECRET_ORDER = "in a secret order"
Number = TypeVar("Number", float, npt.NDArray[np.float64])


@dataclass(frozen=True)
class CappedFigure:
    """One cap, what an attacker has without the release, and what was certified with it.

    Attributes:
        cap: name of the cap.
        meaning: the cap in plain words.
        before: value of the capped quantity without the release.
        limit: highest value that the cap allows.
        certified: certified bound on the value with the release.
    """

    cap: str
    meaning: str
    before: float
    limit: float
    certified: float


@dataclass(frozen=True)
class ReleaseFacts:
    """The fields of a certificate, in the order of its JSON."""

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
    gamma_again: float | None = None  # of `gamma_used`, for those who were looked at again; None: not stated
    noise: str | None = None  # which noise it is and why, in words; None: Gaussian, no other was asked for
    log_det: float | None = None  # what several releases of one secret add up, in nats; None: not stated
    signal: float | None = None  # the same for one person: variances of the answers over those of the noise
    secret_id: str | None = None  # drawn with the plan; equal for releases of one secret
    data_id: str | None = None  # drawn with the plan; equal for releases of one simulation of one data set
    name_the_input_success: float | None = None  # of given inputs: naming the one that was used
    likeliest_input: float | None = None  # the chance of the likeliest of them
    entropy_of_the_prior: float | None = None  # in nats: all that could be told about which it was

    @property
    def is_guarantee(self) -> bool:
        """False for simulations (their seed is known) and for the papers' stopping rule (no confidence)."""
        return self.kind not in ("simulation", "empirical")

    @property
    def sampling_rate(self) -> float:
        """Share of the pool in a world, as a number; under a pool cap, the chance that the person asked about is in."""
        if self.mode == "pool":
            return 0.5
        self._refuse_people()
        numerator, denominator = self.rate.split("/")
        return int(numerator) / int(denominator)

    @property
    def of_inputs(self) -> bool:
        """Whether the secret is one of a list of inputs, with no people in it."""
        return self.mode == "given"

    @property
    def in_rows(self) -> bool:
        """Whether a table was published, each row of which has such a secret."""
        return "published-rows" in self.theorems

    @property
    def in_secret_order(self) -> bool:
        """Whether the rows of such a table are all records of the list, so that the others tell about one of them."""
        return self.in_rows and self.design.endswith(IN_SECRET_ORDER)

    def _refuse_people(self) -> None:
        if self.of_inputs:
            raise InputError("this certificate is about given inputs, and says nothing of people: posterior() holds")

    @property
    def unnoised_directions(self) -> int:
        """Output directions that are equal in all worlds and leave as they are."""
        return self.outputs - self.noised_directions

    @property
    def whoever_is_known(self) -> bool:
        """Whether it holds against attackers who know about everybody else."""
        if self.mode == "pool":
            return True
        return self.mode in ("individual", "confidence") and any(
            known >= self.units - 1 for known, _ in self.known_memberships
        )

    @property
    def in_blocks(self) -> bool:
        """Whether the answer is an average over blocks of people."""
        return "blocks" in self.theorems

    @property
    def of_seeds(self) -> bool:
        """Whether a seed of the function was part of the secret."""
        return "secret-seeds" in self.theorems

    @property
    def on_average_over_the_known(self) -> bool:
        """Whether it holds against them only on average over what they know."""
        return self.whoever_is_known and self.mode == "confidence"

    @property
    def only_one_person(self) -> bool:
        """Whether nothing but the guess about one person is bounded."""
        return self.mode == "pool" or (self.mode == "individual" and not self.whoever_is_known)

    @property
    def gaussian_distance(self) -> float:
        """How far apart two answers are, in noise deviations, with and without a person: mu of Gaussian privacy.

        Rounded up. The same success would follow from two normal laws at this distance.
        """
        return float(2 * ndtri(min(self.membership_success, 1 - 1e-16)) * (1 + 1e-12))

    @property
    def has_partners(self) -> bool:
        """Whether people come in pairs of whom one takes part: known of one, it is known of the other."""
        return self.design.startswith("matched pairs")

    @property
    def colluders(self) -> int:
        """Known memberships at which the certificate ends: they leave about one of the worlds."""
        if self.whoever_is_known:
            return self.units - 1
        if self.mode in ("individual", "given"):
            return 0
        return int(math.log2(self.worlds)) if self.mode == "exact" else self.units

    @proves("leakage-curve")
    def posterior(self, prior: Number) -> Number:
        """Success of the best attacker at any guess that succeeds with probability `prior` without the release.

        Args:
            prior: probability of a right guess without the release, a number or an array.

        Returns:
            The certified bound, in the form of `prior`.

        Raises:
            InputError: `prior` is not a probability.
        """
        p = _probabilities("prior", prior)
        inside = np.clip(p, 1e-300, 1 - 1e-16)
        best = np.minimum(1.0, convert.posterior(self.mutual_information, inside))
        for q, bound in self.leakage_curve:
            # S is concave with S(0) = 0 and S(1) = 1: lines through either end bound it on the far side.
            best = np.minimum(best, np.where(p >= q, bound * p / q, 1 - (1 - p) * (1 - bound) / (1 - q)))
        return _like(prior, np.where((p == 0) | (p == 1), p, np.maximum(p, best)))

    @proves("roc")
    def true_positive_rate(self, fpr: Number) -> Number:
        """Share of participants recognised at a false positive rate, for the most exposed person.

        Args:
            fpr: share of the other people whom the attacker accuses, a number or an array.

        Returns:
            The certified bound, in the form of `fpr`.

        Raises:
            InputError: `fpr` is not a probability.
        """
        self._refuse_people()
        f = _probabilities("fpr", fpr)
        rate = self.sampling_rate
        best = np.minimum(1.0, f + 2 * self.membership_success - 1)
        best = np.minimum(best, convert.true_positive_rate(self.mutual_information, f, rate))
        if self.mode in ("individual", "pool") and self.whoever_is_known and self.noise is None:  # it is Gaussian
            apart, lost = self.gaussian_distance, self.sampler_distance
            best = np.minimum(best, ndtr(ndtri(np.minimum(1.0, f + lost)) + apart) * (1 + 1e-9) + lost)
        for cut, stick in self.hockey_sticks:
            best = np.minimum(best, (cut * (1 - rate) * f + stick) / (rate * (1 - cut)))
        return _like(fpr, np.maximum(f, best))

    @proves("collusion")
    def given(self, known: int) -> float:
        """Membership success of an attacker who knows `known` other memberships, chosen at random.

        Args:
            known: number of other people whose participation the attacker knows.

        Returns:
            The certified bound; 1 where nothing is certified for so many.
        """
        self._refuse_people()
        k = checks.count(at_least=0, known=known)
        if k == 0 or self.mode == "pool":
            return self.membership_success
        if self.mode == "confidence" and self.rate == "1/2" and not self.whoever_is_known:
            # I(X; Y | known) <= I(X; Y); the prior of one more bit grows with the bits that are known.
            free = self.units - k
            if free <= 0:
                return 1.0
            return float(convert.posterior(self.mutual_information, min(1.0, math.ceil(self.units / 2) / free)))
        enough = [success for size, success in self.known_memberships if size >= k]
        return max(self.membership_success, enough[0]) if enough else 1.0


def _probabilities(name: str, value: Any) -> npt.NDArray[np.float64]:
    given = np.asarray(value, dtype=np.float64)
    if not ((given >= 0) & (given <= 1)).all():
        raise InputError(f"{name} must be a probability from 0 to 1")
    return given


def _like(asked: Any, found: npt.NDArray[np.float64]) -> Any:
    """A number for a number, an array for an array."""
    return found if isinstance(asked, np.ndarray) else float(found)
