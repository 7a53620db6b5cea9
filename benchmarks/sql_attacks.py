"""Is somebody in the tables at all? Small filters and outliers, in SQL.

`python -m benchmarks.sql_attacks [bits] [pool] [worlds] [trials]` plays these games, or all of them.

The published attacks on such a database, through `session.sql`: by design "bits", under a pool cap, and on a list of
worlds, each with tight declarations (5 rows of one person, amounts to 100) and without a bound on rows (amounts to
100,000). The one who is looked for has 50 rows of 99,999; everybody else is known.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from tests.leaks.sql_attacks import BOUNDED, QUESTIONS, REFUSED, UNBOUNDED, Played, attacked

import leakcap as lc
from benchmarks.records import record

TRIALS = 500  # sessions with the person and as many without, for each question; half of them to find the rule
GAMES: dict[str, dict[str, Any]] = {
    "bits": {"cap": lc.membership(0.6)},
    "pool": {"cap": lc.pool_membership(0.55)},
    "worlds": {"cap": lc.membership(0.6), "design": "worlds", "worlds": 64},
}
WORDS = {
    "bits": 'design "bits", first game .60, the custodian asking',
    "pool": "under a pool cap of .55",
    "worlds": "on a list of 64 worlds, first game .60",
}


def main(trials: int = TRIALS, games: Sequence[str] = tuple(GAMES)) -> None:
    """Games, each with and without bounds."""
    for name in games:
        how = GAMES[name]
        said = []
        for declared, words in ((BOUNDED, "bounded"), (UNBOUNDED, "without a bound on rows")):
            with Played.of(declared, **how) as played:
                said.append(f"{words}: {', '.join(_said(played, one, trials) for one in QUESTIONS)}")
            print(name, said[-1], flush=True)
        if trials >= TRIALS:
            record(
                f"sql-attacks-{name}",
                "; ".join(said),
                topic="Questions in SQL",
                claim=f"guessing whether somebody is in the tables at all, {WORDS[name]}: one question with the whole "
                f"clock, a rule found on {TRIALS} sessions and played on {TRIALS} others, with 95 % intervals of "
                "Clopper and Pearson",
                command="python -m benchmarks.sql_attacks",
                asked="with bounds at most .55 but for chance"
                if name != "worlds"
                else "what a first-game cap leaves open",
            )


def _said(played: Played, question: str, trials: int) -> str:
    without, beside = played.seen(question, trials)
    if (without == REFUSED).all() and (beside == REFUSED).all():
        return f"{question} refused"
    found = attacked(without, beside)
    low, high = found.interval
    return f"{question} {100 * found.share:.0f} % ({100 * low:.0f} to {100 * high:.0f})"


PARTS = tuple(GAMES)

if __name__ == "__main__":
    numbers = [int(one) for one in sys.argv[1:] if one not in GAMES]
    main(*numbers or [TRIALS], games=[one for one in sys.argv[1:] if one in GAMES] or PARTS)
