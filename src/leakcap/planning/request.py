"""All that a plan is, apart from the function and the data: it can be stored, and gives the same plan again."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap import modes
from leakcap.caps import Cap
from leakcap.errors import InputError, OutputError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats
from leakcap.leakage.certify import seconds_to_certify
from leakcap.leakage.measures import needs
from leakcap.leakage.swaps import possible_swaps
from leakcap.simulate import Node, Outputs
from leakcap.worlds import Worlds, crowded_bits, draw_worlds, given_worlds, independent_worlds
from leakcap.worlds.central import Central
from leakcap.worlds.matched import Matched

__all__ = ["Request", "digest", "stream"]

MIN_FORECAST_CELLS = 2**16  # units times worlds; below, a certificate takes a second or two


def stream(entropy: int, *number: int) -> np.random.Generator:
    """One of many generators for what the attacker may know: simulated worlds (0), certifying draws (1 and up).

    Blocks of worlds have (0, 0), (0, 1) and so on, the search after each of them (1, 0), (1, 1) and so on.
    """
    return np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=number))


@dataclass(frozen=True, eq=False)
class Request:
    """What is asked of a pool of `units`, and how it is to be certified."""

    caps: tuple[Cap, ...]
    units: int
    worlds: int | str | npt.NDArray[np.bool_]  # text: they are doubled
    rate: float
    strata: npt.NDArray[np.intp] | None  # a number for each unit
    mode: str
    gamma: float
    clip: Any
    settings: modes.NoiseSettings
    seed: int | None
    design: str = "worlds"
    scale: float | tuple[float, ...] = 1.0  # from a part of the pool to all of it (sums, counts); each of several parts
    drawing: Matched | Central | None = None  # what draws the worlds of a design that looks at the pool

    @property
    def grows(self) -> bool:
        """Whether the number of worlds is open."""
        return isinstance(self.worlds, str)

    def possible(self, entropy: int) -> Worlds:
        """The worlds; the same for the same entropy."""
        if isinstance(self.worlds, int):
            # Sums over people do not make their figures of worlds.
            few = self.mode == "exact" or (self.mode == "individual" and self.design == "bits")
            checks.count(at_least=2 if few else 64, worlds=self.worlds)
            if self.drawing is not None:
                return self.drawing.draw(self.worlds, stream(entropy, 0))
            if self.design == "bits" and self.mode == "confidence":
                return crowded_bits(self.units, self.worlds, stream(entropy, 0))
            make = draw_worlds if self.mode == "exact" else independent_worlds
            return make(self.units, self.worlds, stream(entropy, 0), self.rate, strata=self.strata)
        assert not isinstance(self.worlds, str)
        if self.mode != "exact" or self.strata is not None or self.rate != 0.5:
            raise InputError("worlds given as an array need mode='exact', and neither rate nor strata")
        return given_worlds(self.worlds, self.units)

    def refuse_impossible_caps(self, worlds: Worlds) -> None:
        """Before anything long starts."""
        if self.mode == "exact":
            needs(self.caps, worlds)
        elif self.mode == "individual" and self.design == "bits":
            modes.refuse_other_caps(self.caps, worlds.rate)
        elif self.mode == "individual":
            modes.membership_caps(self.caps, worlds.rate)
            possible_swaps(worlds.n, worlds.share, self.strata)
        else:
            modes.budget_for(self.caps, worlds)

    def seconds_to_certify(self, worlds: Worlds) -> float:
        """A forecast, where it is worth its own time."""
        if self.mode != "exact" or worlds.n * worlds.m < MIN_FORECAST_CELLS:
            return 0.0
        return seconds_to_certify(worlds, self.settings.draws, self.settings.machine)

    def limits(self, d: int) -> tuple[Floats, Floats] | None:
        """What every output is clipped to."""
        if self.clip is None:
            return None
        try:
            low, high = (np.broadcast_to(np.asarray(end, dtype=np.float64).ravel(), (d,)) for end in self.clip)
        except (TypeError, ValueError):
            raise InputError(f"clip must be (low, high): numbers, or one for each of the {d} outputs") from None
        if not (np.isfinite(low).all() and np.isfinite(high).all() and (low <= high).all()):
            raise InputError("clip must be finite, with low at or below high")
        return low, high

    def usable(self, simulation: Outputs) -> Outputs:
        """The outputs, on the scale of the whole pool, clipped and finite."""
        if self.scale != 1:
            simulation = replace(simulation, table=simulation.table * self.scales(simulation.node))
        simulation = _clipped(simulation, self.limits(simulation.table.shape[1]))
        lost = np.flatnonzero(~np.isfinite(simulation.table).all(axis=1))
        if len(lost):
            raise OutputError(
                f"some numbers are NaN or infinite in {len(lost)} of {len(simulation.table)} worlds, first in world "
                f"{lost[0] + 1}. A failure that depends on who takes part is "
                "an output too: map it to a fixed value inside your function (np.nan_to_num, a prior); infinite "
                "numbers can be bounded with clip=(low, high)"
            )
        return simulation

    def scales(self, node: Node) -> float | Floats:
        """The factor of every output."""
        if not isinstance(self.scale, tuple):
            return self.scale
        sizes = [part.size() for _, part in node.children()]
        return np.repeat(np.asarray(self.scale), sizes)

    def pool_public(self, simulation: Outputs) -> tuple[str, ...]:
        """What is pool-public in this plan and not in every other."""
        lines = [*self.settings.pool_public, *modes.designed.POOL_PUBLIC.get(self.design, ())]
        lines += _constants(simulation.node)
        if simulation.start is not None:
            lines.append("Given to the function in every world, to start from: its own answer on the whole pool.")
        if self.grows:
            lines.append("The number of worlds: it was chosen by looking at the answers in all of them.")
        return tuple(lines)

    @property
    def not_promised(self) -> tuple[str, ...]:
        """What is lost in this plan beside one whose worlds are drawn at random."""
        given = isinstance(self.worlds, np.ndarray)
        return modes.designed.NOT_PROMISED.get("given" if given else self.design, ())


def digest(worlds: Worlds) -> str:
    """Tells whether worlds that were drawn again are the same."""
    return hashlib.sha256(np.ascontiguousarray(worlds.packed).view(np.uint8).data).hexdigest()


def _clipped(simulation: Outputs, limits: tuple[Floats, Floats] | None) -> Outputs:
    if limits is None:
        return simulation
    whole = simulation.whole_pool
    return replace(
        simulation,
        table=np.clip(simulation.table, *limits),
        whole_pool=None if whole is None else np.clip(whole, *limits),
    )


def _constants(node: Node) -> tuple[str, ...]:
    names = sorted({path.rsplit(".", 1)[-1] for path in node.constants() if "." in path and not path.endswith("]")})
    if not names:
        return ()
    return ("Passed into the answer because it is equal in all worlds: " + ", ".join(names) + ".",)
