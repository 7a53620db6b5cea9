"""What a page is made from besides the certificate: the released answer, and what only the custodian may see."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakcap.errors import InputError
from leakcap.ground.arrays import Floats

__all__ = ["Answer", "Custody"]


@dataclass(frozen=True, eq=False)
class Answer:
    """What was released, a row for each output; public side.

    `low` and `high` are the ends of the intervals for the answer on the whole pool, None where there are none.
    """

    title: str
    names: tuple[str, ...]
    values: Floats
    low: Floats | None
    high: Floats | None
    level: float = 0.95
    issuer: str = ""
    data_set: str = ""  # as the custodian calls it
    date: str = ""
    scaled: bool = False  # whether counts and sums of a part are on the scale of the whole pool
    notes: tuple[str, ...] = ()  # what could be misread

    def __post_init__(self) -> None:
        if (self.low is None) != (self.high is None):
            raise InputError("an interval has two ends: give both low and high, or neither")
        ends = [] if self.low is None or self.high is None else [len(self.low), len(self.high)]
        if {len(self.values), *ends} != {len(self.names)}:
            raise InputError("names, values and interval ends must be of one length")


@dataclass(frozen=True, eq=False)
class Custody:
    """What only the custodian may see: every world's answer, the noise and each unit's exposure."""

    exposure: Floats
    outputs: Floats
    noise_deviations: Floats
    noise_covariance: Floats | None
    whole_pool: Floats
    halving: Floats
    noise: Floats
    forecast: str
    cap: float | None

    @property
    def error(self) -> Floats:
        """Root-mean-square error to expect in each output."""
        return np.hypot(self.halving, self.noise)
