"""Audit any model at all, private or not: train it again and again on random halves, and try to recognise who was in.

The attacked models are neither those that the attacks learn from, nor those by which thresholds are chosen.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.audit import statistics
from leakcap.audit.attacks.scored import STATISTICS, fitted
from leakcap.audit.report import AuditReport
from leakcap.audit.run import ALPHA
from leakcap.audit.verdicts import SHOWN, UNBOUNDED, Finding, judged
from leakcap.errors import InputError, OutputError
from leakcap.ground import checks
from leakcap.ground.arrays import Bits, Floats
from leakcap.simulate.executors import workers_for

__all__ = ["MODEL_ATTACKS", "model"]

Truths = npt.NDArray[np.bool_]
PARTS = (0.4, 0.2, 0.4)  # of the models: to learn from, to choose by, to be judged on
MIN_MODELS = 20
MODEL_ATTACKS = STATISTICS
"""Names of the attacks that `audit.model` knows."""


def model(
    *,
    train: Callable[..., Any],
    score: Callable[..., Any],
    data: tuple[Any, ...] | Any,
    attacks: Iterable[str] | None = None,
    models: int = 100,
    claimed: float | None = None,
    alpha: float = ALPHA,
    seed: int | None = None,
    backend: Any = None,
    workers: int | None = None,
) -> AuditReport:
    """How well members of a model's training data can be distinguished from others who could have been in it.

    Args:
        train: `train(*rows)` gives a model; called with random halves of the data.
        score: `score(model, *data)` gives a number for each row, higher where the model fits it better: the
            log-likelihood of the right label, minus the loss (see `leakcap.audit.shadow.scores`).
        data: an array, or a tuple of several that are sliced alike; at least four rows.
        attacks: names from `audit.MODEL_ATTACKS`. None: all of them.
        models: number of models to train, at least 20. More models make the figures surer.
        claimed: highest success against the most exposed row that somebody promises, to be refuted; None: no promise.
        alpha: probability that the audit says "refuted" of a promise that holds, over all its attacks.
        seed: seed of the random halves.
        backend: where models are trained: "serial", "threads", "processes", "dask", "dask://host:port" or what
            `lc.cluster.connect` gives. The halves are the same everywhere; so is the report where `train` draws from
            nothing but its rows.
        workers: how many processes or threads train at a time.

    Returns:
        A report with two findings for each attack: all rows on average, and the most exposed row. Custodian side.

    Raises:
        InputError: an attack is unknown, or the data differ in length.
        OutputError: `score` does not give a number for each row.

    Examples:
        >>> rows = np.random.default_rng(0).normal(size=20)
        >>> found = model(
        ...     train=lambda part: part.mean(),
        ...     score=lambda centre, part: -((part - centre) ** 2),
        ...     data=rows,
        ...     attacks=["threshold"],
        ...     models=20,
        ...     seed=0,
        ... )
        >>> len(found.findings), found.verdict
        (2, 'no promise')
    """
    rows = data if isinstance(data, tuple) else (data,)
    wanted = tuple(checks.choice(MODEL_ATTACKS, attacks=one) for one in (MODEL_ATTACKS if attacks is None else attacks))
    checks.count(at_least=MIN_MODELS, models=models)
    began = time.perf_counter()
    inside = _halves(rows, models, np.random.default_rng(seed))
    scores = _trained(train, score, rows, inside, backend=backend, workers=workers)
    ends = np.rint(np.cumsum(PARTS[:2]) * models).astype(int)
    (learn, choose, judge), (told, known, truth) = np.split(scores, ends), np.split(inside, ends)
    found: list[Finding] = []
    for name in wanted:
        statistic = fitted(name, learn, told)
        found += _findings(
            name,
            statistic(choose),
            known=known,
            judge=statistic(judge),
            truth=truth,
            claimed=claimed,
            alpha=alpha / len(wanted),
        )
    seconds = time.perf_counter() - began
    ranked = np.argsort(-np.abs(_apart(learn, told)), kind="stable")
    return AuditReport(
        findings=tuple(found),
        certificate=None,
        trials=models,
        alpha=alpha,
        target="model",
        seconds=seconds,
        exposed=tuple(int(one) for one in ranked[:10]),
    )


def _halves(rows: tuple[Any, ...], models: int, rng: np.random.Generator) -> Truths:
    n = len(rows[0])
    if n < 4 or any(len(part) != n for part in rows):
        raise InputError("data must be arrays of equal length, of four rows or more")
    inside = np.zeros((models, n), dtype=np.bool_)
    for one in inside:  # independent halves: complementary ones would not be two trials
        one[rng.permutation(n)[: n // 2]] = True
    return inside


def _trained(
    train: Callable[..., Any],
    score: Callable[..., Any],
    rows: tuple[Any, ...],
    inside: Truths,
    *,
    backend: Any,
    workers: int | None,
) -> Floats:
    """How well each model fits each row, `(models, rows)`."""
    scores = np.empty(inside.shape)
    count = None if workers is None else checks.count(workers=workers)
    doers = workers_for(backend, count, alone=count in (None, 1))
    halves = list(np.packbits(inside, axis=1))
    try:
        with closing(doers.run(_scored, (train, score, rows), halves)) as found:
            for place, numbers in found:
                scores[place] = numbers
    finally:
        doers.close()
    return scores


def _scored(train: Callable[..., Any], score: Callable[..., Any], rows: tuple[Any, ...], half: Bits) -> Floats:
    """How well a model of one half fits every row."""
    n = len(rows[0])
    chosen = np.flatnonzero(np.unpackbits(half, count=n))
    found = np.asarray(score(train(*(_taken(part, chosen) for part in rows)), *rows), dtype=np.float64)
    if found.shape != (n,):
        raise OutputError(f"score must give a number for each of the {n} rows")
    return found


def _taken(part: Any, chosen: npt.NDArray[np.intp]) -> Any:
    return part.iloc[chosen] if hasattr(part, "iloc") else part[chosen]


def _findings(
    name: str, chosen: Floats, known: Truths, judge: Floats, truth: Truths, claimed: float | None, alpha: float
) -> Iterator[Finding]:
    """The most exposed row, and everybody on average, with one threshold for all."""
    cuts = np.quantile(chosen, np.linspace(0.02, 0.98, 97))
    gains = [float(((chosen > cut) == known).mean()) for cut in cuts]
    cut = float(cuts[int(np.argmax(gains))])
    right = (judge > cut) == truth
    share = right.mean(axis=1)
    low, high = statistics.mean_interval(share, SHOWN)
    everybody = "whether a row was trained on, all rows"
    yield Finding(
        attack=name,
        question=everybody,
        measured=float(share.mean()),
        interval=(low, high),
        prior=0.5,
        certified=None,
        p_value=1.0,
        verdict=UNBOUNDED,
        trials=len(share),
    )
    own = np.array([_best_cut(chosen[:, row], known[:, row]) for row in range(chosen.shape[1])])
    exposed = int(own[:, 1].argmax())
    wins = int(((judge[:, exposed] > own[exposed, 0]) == truth[:, exposed]).sum())
    yield judged(
        name,
        "whether the most exposed row was trained on",
        wins,
        trials=len(judge),
        prior=0.5,
        certified=claimed,
        alpha=alpha,
        named=True,
    )


def _best_cut(scores: Floats, inside: Truths) -> tuple[float, float]:
    """The threshold that is right most often, and how often; ties go to the widest gap."""
    ranked = np.sort(scores)
    cuts = np.concatenate([[ranked[0] - 1], (ranked[1:] + ranked[:-1]) / 2])
    right = ((scores[None] > cuts[:, None]) == inside).mean(axis=1)
    gap = np.concatenate([[0.0], np.diff(ranked)])
    best = np.lexsort((gap, right))[-1]
    # Among rows that are all recognised, the one with the clearest gap is the most exposed.
    spread = max(float(ranked[-1] - ranked[0]), 1e-300)
    return float(cuts[best]), float(right[best]) + 1e-3 * float(gap[best]) / spread


def _apart(learn: Floats, told: Truths) -> Floats:
    """How far scores inside lie above those outside, in standard deviations, for each row."""
    count = np.maximum(told.sum(axis=0), 1)
    others = np.maximum(len(told) - told.sum(axis=0), 1)
    within = np.where(told, learn, 0.0).sum(axis=0) / count
    outside = np.where(told, 0.0, learn).sum(axis=0) / others
    return np.asarray((within - outside) / np.maximum(learn.std(axis=0), 1e-300))
