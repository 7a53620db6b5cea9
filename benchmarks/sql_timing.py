"""Does the time of an answer in SQL tell who took part, or who is there? `python -m benchmarks.sql_timing [part ...]`.

Questions are asked of both in turn, and the CPU seconds of each pair compared by Wilcoxon's signed rank test.
`members`: two sessions on the same tables, in one of which people with thirty times the rows take part, 500 questions;
the planted fault runs each question on the members alone. `pools`: two pools, of which one has somebody more, with
values that fail wherever they can; the planted fault tries again what fails.
"""

from __future__ import annotations

import sys

import pytest
from tests.leaks import sql_pool_timing, sql_timing

from benchmarks.records import record

PAIRS, POOL_PAIRS = 500, 60


def members(pairs: int = PAIRS) -> None:
    """Two sessions on the same tables, in which others take part."""
    found = []
    for planted in (False, True):
        with pytest.MonkeyPatch.context() as patch, sql_timing.two_sessions(patch) as sessions:
            if planted:
                sql_timing.runs_on_members_alone(patch, sessions)
            found.append(sql_timing.told(sessions, pairs))
            print(f"planted: {planted}, p = {found[-1]:.2g}", flush=True)
    if pairs < PAIRS:
        return
    record(
        "sql-timing",
        f"p = {found[0]:.2g}; with a planted run on the members alone p = {found[1]:.1g}",
        topic="Questions in SQL",
        claim="1,000 answers in SQL of two sessions whose members have 300 and 10 rows each: rank test that both take "
        "the same CPU time",
        command="python -m benchmarks.sql_timing members",
        asked="p above .001, the planted run below",
    )


def pools(pairs: int = POOL_PAIRS) -> None:
    """Two pools, of which one has somebody more."""
    said = []
    for cap in sql_pool_timing.CAPS:
        with pytest.MonkeyPatch.context() as patch, sql_pool_timing.two_pools(patch, cap) as sessions:
            found = [f"{kind} {sql_pool_timing.seen(sessions, kind, pairs):.2g}" for kind in sql_pool_timing.KINDS]
            said.append(f"{cap}: p = {', '.join(found)}")
            sql_pool_timing.tries_again(patch)
            planted = sql_pool_timing.seen(sessions, "what may fail", pairs // 3)
            said[-1] += f"; with a planted TRY {planted:.1g}"
            print(said[-1], flush=True)
    if pairs < POOL_PAIRS:
        return
    record(
        "sql-timing-pools",
        "; ".join(said),
        topic="Questions in SQL",
        claim=f"{2 * pairs} answers in SQL of each kind from two pools, of which one has somebody more, who had "
        "400,000 rows and whose values fail wherever they can: rank test that both take the same CPU time",
        command="python -m benchmarks.sql_timing pools",
        asked="p above .001, the planted fault below",
    )


PARTS = {"members": members, "pools": pools}

if __name__ == "__main__":
    for name in sys.argv[1:] or PARTS:
        PARTS[name]()
