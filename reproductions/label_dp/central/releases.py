"""The only place of this folder that reads labels: noised sums, labels one by one, and a noised count of right ones.

Each call spends epsilon. (Where runs are judged on test pictures, `ladder.py` looks at true labels for the custodian.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr

import leakcap as lc
from leakcap.certificates.labels import LabelCertificate
from leakcap.errors import InputError
from leakcap.labels.mechanisms.classes import Classes
from leakcap.labels.mechanisms.gaussian import least_sigma
from leakcap.labels.statistics.grid_noise import LEAST_DEVIATION, GridNoise
from leakcap.labels.statistics.sums import calibrated

Floats = npt.NDArray[np.floating[Any]]
Whole = npt.NDArray[np.int64]

ARITHMETIC = 0.01  # of delta, kept for the arithmetic of two sums


@dataclass(frozen=True)
class Sums:
    """Noised sums of features by class: what they cost, how frequent they say the classes are, and a model.

    `sigma`: deviation of the noise in row lengths. `distance`: total variation to ideal noise. `model` is not kept in
    files: what it said is in the network that learned from it.
    """

    certificate: LabelCertificate
    sigma: float
    distance: float
    shares: Floats
    model: Any = None

    @classmethod
    def of(cls, seen: Floats, labels: Whole, epsilon: float, **settings: Any) -> Sums:
        """Sums of these rows; `settings` are those of `lc.labels.Ridge`."""
        model = lc.labels.Ridge(epsilon, **settings).fit(seen, labels)
        columns = len(model.components_.values) + 1
        used = calibrated(epsilon, model.delta, Classes(model.n_classes, None), rows=len(labels), columns=columns)
        facts = dict(model.certificate_.settings)
        if facts["sigma"] != used.sigma:
            raise AssertionError("the mechanism of the certificate is another one")
        shares = np.asarray(model.intercept_, dtype=np.float32)
        return cls(model.certificate_, used.sigma, used.distance, shares, model)

    def chances(self, seen: Floats) -> Floats:
        return np.asarray(self.model.predict_proba(seen), dtype=np.float32)

    def to_record(self) -> dict[str, Any]:
        """All but the model, as JSON holds it."""
        rest = {"sigma": self.sigma, "distance": self.distance, "shares": self.shares.tolist()}
        return {"certificate": self.certificate.to_json(), **rest}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Sums:
        certificate = LabelCertificate.from_json(record["certificate"])
        return cls(certificate, record["sigma"], record["distance"], np.asarray(record["shares"], dtype=np.float32))


def spent(parts: Sequence[Sums], delta: float) -> float:
    """The epsilon of several sums over the same labels together, at this delta.

    Gaussian releases of one label, each moving by sqrt 2 row lengths at noise `sigma`, are together one Gaussian
    release whose squared shift is the sum. Arithmetic is paid from delta: `(1 + e^epsilon)` times the total variation.
    """
    shift = math.sqrt(sum(2 / part.sigma**2 for part in parts))
    distance = sum(part.distance for part in parts)

    def excess(epsilon: float) -> float:
        ideal = ndtr(shift / 2 - epsilon / shift) - np.exp(epsilon + log_ndtr(-shift / 2 - epsilon / shift))
        return float(ideal + (1 + math.exp(epsilon)) * distance) - delta

    return float(brentq(excess, 0.0, 10.0)) * (1 + 1e-9)


def further_epsilon(before: Sequence[Sums], epsilon: float, delta: float) -> float:
    """What further sums may cost by themselves if they and those before are to stay within epsilon together."""
    whole = 1 / least_sigma(epsilon, (1 - ARITHMETIC) * delta)
    left = whole**2 - sum(part.sigma**-2 for part in before)
    if left <= 0:
        raise InputError("the sums before have spent all of epsilon: ask for a larger one")
    sigma = left**-0.5

    def excess(log_epsilon: float) -> float:
        return least_sigma(math.exp(log_epsilon), delta) - sigma

    return math.exp(brentq(excess, math.log(1e-4), math.log(epsilon)))


def noised_share(right: npt.NDArray[np.bool_], epsilon: float, delta: float) -> tuple[float, float]:
    """A noised share of right predictions, and the deviation of its noise. Spends epsilon of every label judged by.

    A label moves the count by 1 at most. Of delta, one half is the ideal noise's and the other pays for arithmetic.
    """
    sigma = least_sigma(epsilon, delta / 2) / math.sqrt(2)  # which is for labels that move sums by the root of 2
    steps = max(1, math.ceil(LEAST_DEVIATION / sigma))
    noise = GridNoise(sigma * steps)
    if noise.distance(1) * (1 + math.exp(epsilon)) > delta / 2:
        raise InputError("arithmetic would cost more than half of delta: raise delta")
    return float((right.sum() * steps + noise.draw(1)[0]) / steps / len(right)), sigma / len(right)


def likely(chances: Floats, flatten: float = 0.5) -> Floats:
    """A prior that never takes one class for granted: flattened, and its largest entry no larger than the second.

    With it, randomised response always chooses among two classes at least. A prediction is often surer than right.
    """
    flat = np.power(np.maximum(chances.astype(np.float64), 1e-12), flatten)
    second = np.sort(flat, axis=1)[:, -2:-1]
    flat = np.minimum(flat, second)
    return np.asarray(flat / flat.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class Responses:
    """Labels privatised one by one: log-likelihoods of what was observed, and the certificate of this run alone."""

    scores: npt.NDArray[np.float32]
    certificate: Any
    classes_on_average: float

    @classmethod
    def of(cls, chances: Floats, labels: Whole, epsilon: float) -> Responses:
        """Each label among the classes that `chances`, made without it or from earlier releases, holds likely."""
        mechanism = lc.labels.RRWithPrior(epsilon, likely(chances))
        scores = np.asarray(mechanism.scores(mechanism.privatize(labels)), dtype=np.float32)
        return cls(scores, mechanism.certificate(len(labels)), float(mechanism.sizes.mean()))

    def among_likely(self) -> npt.NDArray[np.float32]:
        """The same, where a class held unlikely explains an observation no better than a likely one not observed.

        By the mechanism alone it would do better: a label outside becomes any likely class. A network that forgets
        what it knew then explains everything by unlikely classes. Choosing less favourable odds costs no privacy.
        """
        return np.where(self.scores >= self.scores.max(1, keepdims=True), self.scores, 0).astype(np.float32)
