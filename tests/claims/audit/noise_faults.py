"""Faults of noise and secret, for many releases at once: what the source hands out in the place of honest numbers.

Each takes honest normals `(k, r)`, secrets `(k,)` and a generator, and gives back what a faulty source would draw.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

LAW, SECRET, DRAWS = "law of the noise", "secret", "numbers drawn"


@dataclass(frozen=True)
class Draws:
    """What a source draws for many releases."""

    normals: Any
    secret: Any
    worlds: int
    rng: np.random.Generator


Fault = Callable[[Draws], tuple[Any, Any]]


def of_the_noise(change: Callable[[Any], Any]) -> Fault:
    return lambda drawn: (change(drawn.normals.copy()), drawn.secret)


def last(function: Callable[[Any], Any]) -> Fault:
    """The last number follows from the others."""

    def change(normals: Any) -> Any:
        normals[:, -1] = function(normals[:, :-1])
        return normals

    return of_the_noise(change)


def modulo(others: Any) -> Any:
    """Independent of each of the others, and of no two of them."""
    total = special.ndtr(others[:, 0]) + special.ndtr(others[:, 1])
    return special.ndtri(np.clip(total % 1, 1e-12, 1 - 1e-12))


def redrawn(limit: float) -> Fault:
    def fault(drawn: Draws) -> tuple[Any, Any]:
        normals = drawn.normals.copy()
        while (beyond := np.abs(normals) > limit).any():
            normals[beyond] = drawn.rng.standard_normal(int(beyond.sum()))
        return normals, drawn.secret

    return fault


def often(world: int, more: float) -> Fault:
    def fault(drawn: Draws) -> tuple[Any, Any]:
        return drawn.normals, np.where(drawn.rng.random(len(drawn.secret)) < more, world, drawn.secret)

    return fault


def counted(drawn: Draws) -> tuple[Any, Any]:
    """Every world as often as any other, one after another."""
    return drawn.normals, np.arange(len(drawn.secret)) % drawn.worlds


def laplace(drawn: Draws) -> tuple[Any, Any]:
    return drawn.rng.laplace(scale=np.sqrt(0.5), size=drawn.normals.shape), drawn.secret


def student(drawn: Draws) -> tuple[Any, Any]:
    return drawn.rng.standard_t(8, size=drawn.normals.shape) * np.sqrt(6 / 8), drawn.secret


def of_one_size(drawn: Draws) -> tuple[Any, Any]:
    """Numbers of a release that grow and shrink together; the covariance is right."""
    both = np.array([0.8, np.sqrt(2 - 0.8**2)])
    return drawn.normals * both[drawn.rng.integers(2, size=len(drawn.normals))][:, None], drawn.secret


def by_the_world(drawn: Draws) -> tuple[Any, Any]:
    """A tenth more noise in half of the worlds, a tenth less in the others: those of one person, if these are first."""
    return drawn.normals * np.where(drawn.secret < drawn.worlds // 2, 1.1, 0.9)[:, None], drawn.secret


def every_tenth(normals: Any) -> Any:
    normals[::10] = normals[0]
    return normals


def following(normals: Any) -> Any:
    """A tenth of the release before."""
    normals[1:] = 0.1 * normals[:-1] + np.sqrt(0.99) * normals[1:]
    return normals


def by_the_second(drawn: Draws) -> tuple[Any, Any]:
    """A generator that is seeded by the clock, with some releases in each second."""
    second = np.arange(len(drawn.secret)) // 25 * 25
    return drawn.normals[second], drawn.secret[second]


def swapped(drawn: Draws) -> tuple[Any, Any]:
    """Two directions with the sizes of each other, a tenth apart."""
    normals = drawn.normals.copy()
    normals[:, :2] *= np.array([1.1, 1 / 1.1])
    return normals, drawn.secret


def coarse(drawn: Draws) -> tuple[Any, Any]:
    """From 24 random bits each, by the quantile function."""
    bits = drawn.rng.integers(2**24, size=drawn.normals.shape)
    return special.ndtri((bits + 0.5) / 2**24), drawn.secret


# Those that were named first; then others.
FAULTS: dict[str, tuple[Fault, str]] = {
    "the last number is a square of the first": (last(lambda others: (others[:, 0] ** 2 - 1) / np.sqrt(2)), LAW),
    "world 0 comes 1 % too often": (often(0, 0.01), SECRET),
    "normals in single precision": (of_the_noise(lambda normals: normals.astype(np.float32).astype(float)), DRAWS),
    "cut at 2.5 deviations": (of_the_noise(lambda normals: np.clip(normals, -2.5, 2.5)), LAW),
    "redrawn beyond 2.5 deviations": (redrawn(2.5), LAW),
    "cut at 4 deviations": (of_the_noise(lambda normals: np.clip(normals, -4, 4)), LAW),
    "redrawn beyond 4 deviations": (redrawn(4.0), LAW),
    "the last number is a product of two": (last(lambda others: others[:, 0] * others[:, 1]), LAW),
    "the last number is a sum of two, modulo one": (last(modulo), LAW),
    "Laplace noise of the right size": (laplace, LAW),
    "Student noise of the right size": (student, LAW),
    "sizes of all numbers of a release go together": (of_one_size, LAW),
    "the size tells the world": (by_the_world, LAW),
    "two directions swapped": (swapped, LAW),
    "one noise vector for every tenth release": (of_the_noise(every_tenth), LAW),
    "noise that follows the release before": (of_the_noise(following), LAW),
    "a mean of a twentieth of a deviation": (of_the_noise(lambda normals: normals + 0.05), LAW),
    "seeded by the clock": (by_the_second, DRAWS),
    "worlds one after another": (counted, SECRET),
    "a world is never drawn": (lambda drawn: (drawn.normals, np.maximum(drawn.secret, 1)), SECRET),
    "numbers of 24 bits": (coarse, DRAWS),
}
# Those that 5,000 releases do not show for sure; all others show in them with p-values below 1e-20.
SUBTLE = (
    "a mean of a twentieth of a deviation",
    "noise that follows the release before",
    "sizes of all numbers of a release go together",
    "world 0 comes 1 % too often",
)
LARGE = ("cut at 4 deviations", "redrawn beyond 4 deviations")  # need the numbers of a default audit
