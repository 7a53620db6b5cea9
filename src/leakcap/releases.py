"""What a plan is, and what a release is: the first is the custodian's, the second may be published."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from leakcap import checks, modes
from leakcap.accuracy import LEVELS, Expected, Summary, half_width
from leakcap.caps import Cap, CapLike, as_caps
from leakcap.certificate import Certificate
from leakcap.errors import AlreadyReleased, InputError, LeakcapError, RepeatedReleaseWarning
from leakcap.noise import Noise, Randomness, Seeded
from leakcap.simulate import Outputs, rebuild
from leakcap.simulate.checkpoint import Checkpoint
from leakcap.worlds import Worlds

if TYPE_CHECKING:
    from leakcap.advice import Offered, Suggestions

__all__ = ["LEVELS", "Plan", "Release", "Token"]

Floats = npt.NDArray[np.float64]
NAMED = 10_000  # outputs that are given names
_released_before: set[str] = set()


@dataclass(frozen=True, eq=False)
class Release:
    """A released answer and its certificate; public side only, safe to pickle and to publish."""

    value: Any
    certificate: Certificate
    names: tuple[str, ...]  # of the outputs, in the order of `interval`; none where they are too many to list
    _vector: Floats
    _widths: tuple[tuple[float, Floats], ...]

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Where the answer on the whole pool lies, per output (flattened), with at least this probability.

        Covers both errors: the answer used part of the pool, and it was noised. Widths were fixed before the
        secret was drawn.
        """
        checks.fraction(level=level)
        if not self._widths:
            raise InputError("no interval: the function has no answer of this form on the whole pool")
        for known, width in self._widths:
            if known >= level:
                return self._vector - width, self._vector + width
        raise InputError(f"intervals are kept for levels up to {self._widths[-1][0]}")

    @property
    def outputs(self) -> Floats:
        """The released numbers, flattened."""
        return self._vector.copy()

    def __repr__(self) -> str:
        return f"Release(kind={self.certificate.kind!r}, value={self.value!r})"

    def _repr_html_(self) -> str:
        from leakcap.report.page import Answer, fragment

        names = self.names or tuple(f"output {i + 1}" for i in range(len(self._vector)))
        low, high = self.interval() if self._widths else (None, None)
        return fragment(self.certificate, Answer("Released answer", names, self._vector, low, high))


class Token:
    """The right to release once, shared by a plan and all its recaps."""

    def __init__(self, fingerprint: Callable[[], str]) -> None:
        self._lock = threading.Lock()
        self._spent = False
        self._fingerprint = fingerprint

    def spend(self, quiet: bool) -> None:
        """Spend first, release after: a crash wastes a release, it never makes two.

        `quiet` where no new secret leaves: simulations, and releases that were stored.
        """
        with self._lock:
            if self._spent:
                raise AlreadyReleased(
                    "this plan, or a recap of it, was released already: releases of one simulation share one secret. "
                    "Keep the released value; for more answers about the same data use a session"
                )
            self._spent = True
        if quiet:
            return
        print_of_data = self._fingerprint()
        if print_of_data in _released_before:
            warnings.warn(
                "these data were released before in this process. Certificates stand alone: two releases with two "
                "secrets are bounded by neither. Use a session with a ledger for several answers",
                RepeatedReleaseWarning,
                stacklevel=4,
            )
        _released_before.add(print_of_data)


