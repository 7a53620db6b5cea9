"""Releases that were really made, each with the secret behind it, and what every attacker knows beforehand.

Trials run the code of `release()`: draw, grid, rebuilding, structure. Attackers get the numbers of the published
object, found in it anew, never those that we meant to put there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.certificates.release import Certificate
from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Bits, Floats, Ints
from leakcap.noise import Randomness
from leakcap.noise.laws import NORMAL
from leakcap.planning.plans import Plan, spend_on_trials
from leakcap.simulate import rebuild
from leakcap.worlds import GivenInputs, Worlds

__all__ = ["Known", "Trials", "Watched", "knowledge", "numbers_in", "releases", "seen_of"]

MAX_NUMBERS = 2**28  # of all releases together


@dataclass(frozen=True, eq=False)
class Trials:
    """`k` independent releases: the numbers of each, and who took part.

    Attributes:
        seen: `(k, d)`, the numbers of each release.
        secret: `(k,)`, the number of the secret world; None where each secret was drawn afresh.
        packed: `(k, n / 8)` bytes, one bit for each unit: who took part.
        units: number of units, n.
        scores: `(k, n)`, how well each published model fits each unit; None where it was not asked for.
        drawn: the normal numbers that all these releases asked their source for, one after another; None in a part.
    """

    seen: Floats  # (k, d)
    secret: Ints | None  # (k,): which world it was; None where each secret was drawn afresh
    packed: Bits  # (k, n / 8): who took part
    units: int
    scores: npt.NDArray[np.float32] | None = None  # (k, n): how well each published model fits each unit
    drawn: Floats | None = None  # normal numbers that were asked for, in order

    def __len__(self) -> int:
        return len(self.seen)

    def inside(self, units: slice | Ints = slice(None)) -> npt.NDArray[np.bool_]:
        """Who of these units took part in each release.

        Args:
            units: a slice or numbers of units; all if left out.

        Returns:
            `(k, units)`, True where the unit took part.
        """
        if isinstance(units, slice):
            return np.unpackbits(self.packed, axis=1, count=self.units).view(np.bool_)[:, units]
        bit = np.uint8(128) >> (units % 8).astype(np.uint8)
        return np.asarray(self.packed[:, units // 8] & bit, dtype=np.bool_)

    def added(self, steps: Floats) -> Floats:
        """What the participants of each release add up to.

        Args:
            steps: `(units, d)`, what each unit adds.

        Returns:
            `(k, d)`.
        """
        found, some = np.empty((len(self), steps.shape[1])), max(1, 2**24 // max(self.units, 1))
        for first in range(0, len(self), some):  # bits take an eighth of a byte, numbers eight
            rows = slice(first, first + some)
            found[rows] = self.part(rows).inside().astype(np.float64) @ steps
        return found

    def part(self, rows: slice) -> Trials:
        """Some of the releases.

        Args:
            rows: which of them.

        Returns:
            Trials that share memory with these.
        """
        secret = None if self.secret is None else self.secret[rows]
        scores = None if self.scores is None else self.scores[rows]
        return Trials(seen=self.seen[rows], secret=secret, packed=self.packed[rows], units=self.units, scores=scores)

    def split(self, *shares: float) -> list[Trials]:
        """The releases in consecutive parts.

        Args:
            *shares: relative sizes of the parts.

        Returns:
            One `Trials` for each share, in the order in which the releases were made.
        """
        ends = np.rint(np.cumsum(shares) / sum(shares) * len(self)).astype(int)
        return [self.part(slice(a, b)) for a, b in zip([0, *ends[:-1]], ends, strict=True)]


@dataclass(frozen=True, eq=False)
class Known:
    """What every attacker knows before the release: pool, code, possible worlds, noise, certificate.

    Attributes:
        certificate: the certificate of the plan.
        units: number of units in the pool.
        rate: probability with which everybody takes part.
        worlds: the possible worlds; None where the secret is any part of the pool.
        answers: `(m, d)`, what would be seen in each world without noise; None where worlds are.
        factor: `(d, r)`, the claimed noise: covariance `factor @ factor.T`. None where only seeing the noise helps.
        exposed: numbers of the units, the most exposed first, as far as the plan knows.
        step: width of the release grid, in deviations of the noise; 0 where there is none.
        steps: `(units, d)`, what each unit adds to what is seen; None where the answer is no such sum.
        start: `(d,)`, what would be seen without noise if nobody took part; None likewise.
    """

    certificate: Certificate
    units: int
    rate: float
    worlds: Worlds | None  # None where the secret is any part of the pool
    answers: Floats | None  # (m, d): what would be seen in each world if there were no noise
    factor: Floats | None  # (d, r): the noise as it is claimed, covariance `factor @ factor.T`
    exposed: Ints  # units, the most exposed first, as far as the plan knows
    step: float = 0.0  # of the release grid, in deviations of the noise
    steps: Floats | None = None  # (units, d): what each unit adds
    start: Floats | None = None  # (d,): if nobody took part


def releases(plan: Plan, k: int, *, model: bool = False, score: Callable[[Any], Any] | None = None) -> Trials:
    """Make `k` releases of a plan, each with its own secret, and return the secrets with them.

    This is for audits: whoever holds the result knows who took part in each release. It spends the plan, if that was
    not spent already: audit a plan that was released, or one that never will be.

    Args:
        plan: the plan to release from.
        k: number of releases.
        model: for an estimator's plan, whether to read the published estimator rather than the numbers it is made of.
        score: function of a published value that gives how well it fits each unit, for attacks by scores.

    Returns:
        The releases and who took part in each. Custodian side.

    Raises:
        InputError: the releases do not fit into memory, or `model` is asked of a plan that is not an estimator's.

    Examples:
        >>> import leakcap as lc
        >>> rows = np.random.default_rng(0).normal(size=(40, 2))
        >>> plan = lc.plan(lc.stats.mean, rows, cap=lc.membership(0.7), worlds=32, seed=0, draws=512)
        >>> releases(plan, 5).inside().shape
        (5, 40)
    """
    checks.count(k=k)
    each = plan.run.simulation.table.shape[1] + (plan.run.worlds.n // 2 if score else 0)
    if k * each > MAX_NUMBERS:
        raise InputError(
            f"so many releases of {each:,} numbers do not fit into memory: ask for {MAX_NUMBERS // each:,} at most"
        )
    spend_on_trials(plan)
    build = _building(plan, model)
    watched = Watched(plan.randomness)
    mechanism = watched.on(plan.releaser)
    seen, secrets, masks = [], [], []
    scores = None if score is None else np.empty((k, plan.run.worlds.n), dtype=np.float32)
    for place in range(k):
        value = build(seen_of(plan, mechanism.vector(watched)))
        seen.append(numbers_in(value))
        if scores is not None and score is not None:
            scores[place] = score(value)
        secrets.append(watched.world)
        masks.append(watched.mask)
    made = partial(Trials, seen=_table(seen), units=plan.run.worlds.n, scores=scores, drawn=watched.drawn())
    if masks[0] is not None:
        return made(secret=None, packed=np.packbits(np.array(masks), axis=1))
    if plan.certificate.mode == "pool":  # everybody takes part
        return made(secret=None, packed=np.packbits(np.ones((k, plan.run.worlds.n), dtype=bool), axis=1))
    if plan.certificate.of_inputs:
        inputs = plan.run.worlds
        assert isinstance(inputs, GivenInputs)
        numbers = np.array([inputs.drawn(number) for number in secrets], dtype=np.intp)
        return made(secret=numbers, packed=np.empty((k, 0), dtype=np.uint8))
    if plan.certificate.mode != "exact":
        raise InputError("this plan's releaser has no `draw` to be watched: who took part in its releases is not known")
    worlds = np.array(secrets, dtype=np.intp)
    return made(secret=worlds, packed=plan.run.worlds.packed[worlds])


def seen_of(plan: Plan, vector: Floats) -> Any:
    """What attackers see of a released vector: the answer, or the sums it is made of, which tell no less."""
    return rebuild(plan.run.simulation.node, vector) if plan.run.finishing is None else vector


def knowledge(plan: Plan, *, model: bool = False) -> Known:
    """What attackers of this plan's release know; of a model's noise, only what they can see of it."""
    build, table = _building(plan, model), plan.run.simulation.table
    finite = plan.certificate.mode in ("exact", "given")
    answers = _table([numbers_in(build(seen_of(plan, row))) for row in table]) if finite else None
    steps = None if model or not _sums(plan) else _added(plan)
    factor = _claimed(plan) if finite and not model else None
    if steps is not None and plan.noise.law is NORMAL:
        factor = plan.noise.factor  # the very numbers that were noised are seen
    return Known(
        certificate=plan.certificate,
        units=plan.run.worlds.n,
        rate=plan.run.worlds.rate,
        worlds=plan.run.worlds if finite else None,
        answers=answers,
        factor=factor,
        exposed=np.argsort(-plan.exposure, kind="stable") if plan.run.worlds.n else np.empty(0, dtype=np.intp),
        step=float(getattr(plan.releaser, "step", 0.0)),
        steps=steps,
        start=None if steps is None else plan.noise.space.centre,
    )


def _sums(plan: Plan) -> bool:
    """Whether the answer adds up what everybody brings whose coin shows heads."""
    found = plan.certificate
    return found.whoever_is_known and not found.on_average_over_the_known and not found.in_blocks


def _added(plan: Plan) -> Floats | None:
    """What each unit adds to the numbers that are seen; None where these are not the numbers that were noised."""
    space = plan.noise.space
    marks = space.centre + np.pi * (1 + np.arange(len(space.centre)))
    seen = numbers_in(seen_of(plan, marks))
    return np.asarray(space.lift(space.coordinates)) if np.array_equal(seen, marks) else None


def _claimed(plan: Plan) -> Floats | None:
    """The claimed noise of every number that is seen; None where the numbers are not those that were noised."""
    factor = plan.noise.factor
    marks = plan.run.simulation.table.mean(axis=0) + np.pi * (1 + np.arange(len(factor)))
    place = {mark: i for i, mark in enumerate(numbers_in(seen_of(plan, marks)).tolist())}
    if any(mark not in place for mark in marks.tolist()):
        return None
    found = np.zeros((len(numbers_in(seen_of(plan, plan.run.simulation.table[0]))), factor.shape[1]))
    found[[place[mark] for mark in marks.tolist()]] = factor
    return found


def numbers_in(thing: Any) -> Floats:
    """Every number that an object holds, at any depth, hidden attributes included, in a fixed order."""
    if type(thing) is np.ndarray and thing.dtype == np.float64:  # most releases
        return thing.flatten()
    found = list(_parts(thing, set()))
    return np.concatenate(found) if found else np.empty(0)


def _parts(thing: Any, above: set[int]) -> Iterator[Floats]:
    if isinstance(thing, (bool, int, float, np.number, np.bool_)):
        yield np.array([float(thing)])
    elif isinstance(thing, np.ndarray):
        if thing.dtype.kind in "biuf":
            yield thing.ravel().astype(np.float64)
        elif thing.dtype.kind == "O":
            for one in thing.ravel():
                yield from _parts(one, above)
    elif hasattr(thing, "tocsr"):
        yield from _parts(thing.toarray(), above)
    elif hasattr(thing, "to_numpy"):
        yield from _parts(np.asarray(thing.to_numpy()), above)
    elif isinstance(thing, (dict, list, tuple)) or hasattr(thing, "__dict__"):
        if id(thing) in above or isinstance(thing, (type, np.random.Generator)) or callable(thing):
            return
        inner = thing if isinstance(thing, (dict, list, tuple)) else vars(thing)
        for part in inner.values() if isinstance(inner, dict) else inner:
            yield from _parts(part, above | {id(thing)})


def _table(rows: list[Floats]) -> Floats:
    if len({len(row) for row in rows}) != 1:
        raise InputError(
            "published objects differ in how many numbers they hold: that alone reveals something about the secret"
        )
    return np.array(rows)


def _building(plan: Plan, model: bool) -> Callable[[Any], Any]:
    if not model:
        return lambda value: value
    if plan.offered is None:
        raise InputError("this plan does not belong to an estimator: audit it with model=False")
    return plan.offered.build


class Watched:
    """Passes randomness on, and remembers the secret and the numbers that were drawn from it."""

    def __init__(self, randomness: Randomness) -> None:
        self._randomness = randomness
        self.world = -1
        self.mask: npt.NDArray[np.bool_] | None = None
        self._normals: list[Floats] = []

    def drawn(self) -> Floats:
        """All normal numbers so far."""
        return np.concatenate(self._normals) if self._normals else np.empty(0)

    def on(self, releaser: Any) -> Any:
        """The releaser, with its draw of a fresh world watched where it has one."""
        if not hasattr(releaser, "draw"):
            return releaser
        draw = releaser.draw

        def watched(_: Randomness) -> npt.NDArray[np.bool_]:
            self.mask = draw(self._randomness)
            return self.mask

        return replace(releaser, draw=watched)

    def below(self, n: int) -> int:
        self.world = self._randomness.below(n)
        return self.world

    def normals(self, size: int) -> Floats:
        found = self._randomness.normals(size)
        self._normals.append(np.array(found, dtype=np.float64))
        return found

    def bits(self) -> Any:
        return self._randomness.bits()
