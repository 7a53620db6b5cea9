"""How many adaptive answers a session on listed worlds gives at a cap, by the clock and by other rules.

`python -m benchmarks.session_answers [0.55] [0.60] [fresh]`. Adult, or Dry Bean as fresh data, 2,000 people, 1,024
random halves: counts of people under one or two random conditions, with noise of ten sampling errors, until the first
refusal. Beside it the success that the same questions would leave the best attacker with, had they been fixed before:
the cap is not kept by giving little.
"""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import leakcap as lc
from benchmarks.records import record, slug
from leakcap import datasets
from leakcap.noise import OperatingSystem
from leakcap.sessions.listed_worlds.cells import REACH
from leakcap.sessions.listed_worlds.charges import Clocks
from leakcap.sessions.listed_worlds.engine import ListedWorlds, SessionRule
from leakcap.sessions.listed_worlds.potentials import potentials_of
from leakcap.sessions.listed_worlds.rules import (
    CLOSED,
    AdditiveRule,
    AlwaysRule,
    SquaredRule,
    UnitInformationRule,
    WorldInformationRule,
)
from leakcap.worlds import draw_worlds

UNITS, WORLDS, NOISE = 2000, 1024, 10.0
SESSIONS, OTHERS = 100, 4  # by the clock, and by each of the other rules
MIN_PEOPLE, MIN_SHARE = 30, 1 / 200
TOPIC = "Sessions"
ASKED = {0.55: "at least 200, .005 below the cap at most", 0.6: "at least 500, .005 below the cap at most"}
RULES: dict[str, Callable[[float], SessionRule]] = {
    "clock": lambda cap: Clocks(potentials_of([lc.membership(cap)], 0.5)),
    "additive": AdditiveRule,
    "information about each": UnitInformationRule,
    "squares": SquaredRule,
    "information about the world": WorldInformationRule,
    "every transcript": AlwaysRule,
}


def adult() -> Any:
    return datasets.adult().drop(columns="split")


def beans() -> Any:
    """Dry Bean: data on which nothing was tuned."""
    return datasets.dry_bean()


POOLS: dict[str, Callable[[], Any]] = {"Adult": adult, "Dry Bean": beans}


def people(seed: int, pool: str = "Adult") -> Any:
    return POOLS[pool]().sample(UNITS, random_state=seed).reset_index(drop=True)


def condition(table: Any, rng: np.random.Generator) -> Any:
    """Of one column: equal to a random person's category, or above or below a random quantile."""
    column = table[table.columns[rng.integers(table.shape[1])]]
    if column.dtype.kind in "if":
        cut = np.quantile(column, rng.random())
        return (column > cut).to_numpy() if rng.random() < 0.5 else (column <= cut).to_numpy()
    return (column == column[rng.integers(len(column))]).to_numpy()


def questions(table: Any, rng: np.random.Generator) -> Iterator[Any]:
    """Masks of those who count, without end."""
    while True:
        chosen = condition(table, rng)
        if rng.random() < 0.5:
            chosen = chosen & condition(table, rng)
        if MIN_PEOPLE <= chosen.sum() <= len(chosen) - MIN_PEOPLE and chosen.mean() >= MIN_SHARE:
            yield chosen.astype(np.float64)


def counts(table: Any, masks: Any, seed: int) -> Iterator[tuple[Any, float]]:
    """Answers in every world, and the noise of each."""
    for chosen in questions(table, np.random.default_rng(seed)):
        answers = masks @ chosen
        yield answers, NOISE * float(answers.std())


