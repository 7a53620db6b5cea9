"""Questions one after the other from one fresh secret, each with a budget of its own: PAC Privacy's Algorithm 4.

Sound for questions that are fixed before any answer is seen, and refused for all others: the average distance of two
simulated answers says nothing about a question that was chosen in the light of a noisy answer. Sessions are for those.
"""

from __future__ import annotations

import math
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from leakcap import modes
from leakcap.caps import mutual_information
from leakcap.certificates.ids import DrawnIds
from leakcap.certificates.release import Certificate
from leakcap.convert.continuity import entropy_slack
from leakcap.custody.fingerprint import DataPrint
from leakcap.errors import AlreadyReleased, InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Bools, Floats
from leakcap.ground.cores import Machine
from leakcap.ground.proofs import proves
from leakcap.leakage.permuted import permuted_distances
from leakcap.modes.by_information import figures_by_information
from leakcap.modes.interface import certificate
from leakcap.modes.seeds import price_of_slack, seed_draws
from leakcap.noise import GRID, Noise, OperatingSystem, Subspace, released_vector, sampler_distance
from leakcap.planning.released import Release, Token
from leakcap.planning.secret_seeds import checked_seeds
from leakcap.simulate import Node, Pool, rebuild, run_worlds
from leakcap.simulate.seeds import SEEDS, SeedTask, Sown, run_seeds
from leakcap.simulate.silence import unheard
from leakcap.simulate.worker import PooledUnits, one_answer
from leakcap.worlds import Units, independent_worlds

__all__ = ["Online", "OnlineAnswer", "online_slack", "online_variance"]

REACH = 1e3  # noise deviations that an answer may lie from the centre


@proves("composition")
def online_slack(radius: float, pairs: int, steps: int, gamma: float) -> float:
    """How far the mean squared distance of simulated pairs may lie below the true one, in all steps at once.

    Guarantee: with probability `1 - gamma`, for squared distances of at most `4 radius^2`; rounded up. It is Theorem 8
    of PAC Privacy solved for `c`, with `8 r^4 log(T/gamma)/c^2` pairs.
    Differs from the paper: `log(T gamma)` there is negative.
    """
    return math.sqrt(8 * math.log(steps / gamma) / pairs) * radius**2 * (1 + 1e-12)


def online_variance(distance: float, slack: float, budget: float) -> float:
    """Noise variance of each output, for a mean squared distance and a budget of this answer's own; rounded up."""
    return (distance + slack) / (2 * budget) * (1 + 1e-12)


@dataclass(frozen=True, eq=False)
class AskedInPairs:
    """What a question says in simulated halves, how far apart the two of a pair are, and what it says in one more."""

    node: Node
    rows: Floats
    distance: float
    answer: Callable[[Bools], Floats]
    cut: int = 0


class OnlineAnswer:
    """One question with its noise; the certificate covers all answers up to this one. Custodian side."""

    def __init__(self, noise: Noise, node: Node, made: Certificate, answer: Callable[[Bools], Floats]) -> None:
        self.noise, self.certificate = noise, made
        self._node, self._answer = node, answer

    def released(self, secret: Bools) -> Release:
        """The answer on the secret half, noised."""
        vector = released_vector(self.noise, self._answer(secret), GRID, OperatingSystem())
        return Release(rebuild(self._node, vector), self.certificate, tuple(self._node.labels()), vector, _widths=())


