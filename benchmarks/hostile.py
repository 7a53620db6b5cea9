"""Hostile analysts against sessions: how sure the best guess about one person is in the end.

`python -m benchmarks.hostile [part ...] [--small]`. On listed worlds each analyst plays many small sessions and some of
full size, with drawn secrets and answers; measured is the mean posterior of the surer guess, less luck (`sampled`).
With a coin for everybody they know all coins but one, and ask through real sessions. `--small` plays few and stores
nothing.
"""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from tests.claims.sessions.analysts import ANALYSTS
from tests.claims.sessions.coin_analysts import ANALYSTS as COIN_ANALYSTS
from tests.claims.sessions.coin_analysts import watched
from tests.claims.sessions.play import CAP, engine_of, leaves, pool, sampled, success

from benchmarks.records import record, slug
from leakcap.sessions.listed_worlds.cells import REACH
from leakcap.sessions.listed_worlds.engine import ListedWorlds
from leakcap.sessions.listed_worlds.rules import BrokenRealisedRule

SESSIONS, SMALL, ANSWERS = 1000, 5, 20
WORLDS, UNITS = 64, 8
FULL, FULL_WORLDS, FULL_UNITS, FULL_COINS = 20, 1024, 2000, 2000
ASKED = f"at most {100 * CAP:.0f} %, within four standard errors"
FLAGS = ("--small",)


def played(name: str, sessions: int) -> tuple[float, float]:
    """The mean and its standard error."""
    engine = engine_of(pool(WORLDS, UNITS), reach=REACH)
    found = sampled(engine, ANALYSTS[name][0], 0, sessions=sessions, answers=ANSWERS, seed=0)
    return float(found.mean()), float(found.std() / np.sqrt(sessions))


def measure(name: str, sessions: int = SESSIONS) -> tuple[float, float]:
    began = time.process_time()
    mean, error = played(name, sessions)
    print(f"{name}: {mean:.4f} +- {error:.4f} [{time.process_time() - began:.0f} CPU s]", flush=True)
    if sessions == SESSIONS:
        record(
            f"hostile-{slug(name)}",
            f"{100 * mean:.2f} %, standard error {100 * error:.3f} %",
            topic="Sessions",
            claim=f"{name} analyst, {SESSIONS:,} sessions of up to {ANSWERS} answers on {WORLDS} worlds of {UNITS} "
            "people: success of the best guess about a person named before",
            command=f"python -m benchmarks.hostile {slug(name)}",
            asked=ASKED,
        )
    return mean, error


def one_at_full_size(job: tuple[str, int]) -> float:
    name, seed = job
    engine = engine_of(pool(FULL_WORLDS, FULL_UNITS), reach=REACH)
    return float(sampled(engine, ANALYSTS[name][0], 0, sessions=1, answers=ANSWERS, seed=seed)[0])


def one_with_coins(job: tuple[str, int, int]) -> float:
    name, seed, people = job
    return watched(COIN_ANALYSTS[name], seed, people)


def full_size(sessions: int = FULL) -> None:
    """All analysts, side by side."""
    jobs = [(name, seed) for name in ANALYSTS for seed in range(sessions)]
    _beside("hostile-full-size", jobs, one_at_full_size, sessions, f"{FULL_WORLDS:,} worlds of {FULL_UNITS:,} people")


def coins(sessions: int = SESSIONS) -> None:
    """The same for sessions with a coin for everybody: what is known of one coin by whoever knows all others."""
    jobs = [(name, seed, 6) for name in COIN_ANALYSTS for seed in range(sessions)]
    _beside("hostile-coins", jobs, one_with_coins, sessions, "a coin for each of 6 people, all others known")


def coins_at_full_size(sessions: int = FULL) -> None:
    jobs = [(name, seed, FULL_COINS) for name in COIN_ANALYSTS for seed in range(sessions)]
    what = f"a coin for each of {FULL_COINS:,} people, all others known"
    _beside("hostile-coins-full-size", jobs, one_with_coins, sessions, what)


def _beside(name: str, jobs: list[Any], play: Callable[[Any], float], sessions: int, what: str) -> None:
    with multiprocessing.get_context("spawn").Pool() as crowd:
        found = crowd.map(play, jobs, chunksize=max(1, sessions // 50))
    seen: dict[str, list[float]] = {}
    for job, one in zip(jobs, found, strict=True):
        seen.setdefault(job[0], []).append(one)
    told = [
        f"{analyst} {100 * np.mean(ends):.2f} +- {100 * np.std(ends) / np.sqrt(sessions):.2f}"
        for analyst, ends in seen.items()
    ]
    print(name, "; ".join(told), flush=True)
    if sessions > SMALL:
        record(
            name,
            "; ".join(told) + " %",
            topic="Sessions",
            claim=f"{len(seen)} hostile analysts, {sessions:,} sessions each, {what}: success of the best guess about "
            "a person named before, and its standard error",
            command=f"python -m benchmarks.hostile {name.removeprefix('hostile-')}",
            asked=ASKED,
        )


def broken() -> None:
    """Set splitting against the rule that looks at the realised posterior alone."""
    engine = ListedWorlds(pool(1024, 10), BrokenRealisedRule(CAP), REACH)
    found = success(leaves(engine, ANALYSTS["set splitting"][0], 0, ANSWERS))
    print(f"the realised rule: {found:.4f}", flush=True)
    record(
        "hostile-realised-rule",
        f"{100 * found:.1f} %",
        topic="Sessions",
        claim="set splitting analyst against the rule that looks at the realised posterior alone, which is broken; "
        f"1,024 worlds of 10 people, all sessions of up to {ANSWERS} answers",
        command="python -m benchmarks.hostile realised-rule",
        asked="above 81 %",
    )


PARTS: dict[str, Callable[..., Any]] = {
    **{slug(name): partial(measure, name) for name in ANALYSTS},
    "full-size": full_size,
    "coins": coins,
    "coins-full-size": coins_at_full_size,
    "realised-rule": broken,
}


def main(arguments: list[str]) -> None:
    named = [one for one in arguments if one not in FLAGS]
    for part in named or PARTS:
        if "--small" not in arguments:
            PARTS[part]()
        elif part != "realised-rule":
            PARTS[part](SMALL)


if __name__ == "__main__":
    main(sys.argv[1:])
