"""Which noise (`mechanism=`): Gaussian, exponential, or the one of the two that needs less of it, with the reason.

Sums over people can be released with either; a mode says how to certify one law of noise, and this file asks it for one
or for both.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from leakcap.certificates.release import Certificate
from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.modes.interface import Releaser
from leakcap.noise import Exponential, LawOf
from leakcap.noise.laws import normal

__all__ = ["MECHANISMS", "by_mechanism", "refuse_mechanism"]

MECHANISMS = ("gaussian", "exponential", "auto")
GAUSSIAN_WORDS = "Gaussian noise"
EXPONENTIAL_WORDS = "Exponential noise: of a density that falls like exp(-|x|/s), its length Gamma-distributed"
NO_NOISE = "None is needed: the answer does not depend on who takes part."

Made = TypeVar("Made", bound=Releaser)
Certified = tuple[Made, Certificate]


def refuse_mechanism(mechanism: str, mode: str, floor: float) -> None:
    """An InputError for a word that is none, and for noise that there is no proof for."""
    checks.choice(MECHANISMS, mechanism=mechanism)
    if mechanism != "gaussian" and mode != "individual":
        raise InputError(
            f"mechanism={mechanism!r} is for sums over people, mode='individual' and design='bits': mode={mode!r} is "
            "proved for Gaussian noise alone. Leave mechanism out, or choose one of these two"
        )
    if mechanism != "gaussian" and floor:
        raise InputError(
            f"a floor is Gaussian noise beside the other, and mechanism={mechanism!r} has no proof for the two "
            "together: leave floor out, or mechanism"
        )


def by_mechanism(mechanism: str, certified: Callable[[LawOf], Certified[Made]]) -> Certified[Made]:
    """What `certified` gives for the law of noise that was asked for; of "auto", the one of less noise in all."""
    if mechanism == "gaussian":
        return certified(normal)
    releaser, certificate = certified(Exponential)
    size = _size(releaser)
    if not size:
        return releaser, replace(certificate, noise=NO_NOISE)
    if mechanism == "exponential":
        return releaser, _with_words(certificate, f"{EXPONENTIAL_WORDS}. It was asked for.")
    other, by_normal = certified(normal)
    ratio = size / _size(other)
    if ratio < 1:
        why = f"{GAUSSIAN_WORDS} would have to be {_digits(1 / ratio)} times as large in all for the same promise."
        return releaser, _with_words(certificate, f"{EXPONENTIAL_WORDS}. {why}")
    why = f"Exponential noise would have to be {_digits(ratio)} times as large in all for the same promise."
    return other, replace(by_normal, noise=f"{GAUSSIAN_WORDS}. {why}")


def _with_words(certificate: Certificate, words: str) -> Certificate:
    return replace(certificate, noise=words, theorems=(*certificate.theorems, "exponential"))


def _size(releaser: Releaser) -> float:
    """Root of the sum of variances over all coordinates, in weighted outputs."""
    return math.sqrt(float((releaser.noise.deviations**2).sum()))


def _digits(ratio: float) -> str:
    return f"{ratio:.3g}"