class Plan:
    """A calibrated, certified release that has not been made yet. Custodian side: never published or pickled."""

    def __init__(
        self,
        simulation: Outputs,
        worlds: Worlds,
        mechanism: modes.Mechanism,
        certificate: Certificate,
        again: Callable[[tuple[Cap, ...]], tuple[modes.Mechanism, Certificate]],
        randomness: Randomness,
        token: Token,
        checkpoint: Checkpoint | None = None,
        caps: tuple[Cap, ...] = (),
    ) -> None:
        self._simulation = simulation
        self.worlds = worlds
        self._mechanism = mechanism
        self.certificate = certificate
        self._again = again
        self._randomness = randomness
        self._token = token
        self._checkpoint = checkpoint
        self._caps = caps
        self._advise: Callable[..., Suggestions] | None = None
        self.offered: Offered | None = None  # what only its maker knows about it, for `suggest`

    @property
    def outputs(self) -> Floats:
        """`(m, d)`: what the function returned in each world, flattened."""
        return self._simulation.table

    @property
    def noise(self) -> Noise:
        """The noise that will be added."""
        return self._mechanism.noise

    @property
    def exposure(self) -> Floats:
        """Certified membership success against each unit, in the order of the units."""
        return self._mechanism.exposure

    def recap(self, cap: CapLike) -> Plan:
        """Another cap for the same simulation, with the same right to release once."""
        caps = as_caps(cap)
        mechanism, certificate = self._again(caps)
        shared = self._again, self._randomness, self._token, self._checkpoint
        other = Plan(self._simulation, self.worlds, mechanism, certificate, *shared, caps)
        other._advise, other.offered = self._advise, self.offered
        return other

    def release(self) -> Release:
        """Draw the secret world and the noise, and rebuild the answer. Once for a plan and all its recaps.

        With a checkpoint, a resumed plan that was released already hands out that same release.
        """
        return self._release()

    def _release(self) -> Release:
        widths = self._widths()
        stored = self._checkpoint.committed() if self._checkpoint else None
        self._token.spend(self.certificate.kind == "simulation" or stored is not None)
        if stored is None:
            vector = self._mechanism.vector(self._randomness)
            if self._checkpoint is None:
                return self._released(vector, widths)
            # Stored before it is seen: a run that is killed here and resumed has no other value to give.
            stored = self._checkpoint.commit(
                vector=vector, widths=np.array([width for _, width in widths]), certificate=self.certificate.to_json()
            )
        certificate = Certificate.from_json(str(stored["certificate"]))
        if certificate.capped != self.certificate.capped:
            raise AlreadyReleased(
                "this checkpoint was released already, under other caps: resume it with the caps of that release to "
                "see it again"
            )
        return self._released(stored["vector"], tuple(zip(LEVELS, stored["widths"], strict=False)), certificate)

    def _spend_on_trials(self) -> None:
        """Releases whose secrets are told are none for the public, but no other may follow as if they had not been."""
        with suppress(AlreadyReleased):
            self._token.spend(quiet=True)

    def _released(
        self, vector: Floats, widths: tuple[tuple[float, Floats], ...], certificate: Certificate | None = None
    ) -> Release:
        node = self._simulation.node
        names = tuple(node.labels()) if node.size() <= NAMED else ()
        return Release(rebuild(node, vector), certificate or self.certificate, names, vector, widths)

    @property
    def released_certificate(self) -> Certificate | None:
        """The certificate under which this plan's checkpoint was released, or None."""
        stored = self._checkpoint.committed() if self._checkpoint else None
        return None if stored is None else Certificate.from_json(str(stored["certificate"]))

    def forget(self) -> None:
        """Remove the checkpoint of this plan, if it has one: worlds, outputs and the stored release."""
        if self._checkpoint is not None:
            self._checkpoint.forget()

    def summary(self) -> Summary:
        """Expected error of each output: what halving costs and what noise costs; time and memory."""
        pool = self._simulation.whole_pool
        centre = self.outputs.mean(axis=0) if pool is None else pool
        return Summary(
            names=tuple(islice(self._simulation.node.labels(), NAMED)),
            answer=centre,
            halving=np.sqrt(((self.outputs - centre) ** 2).mean(axis=0)),
            noise=self.noise.output_deviations,
            certificate=self.certificate,
            forecast=str(self._simulation.forecast),
        )

    def expected(self, score: Callable[[Any], float], releases: int = 20, seed: int = 0) -> Expected:
        """What `score(value)` would be for a released value: its mean and spread over simulated releases.

        Nothing is spent and nothing leaves. The figures are the custodian's: scores may tell about the data.
        """
        checks.count(releases=releases)
        node, source = self._simulation.node, Seeded(seed)
        noised = [float(score(rebuild(node, self._mechanism.vector(source)))) for _ in range(releases)]
        worlds = np.random.default_rng(seed).integers(len(self.outputs), size=releases)
        plain = [float(score(rebuild(node, self.outputs[world]))) for world in worlds]
        return Expected(float(np.mean(noised)), float(np.std(noised)), float(np.mean(plain)), releases)

    def suggest(
        self,
        score: Callable[[Any], float] | None = None,
        *,
        strata: Mapping[str, npt.ArrayLike] | None = None,
        worlds: int = 256,
        releases: int = 100,
        seconds: float = 120.0,
        seed: int = 0,
    ) -> Suggestions:
        """Which knob would buy most utility for these data and caps, each tried alone, by simulation.

        Tried are more worlds, clipped outputs, other weights, other rates, strata, and what the maker of the plan
        offers (of an estimator: its regularisation). Nothing is spent, nothing leaves, nothing is certified: a plan
        with the new setting is. The figures are the custodian's: they tell about the data.

        Args:
            score: of a released value (of an estimator: of the fitted one), higher is better. None: an estimator's own
                utility; otherwise minus the error of the outputs, relative to the answer on the whole pool.
            strata: groups to try, each a label for every row, under the name that the table should show.
            worlds: in how many worlds settings are compared that need the function to be run again, at most.
            releases: simulated, of every setting.
            seconds: that running the function again may take, about; what does not fit is left out, and named.
        """
        if self._advise is None:
            raise InputError("this plan was made by hand: suggest() is for plans of leakcap.plan")
        return self._advise(
            self, score, strata=strata or {}, worlds=worlds, releases=releases, seconds=seconds, seed=seed
        )

    def _widths(self) -> tuple[tuple[float, Floats], ...]:
        pool = self._simulation.whole_pool
        if pool is None:
            return ()
        noise = self.noise.output_deviations
        widths = np.empty((len(LEVELS), len(pool)))
        for start in range(0, len(pool), 2**16):  # outputs may be many: no second copy of them all
            part = slice(start, start + 2**16)
            offsets = self.outputs[:, part] - pool[part]
            for level, width in zip(LEVELS, widths, strict=True):
                width[part] = half_width(offsets, noise[part], level)
        return tuple(zip(LEVELS, widths, strict=True))

    def __reduce__(self) -> Any:
        raise LeakcapError("a plan is custodian-side and is not pickled; pickle the release or save its certificate")

    def _repr_html_(self) -> str:
        from leakcap.report.page import plan_fragment

        return plan_fragment(self.certificate, self.summary())

    def __repr__(self) -> str:
        kind, m, d = self.certificate.kind, self.worlds.m, self.outputs.shape[1]
        return f"Plan(kind={kind!r}, worlds={m}, outputs={d}, noise std={self.noise.std:.4g})"
