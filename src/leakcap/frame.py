"""All that a plan is, apart from the function and the data: it can be stored, and gives the same plan again."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from leakcap import checks, modes
from leakcap.caps import Cap
from leakcap.certificate import Certificate
from leakcap.errors import InputError, OutputError
from leakcap.kernels.contributions import Contributions
from leakcap.leakage.adjacent import possible_swaps
from leakcap.leakage.certify import seconds_to_certify
from leakcap.leakage.confidence import Attempts
from leakcap.leakage.measures import needs
from leakcap.modes.record import Draw, Rerun
from leakcap.noise import OperatingSystem, Randomness, Seeded, subspace
from leakcap.noise.calibrate import TRIES, Calibrated
from leakcap.releases import Plan, Token
from leakcap.simulate import Node, Outputs, Progress
from leakcap.simulate.checkpoint import Checkpoint
from leakcap.simulate.identity import fingerprint
from leakcap.simulate.progress import Watcher
from leakcap.version import __version__
from leakcap.worlds import Worlds, draw_worlds, given_worlds, independent_worlds

__all__ = ["Frame", "digest", "stream"]

Floats = npt.NDArray[np.float64]
Certifier: TypeAlias = Callable[[tuple[Cap, ...]], tuple[modes.Mechanism, Certificate]]
WORTH_A_FORECAST = 2**22  # units times worlds; below, a certificate takes seconds


def stream(entropy: int, *number: int) -> np.random.Generator:
    """One of many generators for what the attacker may know: simulated worlds (0), certifying draws (1 and up).

    Blocks of worlds have (0, 0), (0, 1) and so on, the search after each of them (1, 0), (1, 1) and so on.
    """
    return np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=number))


@dataclass(frozen=True, eq=False)
class Frame:
    """What is asked of a pool of `units`, and how it is to be certified."""

    caps: tuple[Cap, ...]
    units: int
    worlds: int | str | npt.NDArray[np.bool_]  # text: "auto"
    rate: float
    strata: npt.NDArray[np.intp] | None  # a number for each unit
    mode: str
    gamma: float
    clip: Any
    settings: modes.Settings
    seed: int | None

    @property
    def grows(self) -> bool:
        """Whether the number of worlds is open."""
        return isinstance(self.worlds, str)

    def possible(self, entropy: int) -> Worlds:
        """The worlds; the same for the same entropy."""
        if isinstance(self.worlds, int):
            checks.count(at_least=2 if self.mode == "exact" else 64, worlds=self.worlds)
            make = draw_worlds if self.mode == "exact" else independent_worlds
            return make(self.units, self.worlds, stream(entropy, 0), self.rate, self.strata)
        assert not isinstance(self.worlds, str)
        if self.mode != "exact" or self.strata is not None or self.rate != 0.5:
            raise InputError("worlds given as an array need mode='exact', and neither rate nor strata")
        return given_worlds(self.worlds, self.units)

    def refuse_impossible_caps(self, worlds: Worlds) -> None:
        """Before anything long starts."""
        if self.mode == "exact":
            needs(self.caps, worlds)
        elif self.mode == "individual":
            modes.membership_caps(self.caps, worlds.rate)
            possible_swaps(worlds.n, worlds.share, self.strata)
        else:
            modes.budget_for(self.caps, worlds)

    def seconds_to_certify(self, worlds: Worlds) -> float:
        """A forecast, where it is worth its own time."""
        if self.mode != "exact" or worlds.n * worlds.m < WORTH_A_FORECAST:
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
        """The outputs, clipped and finite."""
        simulation = _clipped(simulation, self.limits(simulation.table.shape[1]))
        if not np.isfinite(simulation.table).all():
            raise OutputError(
                "some numbers are NaN or infinite in some worlds. A failure that depends on who takes part is "
                "an output too: map it to a fixed value inside your function (np.nan_to_num, a prior); infinite "
                "numbers can be bounded with clip=(low, high)"
            )
        return simulation

    def _in_words(self, simulation: Outputs) -> tuple[str, ...]:
        """What is pool-public in this plan and not in every other."""
        found = [*self.settings.pool_public, *_constants(simulation.node)]
        if simulation.start is not None:
            found.append("Given to the function in every world, to start from: its own answer on the whole pool.")
        if self.grows:
            found.append("The number of worlds: it was chosen by looking at the answers in all of them.")
        return tuple(found)

    def certified(
        self,
        simulation: Outputs,
        worlds: Worlds,
        entropy: int,
        token: Token,
        checkpoint: Checkpoint | None,
        rerun: Rerun,
        draw: Draw,
        watch: Watcher,
        recompute: bool = False,
        brings: Contributions | None = None,
    ) -> Plan:
        """The plan for these outputs; `recompute` trusts no noise and no figure that the checkpoint has stored."""
        simulation = self.usable(simulation)
        settings = replace(self.settings, pool_public=self._in_words(simulation))
        if self.mode == "individual":
            again = self._individual(simulation, worlds, settings, draw, brings)
        else:
            again = self._certifier(simulation, worlds, settings, entropy, checkpoint, rerun, draw, watch, recompute)
        mechanism, certificate = again(self.caps)
        randomness: Randomness = OperatingSystem() if self.seed is None else Seeded(self.seed)
        return Plan(simulation, worlds, mechanism, certificate, again, randomness, token, checkpoint, self.caps)

    def _individual(
        self, simulation: Outputs, worlds: Worlds, settings: modes.Settings, draw: Draw, brings: Contributions | None
    ) -> Certifier:
        """The same for one person and all subsets: the simulated worlds only tell what halving costs."""
        if brings is None:
            raise InputError("mode='individual' needs the data again: call plan() with them and this checkpoint")
        brings.check(simulation.table, worlds)
        return lambda caps: modes.individual(brings, worlds, self.strata, caps, settings, draw)

    def _certifier(
        self,
        simulation: Outputs,
        worlds: Worlds,
        settings: modes.Settings,
        entropy: int,
        checkpoint: Checkpoint | None,
        rerun: Rerun,
        draw: Draw,
        watch: Watcher,
        recompute: bool,
    ) -> Certifier:
        """From caps to noise and certificate, as often as the plan is recapped."""
        table = simulation.table
        if self.mode == "confidence":
            return lambda caps: modes.confidence(table, worlds, caps, self.gamma, settings, rerun, draw)
        if self.mode == "empirical":
            return lambda caps: modes.empirical(table, worlds, caps, settings, rerun, draw)
        space = subspace(table, settings.weights, settings.machine.memory)
        attempts = Attempts(self.gamma)

        def again(caps: tuple[Cap, ...]) -> tuple[modes.Mechanism, Certificate]:
            tried, remember = attempts, _anew
            if checkpoint:
                # Across processes every list of caps has attempts of its own, so that resuming draws the same draws.
                with checkpoint.alone(patience=10):
                    place = checkpoint.place(fingerprint(caps))
                tried = Attempts(self.gamma, TRIES * place)
                if not recompute:
                    remember = _Memory(checkpoint, f"noise-{place}", fingerprint(space.coordinates, __version__))
            told = _Stages(watch, simulation)
            told.searching()
            rng = stream(entropy, 1 + tried.made)
            return modes.exact(space, worlds, caps, tried, rng, settings, told, remember)

        return again


def _anew(compute: Callable[[], Calibrated]) -> Calibrated:
    return compute()


@dataclass(frozen=True)
class _Memory:
    """Keeps a calibration in the checkpoint; it counts only for the very coordinates that it was made for."""

    checkpoint: Checkpoint
    name: str
    coordinates: str

    def __call__(self, compute: Callable[[], Calibrated]) -> Calibrated:
        coordinates, found = self.checkpoint.kept(self.name) or ("", None)
        if found is None or coordinates != self.coordinates:
            found = compute()
            self.checkpoint.keep(self.name, (self.coordinates, found))
        return found


class _Stages:
    """Tells how far the search and the certificate are."""

    def __init__(self, watch: Watcher, simulation: Outputs) -> None:
        self._watch, self._forecast = watch, simulation.forecast
        self._behind, self._since = 0.0, 0.0

    def searching(self) -> None:
        self._watch(Progress(0, 0, 0.0, self._forecast, stage="noise"))

    def __call__(self, share: float) -> None:
        """A share of the certifying pass is done; a smaller one than before means that a new attempt has begun."""
        now = time.perf_counter()
        if share < self._behind or not self._since:
            self._since = now
        self._behind = share
        self._watch(Progress(int(100 * share), 100, now - self._since, self._forecast, stage="certificate"))


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
