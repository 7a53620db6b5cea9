"""From caps to noise and certificate, for answers that are there: as often as a plan is recapped."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias, TypeVar

import numpy as np

from leakcap import modes
from leakcap.caps import Cap
from leakcap.certificates.ids import DrawnIds
from leakcap.certificates.release import Certificate
from leakcap.custody.checkpoint import Checkpoint
from leakcap.custody.fingerprint import fingerprint
from leakcap.errors import InputError
from leakcap.kernels.blocks import InBlocks
from leakcap.kernels.bounded import Bounded
from leakcap.kernels.contributions import Contributions
from leakcap.leakage.confidence import Attempts
from leakcap.modes.interface import Draw, Rerun
from leakcap.modes.mechanism import by_mechanism
from leakcap.modes.seeds import SeededRerun
from leakcap.noise import subspace
from leakcap.noise.calibrate import MAX_ATTEMPTS, Calibrated, Chooser
from leakcap.noise.search import Goal
from leakcap.planning.charged import Charged
from leakcap.planning.finishing import Finishing
from leakcap.planning.released import Token
from leakcap.planning.request import Request, stream
from leakcap.simulate import Node, Outputs, Progress
from leakcap.simulate.progress import Watcher
from leakcap.version import __version__
from leakcap.worlds import Worlds

__all__ = ["Certifier", "ExactCertifier", "GivenCertifier", "Run", "SownAnswers", "certifier"]

Found = TypeVar("Found", bound=modes.Releaser)
StatedNoise: TypeAlias = tuple[modes.OneOfTheWorlds, Certificate]
Certifier: TypeAlias = Callable[[tuple[Cap, ...]], tuple[modes.Releaser, Certificate]]


@dataclass(frozen=True, eq=False)
class SownAnswers:
    """Answers to several seeds in pairs of worlds, and the answer in one more world to one more seed."""

    pairs: modes.SeededPairs
    rerun: SeededRerun
    rerun_of_part: Callable[..., SeededRerun]  # of one of several functions: its number, its columns and its form

    def part(self, number: int, columns: slice, node: Node) -> SownAnswers:
        """Those of one of several functions, which has a seed of its own."""
        own = modes.SeededPairs(
            np.ascontiguousarray(self.pairs.pilot[..., columns]),
            np.ascontiguousarray(self.pairs.measured[..., columns]),
        )
        return replace(self, pairs=own, rerun=self.rerun_of_part(number, columns=columns, node=node))


@dataclass(frozen=True, eq=False)
class Run:
    """A request that was simulated: answers in all worlds, and all it takes to certify and to release; custodian side.

    `recompute` trusts neither noise nor figures that the checkpoint has stored.
    """

    simulation: Outputs
    worlds: Worlds
    entropy: int
    token: Token
    checkpoint: Checkpoint | None
    rerun: Rerun
    draw: Draw
    watch: Watcher
    brings: Contributions | Bounded | InBlocks | None = None  # what each unit adds to a mean or a sum
    charged: Charged | None = None  # the account that a release is charged to
    recompute: bool = False
    seconds: float = 0.0  # that all of it took, compiling included
    design: str = "worlds"
    finishing: Finishing | None = None  # what is made of released sums
    swapped: modes.Swapped | None = None  # answers after swaps, of functions that are no sum
    alike: bool = False  # any function, for one person: by the worlds that were simulated
    ids: DrawnIds | None = None  # of the secret and of the data; simulations have none
    request: Request | None = None  # what was simulated, for plans of its parts
    sown: SownAnswers | None = None  # answers with several seeds each, where the seed is secret, too


def certifier(request: Request, run: Run) -> Certifier:
    """From caps to noise and certificate, in the mode that was asked for."""
    certify = _certifier_of_mode(request, run)
    if run.ids is None or isinstance(certify, FiniteGame):  # these state their ids themselves
        return certify
    return lambda caps: _identified(run, *certify(caps))


def _identified(run: Run, releaser: Found, certificate: Certificate) -> tuple[Found, Certificate]:
    """With the ids of the secret and of the data."""
    ids = run.ids
    if ids is None:
        return releaser, certificate
    return releaser, replace(certificate, secret_id=ids.secret, data_id=ids.data)


def _certifier_of_mode(request: Request, run: Run) -> Certifier:
    settings = replace(
        request.settings,
        pool_public=request.pool_public(run.simulation),
        not_promised=request.not_promised,
    )
    if request.mode == "pool":
        bounded = run.brings
        if not isinstance(bounded, Bounded):
            raise InputError("a pool cap needs the data again: call plan() with them and this checkpoint")
        return lambda caps: modes.pool.certified(bounded, caps, settings)
    if request.mode == "individual":
        return _individual(request, run, settings)
    if request.mode == "given":
        return GivenCertifier(request, run, settings)
    if request.mode == "exact":
        return ExactCertifier(request, run, settings)
    table, worlds = run.simulation.table, run.worlds
    if run.sown is not None:
        found, rerun = modes.seeds.measured(run.sown.pairs, settings, request.gamma), run.sown.rerun
        return lambda caps: modes.seeds.certified(found, worlds, caps, settings, rerun=rerun, draw=run.draw)
    if request.mode == "empirical":
        return lambda caps: modes.empirical.certified(table, worlds, caps, settings, rerun=run.rerun, draw=run.draw)
    confident = modes.any_bits.certified if request.design == "bits" else modes.confidence.certified
    return lambda caps: confident(table, worlds, caps, settings, gamma=request.gamma, rerun=run.rerun, draw=run.draw)


def _individual(request: Request, run: Run, settings: modes.NoiseSettings) -> Certifier:
    """For one person and all subsets: the simulated worlds only tell what halving costs."""
    brings = run.brings
    if run.swapped is not None or run.alike:
        return _sampled(request, run, settings)
    if isinstance(brings, InBlocks):
        blocks = brings
        return lambda caps: modes.blocks.certified(blocks, run.worlds, caps, settings, draw=run.draw)
    if not isinstance(brings, Contributions):
        raise InputError("mode='individual' needs the data again: call plan() with them and this checkpoint")
    way: Callable[..., tuple[modes.Releaser, Certificate]]
    if request.design == "bits":
        way = partial(modes.bits.certified, draw=run.draw)
    else:
        brings.check(run.simulation.table, run.worlds)
        way = partial(modes.individual.certified, strata=request.strata, draw=run.draw)

    def certified(caps: tuple[Cap, ...]) -> tuple[modes.Releaser, Certificate]:
        by_law = partial(way, brings, run.worlds, caps, settings)
        return by_mechanism(settings.mechanism, lambda law_of: by_law(law_of=law_of))

    return certified


def _sampled(request: Request, run: Run, settings: modes.NoiseSettings) -> Certifier:
    """Every attempt at certifying, of recaps too, has draws and a share of gamma of its own."""
    shared, lock = Attempts(request.gamma), threading.Lock()
    certify = modes.drawn_alike.certified
    if run.swapped is not None:
        certify = partial(modes.swapped.certified, swapped=run.swapped)

    def certified(caps: tuple[Cap, ...]) -> tuple[modes.Releaser, Certificate]:
        with lock:
            return certify(
                run.simulation.table,
                run.worlds,
                caps,
                settings,
                attempts=_own_attempts(run, caps, shared, modes.swapped.MAX_ATTEMPTS),
                seeds=lambda *number: np.random.SeedSequence(run.entropy, spawn_key=number),
                rerun=run.rerun,
                draw=run.draw,
            )

    return certified


def _own_attempts(run: Run, caps: tuple[Cap, ...], shared: Attempts, most: int) -> Attempts:
    """Across processes every list of caps has attempts of its own, so that resuming draws the same draws."""
    if run.checkpoint is None:
        return shared
    with run.checkpoint.alone(patience=10):
        return Attempts(shared.gamma, most * run.checkpoint.place(fingerprint(caps)))


class FiniteGame:
    """Certifies a list of worlds or inputs: whatever is asked of it, one failure probability is shared out."""

    def __init__(self, request: Request, run: Run, settings: modes.NoiseSettings) -> None:
        self.run, self.settings = run, settings
        self.space = subspace(run.simulation.table, settings.weights, settings.machine.memory, run.worlds.shares)
        self._attempts, self._lock = Attempts(request.gamma), threading.Lock()

    def searched(
        self, certify: Callable[..., tuple[Found, Certificate]], caps: tuple[Cap, ...], *asked: object
    ) -> tuple[Found, Certificate]:
        """What `certify` finds for caps; `asked` names what else there is to the question, for a checkpoint."""
        run = self.run
        with self.alone(caps, *asked) as (attempts, place):
            stages = _Stages(run.watch, run.simulation)
            stages.searching()
            remember = _anew
            if run.checkpoint and not run.recompute:
                known = fingerprint(self.space.coordinates, __version__)
                remember = _Memory(run.checkpoint, f"noise-{place}", known)
            return certify(
                self.space,
                run.worlds,
                caps,
                self.settings,
                attempts=attempts,
                rng=stream(run.entropy, 1 + attempts.made),
                share_done=stages,
                remember=remember,
            )

    @contextmanager
    def alone(self, *asked: object) -> Iterator[tuple[Attempts, int]]:
        """Attempts for one question, while no other is asked, and its place among all in the checkpoint."""
        # Recaps in two threads at once would count one attempt for both, and certify on the same draws.
        with self._lock:
            if self.run.checkpoint is None:
                yield self._attempts, 0
                return
            # Across processes every list of caps has attempts of its own, so that resuming draws the same draws.
            with self.run.checkpoint.alone(patience=10):
                place = self.run.checkpoint.place(fingerprint(*asked))
            yield Attempts(self._attempts.gamma, MAX_ATTEMPTS * place), place


class GivenCertifier(FiniteGame):
    """The certifier of the game over given inputs."""

    def __call__(self, caps: tuple[Cap, ...]) -> tuple[modes.Releaser, Certificate]:
        return _identified(self.run, *self.searched(modes.given.certified, caps))


class ExactCertifier(FiniteGame):
    """The certifier of the game over worlds: of noise that it finds, and of noise that is proposed."""

    def __call__(self, caps: tuple[Cap, ...]) -> tuple[modes.Releaser, Certificate]:
        """The least noise of the shapes that are always tried."""
        return self.chosen(caps)

    def chosen(self, caps: tuple[Cap, ...], choose: Chooser | None = None, *asked: object) -> StatedNoise:
        """The least noise of the shape that `choose` finds; `asked` names that choice, where a checkpoint keeps it."""
        return _identified(self.run, *self.searched(partial(modes.exact.certified, choose=choose), caps, *asked))

    def stated(self, calibrated: Calibrated, goal: Goal, caps: tuple[Cap, ...], attempts: Attempts) -> StatedNoise:
        """What was certified of noise that was proposed: all there is, whatever least deviation was asked for."""
        settings = replace(self.settings, floor=0.0)
        found = modes.exact.CertifiedNoise.of(calibrated, self.space, settings.floor)
        return _identified(self.run, *modes.exact.stated(found, caps, settings, goal=goal, attempts=attempts))


def _anew(compute: Callable[[], Calibrated]) -> Calibrated:
    return compute()


@dataclass(frozen=True)
class _Memory:
    """Keeps a calibration in the checkpoint; it counts only for the very coordinates that it was made for."""

    checkpoint: Checkpoint
    name: str
    coordinates: str

    def __call__(self, compute: Callable[[], Calibrated]) -> Calibrated:
        coordinates, calibrated = self.checkpoint.kept(self.name) or ("", None)
        if calibrated is None or coordinates != self.coordinates:
            calibrated = compute()
            self.checkpoint.keep(self.name, (self.coordinates, calibrated))
        return calibrated


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
