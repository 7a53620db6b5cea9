"""Hostile analysts against sessions on listed worlds: how sure the best guess about one person is in the end.

`python -m benchmarks.hostile [analyst ...] [--small]`. Each analyst plays many small sessions with drawn secrets and
answers; measured is the mean posterior of the surer guess, less luck (`sampled`). `--small` plays few and stores
nothing.
"""

from __future__ import annotations

import sys
import time
from functools import partial

import numpy as np
from tests.claims.sessions.analysts import ANALYSTS
from tests.claims.sessions.play import CAP, engine_of, leaves, pool, sampled, success

from benchmarks.records import record, slug
from leakcap.sessions.listed_worlds.cells import REACH
from leakcap.sessions.listed_worlds.engine import ListedWorlds
from leakcap.sessions.listed_worlds.rules import BrokenRealisedRule

SESSIONS, SMALL, ANSWERS = 1000, 5, 20
WORLDS, UNITS = 64, 8
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
            asked=f"at most {100 * CAP:.0f} %, within four standard errors",
        )
    return mean, error


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


PARTS = {**{slug(name): partial(measure, name) for name in ANALYSTS}, "realised-rule": broken}


def main(arguments: list[str]) -> None:
    named = [one for one in arguments if one not in FLAGS]
    for part in named or PARTS:
        if "--small" not in arguments:
            PARTS[part]()
        elif part != "realised-rule":
            PARTS[part](SMALL)


if __name__ == "__main__":
    main(sys.argv[1:])