class Online:
    """Several questions about one fresh random half, asked one by one and released together; custodian side."""

    def __init__(
        self,
        *data: Any,
        radius: float,
        steps: int,
        pairs: int = 4096,
        confidence: float = 1 - 1e-6,
        unit: Any = None,
        seeds: int | None = None,
    ) -> None:
        """Draw the pairs of halves in which all questions will be simulated.

        Args:
            *data: arrays, DataFrames or sparse matrices of equal length, sliced alike.
            radius: of the ball, about zero, to which every answer is cut. It must not come from the secret half.
            steps: how many questions may be asked; fixed beforehand, because the confidence is shared among them.
            pairs: of simulated halves. The fewer, the more noise for what is not seen.
            confidence: that all certificates hold, over the simulated halves.
            unit: whose row it is.
            seeds: for functions that take a parameter `seed`, each of which gets a secret one of its own: how many are
                tried in every simulated half, two or more. None: functions take none.

        Raises:
            InputError: an argument cannot be used.
        """
        self.seeds = None if seeds is None else checked_seeds(seeds)
        self.radius = checks.positive(radius=radius)
        self.steps = checks.count(steps=steps)
        self.pairs = checks.count(at_least=64, pairs=pairs)
        self._gamma = 1 - checks.fraction(confidence=confidence)
        self._pool = Pool(data)
        self._units = Units.of(self._pool.rows, unit)
        rng = np.random.default_rng(secrets.randbits(128))
        self._worlds = independent_worlds(self._units.count, 2 * self.pairs, rng, 0.5)
        prints = DataPrint(data, unit)
        self._token, self._ids = Token(lambda: prints.of_release), DrawnIds.draw()
        self._spent, self._distance, self.answers = 0.0, 0.0, list[OnlineAnswer]()
        self._lock = threading.Lock()
        self._released = False

    @proves("composition")
    def ask(self, function: Callable[..., Any], budget: float) -> OnlineAnswer:
        """Add a question. Nothing is released.

        Args:
            function: as for `leakcap.plan`. It must have been fixed without any answer of this secret.
            budget: nats that all answers up to this one may tell about the secret half; above that of the one before.

        Returns:
            The question with its noise and certificate.

        Raises:
            AlreadyReleased: answers were released: a question that may have been chosen after seeing them is refused.
            InputError: the budget does not grow, or there are no steps left.

        Guarantee: with the stated confidence over the simulated pairs, all answers up to this one carry at most
        `budget` nats about the secret half, because no question depends on an answer.
        """
        with self._lock:
            if self._released:
                raise AlreadyReleased(
                    "answers were released: questions that are chosen after noisy answers are not covered here, where "
                    "they can tell many times what they are charged. Ask all questions before release(), or use a "
                    "session: lc.Session(data, cap=0.6)"
                )
            if len(self.answers) == self.steps:
                raise InputError(f"all {self.steps} steps are used: the confidence was shared among so many")
            if not checks.positive(budget=budget) > self._spent:
                raise InputError("budgets must grow: each is for all answers up to its own")
            answer = self._planned(function, budget)
            self._spent = budget
            self.answers.append(answer)
            return answer

    def _planned(self, function: Callable[..., Any], budget: float) -> OnlineAnswer:
        found = self._simulated(function)
        d, distance = found.node.size(), found.distance
        lost = self._distance + sampler_distance(d, REACH)
        own = budget - self._spent
        room = entropy_slack(lost, 2**self._units.count) - entropy_slack(self._distance, 2**self._units.count)
        if room >= own / 2:
            raise InputError("this budget is hardly above the one before: give this answer more")
        slack = online_slack(self.radius, self.pairs, self.steps, self._gamma)
        deviation = math.sqrt(online_variance(distance, slack, own - room))
        if self.radius > REACH * deviation:
            raise InputError("this budget asks for almost no noise: choose a smaller one")
        self._distance = lost
        noise = Noise(_plain_space(d, found.rows), np.full(d, deviation))
        made = self._certificate(noise, budget)
        if self.seeds is not None:
            made = replace(
                made,
                draws=seed_draws(0, self.pairs, self.seeds, found.cut),
                price_of_confidence=price_of_slack(distance + slack, distance),
                theorems=("secret-seeds", *made.theorems),
            )
        return OnlineAnswer(noise, found.node, made, found.answer)

    def _simulated(self, function: Callable[..., Any]) -> AskedInPairs:
        """The answers in all pairs, cut to the ball; the seeds of a question are its own."""
        answer = partial(_answer_in, self._pool, self._units, self.radius)
        if self.seeds is None:
            outputs = run_worlds(function, self._pool, self._units, self._worlds)
            rows = _in_ball(outputs.table, self.radius)
            distance = float(((rows[0::2] - rows[1::2]) ** 2).sum(axis=1).mean())
            return AskedInPairs(outputs.node, rows, distance, partial(answer, outputs.node, function))
        sown, rng = Sown.of(function, len(self._pool.data)), np.random.default_rng(secrets.randbits(128))
        drawn = rng.integers(0, SEEDS, size=(self.pairs, self.seeds, 1), dtype=np.uint32)
        task, pooled = SeedTask(sown, frozenset()), PooledUnits(self._pool, self._units)
        table, outputs = run_seeds(task, pooled, self._worlds, np.repeat(drawn, 2, axis=0))
        clouds = _in_ball(table, self.radius)
        cut = int((clouds != table).any(axis=-1).sum())
        distance = float(permuted_distances(clouds.reshape(self.pairs, 2, self.seeds, -1)).mean())
        return AskedInPairs(
            outputs.node,
            clouds[:, 0],
            distance,
            answer=lambda mask: answer(outputs.node, _with_fresh_seed(sown), mask),
            cut=cut,
        )

    def _certificate(self, noise: Noise, budget: float) -> Certificate:
        settings = modes.NoiseSettings(
            shape="isotropic",
            floor=0.0,
            weights=None,
            draws=None,
            machine=Machine(),
            seeded=False,
            public=(f"radius of the ball to which answers are cut: {self.radius:g}",),
            pool_public=("The noise: it follows from simulated answers in pairs of halves of the whole pool.",),
            not_promised=("Questions that were chosen after seeing an answer: none may follow.",),
        )
        return certificate(
            "confidence",
            self._worlds,
            noise.space,
            settings,
            **figures_by_information((mutual_information(budget),), self._worlds, budget),
            worlds=2 * self.pairs,
            confidence=1 - self._gamma,
            gamma=self._gamma,
            gamma_used=self._gamma / self.steps,
            bounds=self.steps,
            draws=(("pairs of worlds", self.pairs),),
            sampler_distance=self._distance,
            theorems=("composition", "currency", "sampler", "uniform-halves"),
            secret_id=self._ids.secret,
            data_id=self._ids.data,
        )

    def release(self) -> tuple[Release, ...]:
        """Draw one secret half, and release the answers to all questions on it. Once; no question can follow.

        Returns:
            The answers, in the order of the questions. The last certificate covers all of them.

        Raises:
            AlreadyReleased: they were released before.
            InputError: nothing was asked.
        """
        with self._lock:
            if not self.answers:
                raise InputError("ask something first")
            self._token.spend(quiet=False)
            self._released = True
            secret = independent_worlds(self._units.count, 1, OperatingSystem().bits(), 0.5).mask(0)
            return tuple(answer.released(secret) for answer in self.answers)


