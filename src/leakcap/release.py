"""From any function to a certified release: `plan` simulates, calibrates and certifies; `release` draws once."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap import checks, modes
from leakcap.accuracy import LEVELS, Summary, half_width
from leakcap.caps import Cap, CapLike, as_caps
from leakcap.certificate import Certificate
from leakcap.errors import AlreadyReleased, InputError, LeakcapError, OutputError, RepeatedReleaseWarning
from leakcap.leakage.confidence import Attempts
from leakcap.leakage.measures import needs
from leakcap.noise import SHAPES, Noise, OperatingSystem, Randomness, Seeded, subspace
from leakcap.simulate import Outputs, Pool, run_worlds
from leakcap.simulate.progress import Watcher
from leakcap.simulate.run import one_answer
from leakcap.simulate.structure import Node, rebuild
from leakcap.worlds import Units, Worlds, draw_worlds, given_worlds, independent_worlds

__all__ = ["Plan", "Release", "plan", "release"]

Floats = npt.NDArray[np.float64]
_released_before: set[str] = set()


@dataclass(frozen=True, eq=False)
class Release:
    """A released answer and its certificate; public side only, safe to pickle and to publish."""

    value: Any
    certificate: Certificate
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

    def __repr__(self) -> str:
        return f"Release(kind={self.certificate.kind!r}, value={self.value!r})"


class _Token:
    """The right to release once, shared by a plan and all its recaps."""

    def __init__(self, fingerprint: Callable[[], str]) -> None:
        self._lock = threading.Lock()
        self._spent = False
        self._fingerprint = fingerprint

    def spend(self, seeded: bool) -> None:
        """Spend first, release after: a crash wastes a release, it never makes two."""
        with self._lock:
            if self._spent:
                raise AlreadyReleased(
                    "this plan, or a recap of it, was released already: releases of one simulation share one secret. "
                    "Keep the released value; for more answers about the same data use a session"
                )
            self._spent = True
        if seeded:
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
        token: _Token,
    ) -> None:
        self._simulation = simulation
        self.worlds = worlds
        self._mechanism = mechanism
        self.certificate = certificate
        self._again = again
        self._randomness = randomness
        self._token = token

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
        mechanism, certificate = self._again(as_caps(cap))
        return Plan(self._simulation, self.worlds, mechanism, certificate, self._again, self._randomness, self._token)

    def release(self) -> Release:
        """Draw the secret world and the noise, and rebuild the answer. Once for a plan and all its recaps."""
        return self._release()

    def _release(self) -> Release:
        widths = self._widths()
        self._token.spend(self.certificate.kind == "simulation")
        vector = self._mechanism.vector(self._randomness)
        return Release(rebuild(self._simulation.node, vector), self.certificate, vector, widths)

    def summary(self) -> Summary:
        """Expected error of each output: what halving costs and what noise costs; time and memory."""
        pool = self._simulation.whole_pool
        centre = self.outputs.mean(axis=0) if pool is None else pool
        return Summary(
            names=tuple(self._simulation.node.labels()),
            answer=centre,
            halving=np.sqrt(((self.outputs - centre) ** 2).mean(axis=0)),
            noise=self.noise.output_deviations,
            certificate=self.certificate,
            forecast=str(self._simulation.forecast),
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

    def __repr__(self) -> str:
        kind, m, d = self.certificate.kind, self.worlds.m, self.outputs.shape[1]
        return f"Plan(kind={kind!r}, worlds={m}, outputs={d}, noise std={self.noise.std:.4g})"


def plan(
    fn: Callable[..., Any],
    *data: Any,
    cap: CapLike,
    worlds: int | npt.ArrayLike = 1024,
    rate: float = 0.5,
    unit: npt.ArrayLike | str | None = None,
    strata: npt.ArrayLike | str | None = None,
    seed: int | None = None,
    clip: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    weights: npt.ArrayLike | str | None = None,
    mode: str = "exact",
    confidence: float = 1 - 1e-6,
    draws: int | None = None,
    public: Iterable[str] = (),
    drop: Iterable[str] = (),
    backend: str | None = None,
    workers: int | None = None,
    progress: bool | Watcher | None = None,
    checkpoint: str | None = None,
    shape: str = "best",
    floor: float = 0.0,
    memory: int = 2 * 2**30,
) -> Plan:
    """Simulate `fn` in many possible worlds, find the least noise that keeps `cap`, and certify it.

    Nothing is released. `fn` receives the rows of one world, sliced alike from every data argument, and returns
    a number, an array, a dict, tuple, dataclass or table of them, or a fitted scikit-learn estimator.

    Args:
        cap: one cap, or a list that must hold together.
        worlds: how many, or an `(m, n)` bool array in which every unit takes part equally often.
        rate: share of the pool in a world: 1/2, 1/k or (k-1)/k.
        unit: whose row it is, an array or the name of a column (which `fn` then does not see); worlds are drawn over
            units.
        strata: groups that every world holds in proportion, an array or the name of a column.
        seed: makes it a simulation, which is no release.
        clip: `(low, high)` for the outputs, numbers or one for each; part of the mechanism.
        weights: how much noise in each output matters: None (outputs on like scales count alike, otherwise relative to
            their spread between worlds), "equal", "relative", or a number for each.
        mode: "exact" (the secret is one of the worlds), "confidence" (a fresh one), "empirical" (no guarantee).
        confidence: that all certified figures hold together, over the certifying draws.
        draws: releases to certify with; None chooses as many as keep the statistical margin small.
        public: names of what you declare public; listed in the certificate.
        drop: attributes of an estimator to leave out of the release.
        backend: "serial", "threads" or "processes"; with `workers` alone, processes.
        progress: True for a bar on standard error, or a function that is given `Progress` records.
        shape: of the noise: "best", "logdet", "linear" (the papers' rule) or "isotropic".
        floor: least noise deviation, also in directions that carry nothing, in weighted outputs.
        memory: bytes that the leakage computation may use, 2 GiB by default; outputs of all worlds come on top.

    Guarantee: `plan(...).certificate` says what holds, against whom, under which assumptions, with what confidence.

    Examples:
        >>> import numpy as np
        >>> import leakcap as lc
        >>> heights = np.random.default_rng(0).normal(170, 10, size=200)
        >>> made = lc.plan(lambda x: x.mean(), heights, cap=lc.membership(0.6), worlds=64, seed=1)
        >>> made.certificate.membership_success <= 0.6
        True
    """
    caps = as_caps(cap)
    if checkpoint is not None:
        raise InputError("checkpoints are not available yet; leave checkpoint=None")
    checks.choice(("exact", "confidence", "empirical"), mode=mode)
    checks.choice(SHAPES, shape=shape)
    checks.nonnegative(floor=floor)
    checks.count(at_least=2**26, memory=memory)
    if draws is not None:
        checks.count(at_least=256, draws=draws)
    if isinstance(drop, str) or isinstance(public, str):
        raise InputError("drop and public must be lists of names, such as drop=['labels_']")
    gamma = 1 - checks.fraction(confidence=confidence)
    randomness: Randomness = OperatingSystem() if seed is None else Seeded(checks.count(at_least=0, seed=seed))
    rng = randomness.generator()
    pool = Pool(data)
    whose = pool.pop_column(unit) if isinstance(unit, str) else unit
    units = Units.of(pool.rows, whose)
    groups = pool.column(strata) if isinstance(strata, str) else strata
    per_unit = None if groups is None else units.strata(groups)
    possible = _worlds(worlds, units.count, rate, per_unit, mode, rng)
    if mode == "exact":
        needs(caps, possible)  # refuse impossible caps before anything long starts
    else:
        modes.budget_for(caps, possible)
    dropped = frozenset(drop)
    simulation = run_worlds(fn, pool, units, possible, dropped, backend, workers, progress)
    limits = _limits(clip, simulation.table.shape[1])
    if limits:
        whole = simulation.whole_pool
        simulation = replace(
            simulation,
            table=np.clip(simulation.table, *limits),
            whole_pool=None if whole is None else np.clip(whole, *limits),
        )
    if not np.isfinite(simulation.table).all():
        raise OutputError(
            "some numbers are NaN or infinite in some worlds. A failure that depends on who takes part is "
            "an output too: map it to a fixed value inside your function (np.nan_to_num, a prior); infinite numbers "
            "can be bounded with clip=(low, high)"
        )
    settings = modes.Settings(
        shape,
        float(floor),
        weights,
        draws,
        memory,
        seed is not None,
        tuple(public),
        _in_words(simulation.node),
    )
    attempts = Attempts(gamma)

    def rerun(mask: npt.NDArray[np.bool_]) -> Floats | None:
        return _answer(fn, pool, units, mask, dropped, simulation.node, limits)

    def draw(source: Randomness) -> npt.NDArray[np.bool_]:
        return independent_worlds(units.count, 1, source.bits(), rate, per_unit).mask(0)

    if mode == "exact":
        space = subspace(simulation.table, weights, settings.memory)

        def again(wanted: tuple[Cap, ...]) -> tuple[modes.Mechanism, Certificate]:
            return modes.exact(space, possible, wanted, attempts, rng, settings)
    elif mode == "confidence":

        def again(wanted: tuple[Cap, ...]) -> tuple[modes.Mechanism, Certificate]:
            return modes.confidence(simulation.table, possible, wanted, gamma, settings, rerun, draw)
    else:

        def again(wanted: tuple[Cap, ...]) -> tuple[modes.Mechanism, Certificate]:
            return modes.empirical(simulation.table, possible, wanted, settings, rerun, draw)

    mechanism, certificate = again(caps)
    return Plan(simulation, possible, mechanism, certificate, again, randomness, _Token(lambda: _fingerprint(data)))


def release(fn: Callable[..., Any], *data: Any, cap: CapLike, **options: Any) -> Release:
    """`plan(...)` and `.release()` in one step."""
    return plan(fn, *data, cap=cap, **options)._release()


def _worlds(
    worlds: Any, n: int, rate: float, strata: npt.NDArray[np.intp] | None, mode: str, rng: np.random.Generator
) -> Worlds:
    if isinstance(worlds, str):
        raise InputError("worlds must be a number or an (m, n) bool array")
    if isinstance(worlds, (int, np.integer)) and not isinstance(worlds, bool):
        checks.count(at_least=2 if mode == "exact" else 64, worlds=worlds)
        make = draw_worlds if mode == "exact" else independent_worlds
        return make(n, int(worlds), rng, rate, strata)
    if mode != "exact" or strata is not None or rate != 0.5:
        raise InputError("worlds given as an array need mode='exact', and neither rate nor strata")
    return given_worlds(worlds, n)


def _limits(clip: Any, d: int) -> tuple[Floats, Floats] | None:
    if clip is None:
        return None
    try:
        low, high = (np.broadcast_to(np.asarray(end, dtype=np.float64).ravel(), (d,)) for end in clip)
    except (TypeError, ValueError):
        raise InputError(f"clip must be (low, high): numbers, or one for each of the {d} outputs") from None
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low <= high).all()):
        raise InputError("clip must be finite, with low at or below high")
    return low, high


def _answer(
    fn: Callable[..., Any],
    pool: Pool,
    units: Units,
    mask: npt.NDArray[np.bool_],
    drop: frozenset[str],
    node: Node,
    limits: tuple[Floats, Floats] | None,
) -> Floats | None:
    """The answer in one more world, or None where it has not the agreed form."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning heard only in some worlds would tell about the secret one
            found, numbers = one_answer(fn, pool, units.rows_in(mask), drop)
    except LeakcapError:
        return None
    if any(node.differences(found)) or not np.isfinite(numbers).all():
        return None
    return np.clip(numbers, *limits) if limits else numbers


def _in_words(node: Node) -> tuple[str, ...]:
    names = sorted({path.rsplit(".", 1)[-1] for path in node.constants() if "." in path and not path.endswith("]")})
    if not names:
        return ()
    return ("Passed into the answer because it is equal in all worlds: " + ", ".join(names) + ".",)


def _fingerprint(data: tuple[Any, ...]) -> str:
    from joblib import hash as fingerprint

    try:
        return str(fingerprint(data))
    except Exception:  # data that cannot be pickled; joblib's own error would quote them
        return f"object {id(data[0])}"
