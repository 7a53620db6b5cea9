"""`audit.run`: make releases, and let every attack learn, choose and be judged on separate ones."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.audit.attacks import (
    bayes,
    collude,
    draws,
    insider,
    law,
    learned,
    learnt_noise,
    posterior,
    predictable,
    scored,
    secret,
    tasks,
    world,
)
from leakcap.audit.attacks.membership import Scorer, Units, membership
from leakcap.audit.attacks.noise import Noises, recovered
from leakcap.audit.attacks.posterior import Belief
from leakcap.audit.pool import pool_attacked
from leakcap.audit.report import AuditReport
from leakcap.audit.sessions import MIN_TRIALS, session_attacked, votes_attacked
from leakcap.audit.shadow.scores import fit_of
from leakcap.audit.trials import Known, Trials, knowledge, releases
from leakcap.audit.verdicts import Finding
from leakcap.caps import Cap, Task
from leakcap.errors import InputError
from leakcap.estimators.base import PrivateEstimator
from leakcap.estimators.distilled import Distilled
from leakcap.ground import checks
from leakcap.planning.plans import Plan
from leakcap.sessions.session import Session
from leakcap.simulate.executors import workers_for
from leakcap.worlds import GivenInputs, Worlds

__all__ = ["ALPHA", "ATTACKS", "MIN_TRIALS", "PARTS", "Bench", "run", "tried"]

Attack = Callable[["Bench", float], Iterator[Finding]]
# A user's attack: from what is known and what was seen to a function that scores every unit for given releases.
Own = Callable[[Known, Trials], Callable[[npt.NDArray[np.float64]], npt.ArrayLike]]
PARTS = (0.3, 0.2, 0.5)  # of the releases: to learn from, to choose by, to be judged on
RELEASE_PARTS = (0.2, 0.1, 0.7)  # the same where releases are many
# By default: 42,000 are judged, which leave a share open once in 75 audits if it is at its bound of .6, and once in 900
# if it is .002 below, as for most plans.
TRIALS = 60_000
NOISE_NUMBERS = 10  # noise numbers looked at, times the number of trials
ENOUGH_NUMBERS = 400_000  # of noise: no further releases are made for more
COINS_FOLLOWED = 256  # units, the most exposed first, whose coins the noise must not know
MAX_FURTHER = 6  # times the number of trials: releases made for that, at most
MAX_NUMBERS = 2**25  # in those
TIES = 811_293_057  # seed of what breaks ties: no release draws from it, and equal releases have equal reports
ALPHA = 1e-6  # of a false refutation in the whole audit
SCORED = ("threshold", "lira", "lira offline", "rmia")
CLAIMED, SEEN = "by the claimed noise", "by the noise as seen"


def run(
    target: Any,
    *,
    attacks: Iterable[str | Own] | None = None,
    trials: int = TRIALS,
    data: tuple[Any, ...] | None = None,
    score: Callable[..., Any] = fit_of,
    alpha: float = ALPHA,
    backend: Any = None,
) -> AuditReport:
    """Attack the releases of a plan or of a fitted private estimator, and compare with the certificate.

    The audit makes `trials` releases by the code of `release()`, each with its own secret. Attacks learn the secrets of
    the releases that they learn from. This spends the plan: audit one that was released, or that never will be.

    Args:
        target: a plan, a session, or a fitted private estimator in the process that fitted it. A session's questions
            are asked again, in accounts of their own and with other coins, and whoever knows everybody else guesses
            one person's coin from all answers; nothing is charged. Of a plan under a pool cap whoever knows everybody
            else looks for one person in the sums. Of a distilled model the votes are attacked: it needs `data=(X, y)`,
            or `(X, y, unit)` where a person has several rows. None of these takes `attacks`.
        attacks: names from `audit.ATTACKS`, or functions `attack(known, learn)` that return a score of every unit for
            given releases (see `leakcap.testing.check_attack`). None: all that apply.
        trials: number of releases to make, at least 200.
        data: the rows that an estimator was fitted to, `(X,)` or `(X, y)`, each row a unit. This adds the attacks by
            score (LiRA, RMIA, thresholds), with the plan's own releases as their shadow models.
        score: `score(estimator, *data)`, how well it fits each row. The default goes by the kind of the estimator.
        alpha: probability that the audit says "refuted" of a certificate that holds, over all its attacks.
        backend: "dask", "dask://host:port" or what `lc.cluster.connect` gives: attacks run side by side on workers of a
            cluster, which may then learn the secrets of these releases. None: one after the other, here.

    Returns:
        A report with a finding for each attack and question. Custodian side.

    Raises:
        InputError: the target has no plan, an attack is unknown, or `data` are not the units of an estimator.

    Examples:
        >>> import leakcap as lc
        >>> rows = np.random.default_rng(0).normal(size=(40, 2))
        >>> plan = lc.plan(lc.stats.mean, rows, cap=lc.membership(0.7), worlds=32, seed=0, draws=512)
        >>> run(plan, attacks=["world"], trials=400).holds
        True
    """
    if isinstance(target, Session):
        return _of_answers(target, attacks, trials=trials, data=data, alpha=alpha, backend=backend)
    if isinstance(target, PrivateEstimator) and not hasattr(target, "plan_"):
        return _of_session(target, attacks, trials=trials, data=data, alpha=alpha)
    plan, model = _plan_of(target)
    if plan.certificate.mode == "pool":
        if attacks is not None or data is not None or backend is not None:
            raise InputError(
                "a release under a pool cap is attacked by its sums: leave attacks=, data= and backend= out"
            )
        return pool_attacked(plan, trials, checks.fraction(alpha=alpha))
    wanted = list((OF_INPUTS if plan.certificate.of_inputs else ATTACKS) if attacks is None else attacks)
    for one in wanted:
        _attack(one)  # refused before anything is spent
        if plan.certificate.of_inputs and one not in OF_INPUTS:
            raise InputError(f"given inputs have no people in them: the attacks on them are {', '.join(OF_INPUTS)}")
    checks.count(at_least=MIN_TRIALS, trials=trials)
    checks.fraction(alpha=alpha)
    began = time.perf_counter()
    fit = _fit(plan, model, data, score)
    bench = Bench.of(plan, knowledge(plan, model=model), releases(plan, trials, model=model, score=fit))
    found = tried(bench, wanted, alpha) if backend is None else _tried_elsewhere(bench, wanted, alpha, backend)
    seconds = time.perf_counter() - began
    name = type(target).__name__ if model else "plan"
    return AuditReport(
        findings=found,
        certificate=plan.certificate,
        trials=trials,
        alpha=alpha,
        target=name,
        seconds=seconds,
        exposed=bench.exposed,
    )


@dataclass(frozen=True, eq=False)
class Bench:
    """A plan, what is known of it, and its releases in three parts."""

    plan: Plan | None  # None where it may not be: in other processes
    known: Known
    trials: Trials
    worlds: Worlds | GivenInputs
    caps: tuple[Cap, ...]

    @classmethod
    def of(cls, plan: Plan, known: Known, trials: Trials) -> Bench:
        return cls(plan, known, trials, plan.run.worlds, tuple(plan.caps))

    def to_travel(self) -> Bench:
        """The same without the plan, which stays in its process; what only it can give is there already."""
        other = replace(self, plan=None)
        vars(other).update(more=self.more, noise=self.noise)
        return other

    @cached_property
    def parts(self) -> list[Trials]:
        """Releases to learn from, to choose by, and to be judged on."""
        return self.trials.split(*RELEASE_PARTS)

    @cached_property
    def beliefs(self) -> dict[str, Belief]:
        """The posterior over worlds, by the claimed noise and by the noise as seen."""
        ways = {CLAIMED: posterior.as_claimed(self.known), SEEN: posterior.as_seen(self.known, self.parts[0])}
        shares = self.worlds.shares
        return {
            way: belief if shares is None else belief.with_prior(shares)
            for way, belief in ways.items()
            if belief is not None
        }

    @cached_property
    def scores(self) -> dict[str, Scorer]:
        return {way: bayes.participation(self.known, belief) for way, belief in self.beliefs.items()}

    @cached_property
    def more(self) -> Trials | None:
        """Further releases for checks of noise and secret, which many numbers are needed for; None where none are."""
        rank = 0 if self.known.factor is None else self.known.factor.shape[1]
        if self.plan is None or not rank or (self.trials.secret is None and self.known.steps is None):
            return None
        k, d = self.trials.seen.shape
        wanted = math.ceil(min(NOISE_NUMBERS * k, ENOUGH_NUMBERS) / rank)
        further = min(wanted, MAX_FURTHER * k, k + MAX_NUMBERS // d) - k
        return releases(self.plan, further) if further > 0 else None

    @cached_property
    def all_trials(self) -> list[Trials]:
        """The releases and those further ones."""
        return [self.trials] if self.more is None else [self.trials, self.more]

    @cached_property
    def noise(self) -> Noises | None:
        """The noise of all of them."""
        return recovered(self.known, self.all_trials, np.random.default_rng([TIES, 0]))

    @property
    def exposed(self) -> tuple[int, ...]:
        """The units that the plan knows to be the most exposed, by number."""
        return tuple(int(unit) for unit in self.known.exposed[:10])


def tried(bench: Bench, attacks: Iterable[str | Own], alpha: float) -> tuple[Finding, ...]:
    """What these attacks find. Each has an equal share of `alpha`, and divides it among its own questions."""
    wanted = [_attack(one) for one in attacks]
    return tuple(finding for attack in wanted for finding in attack(bench, alpha / len(wanted)))


def _tried_elsewhere(bench: Bench, wanted: list[str | Own], alpha: float, backend: Any) -> tuple[Finding, ...]:
    """The same, with every attack a task of its own; but for those that need the plan itself."""
    here = [one == "predictable" for one in wanted]
    share = alpha / len(wanted)
    found: dict[int, tuple[Finding, ...]] = {}
    doers = workers_for(backend, None, alone=False)
    try:
        there = [place for place, stays in enumerate(here) if not stays]
        with closing(doers.run(_tried_one, (bench.to_travel(), share), [wanted[place] for place in there])) as answers:
            for place, findings in answers:
                found[there[place]] = findings
    finally:
        doers.close()
    found |= {place: _tried_one(bench, share, wanted[place]) for place, stays in enumerate(here) if stays}
    return tuple(finding for place in range(len(wanted)) for finding in found[place])


def _tried_one(bench: Bench, alpha: float, one: str | Own) -> tuple[Finding, ...]:
    return tried(bench, [one], alpha)


def _bayes(bench: Bench, alpha: float) -> Iterator[Finding]:
    _, choose, judge = bench.parts
    for way, score in bench.scores.items():
        share = alpha / (3 * len(bench.scores))
        yield from membership(
            f"bayes, {way}", bench.known, choose=choose, judge=judge, score=score, alpha=share, even=bench.known.rate
        )


def _learned(bench: Bench, alpha: float) -> Iterator[Finding]:
    learn, choose, judge = bench.parts
    score = learned.directions(learn)
    if score is not None:
        yield from membership("learned", bench.known, choose=choose, judge=judge, score=score, alpha=alpha / 3)


def _world(bench: Bench, alpha: float) -> Iterator[Finding]:
    for way, belief in bench.beliefs.items():
        share = alpha / len(bench.beliefs)
        yield world.identify(f"world, {way}", bench.known, judge=bench.parts[2], belief=belief, alpha=share)


def _generalized(bench: Bench, alpha: float) -> Iterator[Finding]:
    prior = world.prior_of_most(bench.worlds.masks()) if bench.scores else 1.0
    for way, score in bench.scores.items():
        share = alpha / (2 * len(bench.scores))
        yield from world.everybody(
            f"generalized, {way}", bench.known, judge=bench.parts[2], score=score, prior=prior, alpha=share
        )


def _collude(bench: Bench, alpha: float) -> Iterator[Finding]:
    told = [k for k, _ in bench.known.certificate.known_memberships]
    learn, choose, judge = bench.parts
    scores = insider.knowing_all_others(bench.known, learn)
    for way, score in scores.items():
        share = alpha / (3 * len(scores))
        yield from membership(
            f"collude, {way}", bench.known, choose=choose, judge=judge, score=score, alpha=share, even=0.0
        )
    if CLAIMED in bench.beliefs:
        for k in told:
            unit, share = int(bench.known.exposed[0]), alpha / len(told)
            yield collude.collude(
                "collude",
                bench.known,
                judge=bench.parts[2],
                belief=bench.beliefs[CLAIMED],
                unit=unit,
                told=k,
                alpha=share,
            )


def _task(bench: Bench, alpha: float) -> Iterator[Finding]:
    asked = [cap for cap in bench.caps if isinstance(cap, Task)]
    if CLAIMED in bench.beliefs:
        for cap in asked:
            wins: npt.NDArray[np.float64] = np.asarray(
                cap.wins(bench.worlds.listed()) if callable(cap.wins) else cap.wins, dtype=np.float64
            )
            belief, share = bench.beliefs[CLAIMED], alpha / len(asked)
            yield tasks.task("task", bench.known, judge=bench.parts[2], belief=belief, wins=wins, alpha=share)


def _law(bench: Bench, alpha: float) -> Iterator[Finding]:
    if bench.noise is None:
        return
    if bench.known.worlds is None:
        coins = np.concatenate([some.inside(bench.known.exposed[:COINS_FOLLOWED]) for some in bench.all_trials])
        yield from law.law(bench.known, bench.noise, alpha * 2 / 3, coins)
        yield from learnt_noise.learnt_noise(bench.noise, None, alpha / 3)
    else:
        yield from law.law(bench.known, bench.noise, alpha * 2 / 3)
        certified = world.certified_naming(bench.known)[1]
        yield from learnt_noise.learnt_noise(bench.noise, certified, alpha / 3)


def _secret(bench: Bench, alpha: float) -> Iterator[Finding]:
    learn, _, judge = bench.parts
    if bench.known.certificate.whoever_is_known:
        yield from secret.coins(bench.trials, alpha, np.random.default_rng([TIES, 1]))
    if learn.secret is None or bench.known.worlds is None:
        return
    m = bench.known.worlds.m
    drawn = np.concatenate([some.secret for some in bench.all_trials if some.secret is not None])
    shares = bench.known.worlds.shares
    if shares is None:
        yield from secret.uniform(drawn, m, alpha * 2 / 3, np.random.default_rng([TIES, 1]))
    else:
        yield secret.by_prior(drawn, shares, alpha * 2 / 3)
    for way, belief in bench.beliefs.items():
        learnt = belief.with_prior(secret.learnt_prior(learn.secret, m))
        share = alpha / (3 * len(bench.beliefs))
        yield world.identify(f"secret, {way}", bench.known, judge=judge, belief=learnt, alpha=share)


def _draws(bench: Bench, alpha: float) -> Iterator[Finding]:
    drawn = [some.drawn for some in bench.all_trials if some.drawn is not None]
    if drawn:
        yield from draws.draws(np.concatenate(drawn), alpha)


def _predictable(bench: Bench, alpha: float) -> Iterator[Finding]:
    if bench.plan is None or bench.known.worlds is None:
        return
    found = predictable.predictable(bench.plan, bench.trials, alpha)
    if found is not None:
        yield found


def _by_score(bench: Bench, alpha: float) -> Iterator[Finding]:
    learn, choose, judge = bench.parts
    if learn.scores is not None:
        for name in SCORED:
            made, share = scored.scorer(name, learn), alpha / (3 * len(SCORED))
            yield from membership(name, bench.known, choose=choose, judge=judge, score=made, alpha=share)


def by_own_scores(given: Own) -> Attack:
    """An attack on participation from a function that scores every unit: the unit and the threshold are chosen here."""
    name = getattr(given, "__name__", type(given).__name__)

    def attack(bench: Bench, alpha: float) -> Iterator[Finding]:
        learn, choose, judge = bench.parts
        made = given(bench.known, learn)

        def score(trials: Trials, rows: slice, units: Units = slice(None)) -> npt.NDArray[Any]:
            return np.asarray(made(trials.seen[rows]))[:, units]

        yield from membership(name, bench.known, choose=choose, judge=judge, score=score, alpha=alpha / 3)

    return attack


def _fit(plan: Plan, model: bool, data: tuple[Any, ...] | None, score: Callable[..., Any]) -> Any:
    if data is None:
        return None
    if not model or any(len(part) != plan.run.worlds.n for part in data):
        raise InputError("data= is for estimators whose units are rows: give the rows that the estimator was fitted to")
    return lambda value: score(value, *data)


_NAMED: dict[str, Attack] = {
    "bayes": _bayes,
    "learned": _learned,
    "world": _world,
    "generalized": _generalized,
    "collude": _collude,
    "task": _task,
    "score": _by_score,
    "law": _law,
    "secret": _secret,
    "draws": _draws,
    "predictable": _predictable,
}
OF_INPUTS = ("world", "task", "law", "secret", "draws", "predictable")  # where there are no people
ATTACKS = tuple(_NAMED)
"""Names of the attacks that `audit.run` knows."""


def _attack(given: str | Own) -> Attack:
    return _NAMED[str(checks.choice(ATTACKS, attacks=given))] if isinstance(given, str) else by_own_scores(given)


def _of_session(
    target: PrivateEstimator, attacks: Any, *, trials: int, data: tuple[Any, ...] | None, alpha: float
) -> AuditReport:
    """The audit of a distilled model: what it released are answers of a session."""
    if not hasattr(target, "certificate_"):
        raise InputError(f"this {type(target).__name__} was not fitted yet: call fit first")
    if not isinstance(target, Distilled):
        raise InputError(
            f"a {type(target).__name__} of these settings is made of answers of a session, of which no plan is kept. "
            "leakcap.audit.model(train=, score=, data=) attacks whatever a function trains; "
            "leakcap.testing.check_mechanism tries any two data sets"
        )
    if data is None or attacks is not None:
        raise InputError(
            "a distilled model is attacked by its released votes alone, and holds no rows: leave attacks= out, and "
            "give data=(X, y), those that it was fitted to, or data=(X, y, unit)"
        )
    return votes_attacked(target, data, trials, checks.fraction(alpha=alpha))


def _of_answers(target: Session, attacks: Any, *, trials: int, data: Any, alpha: float, backend: Any) -> AuditReport:
    if attacks is not None or data is not None or backend is not None:
        raise InputError("a session is attacked by all its answers: leave attacks=, data= and backend= out")
    return session_attacked(target, trials, checks.fraction(alpha=alpha))


def _plan_of(target: Any) -> tuple[Plan, bool]:
    if isinstance(target, Plan):
        return target, False
    if hasattr(target, "plan_"):
        return target.plan_, True
    raise InputError(
        "audit.run takes a plan, a session or a fitted private estimator in the process that fitted it; for other "
        "models use audit.model(train=, score=, data=)"
    )