def answered(rule: SessionRule, seed: int, reach: float, pool: str = "Adult") -> tuple[list[Any], Any, float]:
    """The questions until the first refusal, in noise deviations; the worlds; CPU seconds an answer."""
    worlds = draw_worlds(UNITS, WORLDS, np.random.default_rng(seed))
    engine, randomness = ListedWorlds(worlds, rule, reach), OperatingSystem()
    state, secret, given = engine.begin(), randomness.below(WORLDS), []
    masks, began = worlds.masks().astype(np.float64), time.process_time()
    for outputs, noise in counts(people(seed, pool), masks, seed):
        step = engine.ask(state, outputs, noise, secret=secret, randomness=randomness)
        if step is None:
            return given, masks, (time.process_time() - began) / (len(given) + 1)
        state = step[0]
        given.append(outputs / noise)
    raise AssertionError("questions have no end")


def fixed_success(given: list[Any], masks: Any, draws: int = 4000, seed: int = 0) -> float:
    """Of the best attacker against the most exposed person, had these questions been asked in any case.

    The most exposed is found on one half of the draws, and measured on the other.
    """
    table, rng = np.column_stack(given), np.random.default_rng(seed)
    seen = table[rng.integers(len(table), size=draws)] + rng.standard_normal((draws, table.shape[1]))
    logs = seen @ table.T - (table**2).sum(axis=1) / 2
    posterior = np.exp(logs - logs.max(axis=1, keepdims=True))
    posterior /= posterior.sum(axis=1, keepdims=True)
    share = posterior @ masks
    success = np.maximum(share, 1 - share)
    worst = int(success[: draws // 2].mean(axis=0).argmax())
    return float(success[draws // 2 :, worst].mean())


def played(job: tuple[str, float, int, str]) -> tuple[str, int, float, float]:
    """One session: the rule, how many answers, CPU seconds of each, and the success of fixed questions."""
    name, cap, seed, pool = job
    given, masks, seconds = answered(RULES[name](cap), seed, CLOSED if name == "every transcript" else REACH, pool)
    success = fixed_success(given, masks) if name == "clock" else float("nan")
    print(f"{cap:.2f} {name}: {len(given)} answers, {seconds:.3f} CPU s each; fixed before: {success:.4f}", flush=True)
    return name, len(given), seconds, success


def measure(cap: float, pool: str = "Adult", rules: tuple[str, ...] = tuple(RULES)) -> None:
    """The clock over many sessions, each with people, worlds, questions and a secret of its own."""
    jobs = [(name, cap, seed, pool) for name in rules for seed in range(SESSIONS if name == "clock" else OTHERS)]
    with multiprocessing.get_context("spawn").Pool() as crowd:
        found = crowd.map(played, jobs, chunksize=1)
    means = {name: f"{np.mean([one[1] for one in found if one[0] == name]):.0f}" for name in rules}
    clock = [one for one in found if one[0] == "clock"]
    answers, error = [one[1] for one in clock], np.std([one[1] for one in clock]) / np.sqrt(SESSIONS)
    cost, ends = np.mean([one[2] for one in clock]), [one[3] for one in clock]
    off = 100 * np.std(ends) / np.sqrt(SESSIONS)
    record(
        f"session-answers-{round(100 * cap)}{'' if pool == 'Adult' else f'-{slug(pool)}'}",
        f"{means.pop('clock')} answers on average, standard error {error:.0f} ({SESSIONS} sessions, {min(answers)} to "
        f"{max(answers)}), {cost:.2g} CPU s each; the same questions, fixed before, leave {100 * np.mean(ends):.2f} "
        f"% on average, standard error {off:.2f}. Other rules: "
        + ", ".join(f"{name} {number}" for name, number in means.items()),
        topic=TOPIC,
        claim=f"{pool}, {UNITS:,} people, {WORLDS:,} worlds, counts with noise of {NOISE:g} sampling errors: adaptive "
        f"answers until the first refusal at a membership cap of {cap:.2f}",
        command=f"python -m benchmarks.session_answers {f'{cap:.2f}' if pool == 'Adult' else 'fresh'}",
        asked=ASKED[cap] if pool == "Adult" else "-",
    )


PARTS = {
    **{f"{cap:.2f}": partial(measure, cap) for cap in (0.55, 0.6)},
    "fresh": partial(measure, 0.6, "Dry Bean", ("clock", "additive")),
}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
