"""What `confidence` mode certifies for several outputs, added up anew from the formulas of its proof page."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest

import leakcap as lc
from leakcap.ground.cores import Machine
from leakcap.modes import FreshWorld, NoiseSettings, confidence
from leakcap.worlds import independent_worlds

SETTINGS = NoiseSettings("best", 0.0, "equal", None, Machine(2**28), True, (), ())
UNITS, OUTPUTS, WORLDS, PILOTS, GAMMA = 12, 6, 128, 32, 1e-3


def certified(outputs: np.ndarray) -> tuple[FreshWorld, lc.Certificate]:
    worlds = independent_worlds(UNITS, len(outputs), np.random.default_rng(2))
    caps = (lc.mutual_information(0.5),)
    return confidence.certified(outputs, worlds, caps, SETTINGS, gamma=GAMMA, rerun=None, draw=None)  # type: ignore[arg-type]


def needed(outputs: np.ndarray, made: FreshWorld, distance: float, *, statements: int = OUTPUTS) -> float:
    """Nats that must be certified: a margin on every deviation, all of them right together, and the sampler."""
    space, total = made.noise.space, 0.0
    assert space.directions is not None
    table = np.clip((outputs - space.centre) * space.scale @ space.directions.T, made.low, made.high)
    for column, low, high, noise in zip(table.T, made.low, made.high, made.noise.deviations, strict=True):
        margin = math.sqrt(2 * math.log(statements / GAMMA) / (len(table) - 1))  # Maurer and Pontil, Theorem 10
        deviation = statistics.stdev(column.tolist()) + (high - low) * margin
        total += math.log1p((deviation / noise) ** 2) / 2
    entropy = -distance * math.log(distance) - (1 - distance) * math.log1p(-distance)
    return total + distance * UNITS * math.log(2) + entropy


def test_every_direction_pays_its_margin() -> None:
    outputs = np.random.default_rng(1).standard_normal((WORLDS, OUTPUTS))
    made, certificate = certified(outputs)
    distance = certificate.sampler_distance
    assert made.noise.space.rank == OUTPUTS
    assert certificate.worlds == WORLDS - PILOTS, "pilot worlds have chosen the directions: they are not measured"
    assert distance > 0
    nats = needed(outputs[PILOTS:], made, distance)
    assert certificate.mutual_information == pytest.approx(nats, rel=1e-10)
    # Planted: no union over directions, pilots measured too, no sampler. Each would certify less than is needed.
    for planted in (
        needed(outputs[PILOTS:], made, distance, statements=1),
        needed(outputs, made, distance),
        needed(outputs[PILOTS:], made, 1e-300),
    ):
        assert planted < nats * (1 - 1e-8)