def _in_ball(rows: Floats, radius: float) -> Floats:
    """Answers cut to the ball: longer ones are shortened, part of the mechanism."""
    with np.errstate(all="ignore"):
        lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
        cut = rows * np.minimum(1.0, radius * (1 - 1e-12) / np.maximum(lengths, 1e-300))
    return np.where(np.isfinite(cut).all(axis=-1, keepdims=True), cut, 0.0)


def _plain_space(d: int, rows: Floats) -> Subspace:
    """All outputs as they are, about zero."""
    return Subspace(
        np.zeros(d),
        np.ones(d),
        rows,
        directions=np.eye(d),
        dual=None,
        outputs=rows,
        flat=np.zeros(d, dtype=np.bool_),
    )


def _with_fresh_seed(sown: Sown) -> Callable[..., Any]:
    """The function with a secret seed, drawn with the secret half and told to nobody."""
    return partial(sown, seed=(OperatingSystem().below(SEEDS),))


def _answer_in(
    pool: Pool, units: Units, radius: float, node: Node, function: Callable[..., Any], mask: Bools
) -> Floats:
    """The answer in one world, cut to the ball; zero where it fails in any way, or has another form."""

    def answer() -> Floats | None:
        form, numbers = one_answer(function, pool, units.rows_in(mask), frozenset())
        return None if any(node.differences(form)) else numbers

    found = unheard(answer)
    return np.zeros(node.size()) if found is None else _in_ball(found, radius)
