"""Does the time of an answer in SQL tell who took part? `python -m benchmarks.sql_timing [pairs]`.

Two sessions on the same tables, in one of which people with thirty times the rows take part; 500 questions are asked of
both, in turn, and the CPU seconds of each pair compared by Wilcoxon's signed rank test. The planted fault runs each
question on the members alone.
"""

from __future__ import annotations

import sys

import pytest
from tests.leaks import sql_timing

from benchmarks.records import record

PAIRS = 500


def main(pairs: int = PAIRS) -> None:
    """Both, and what was seen."""
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
        command="python -m benchmarks.sql_timing",
        asked="p above .001, the planted run below",
    )


PARTS: tuple[str, ...] = ()  # it is one

if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
