"""Are answers in SQL right? `python -m benchmarks.sql_right [generated] [tpch]`.

The analyst's own text in plain DuckDB, on the rows of three worlds, beside ours in those worlds: 500 questions put
together at random about a small hospital, of which those that are refused are listed, and all of TPC-H at scale .01.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from tests.sql.generated import question
from tests.sql.hospital import registered
from tests.sql.test_right import (
    BY_PEOPLE,
    KEYS,
    NEAR,
    PUBLIC,
    QUESTIONS,
    Allowed,
    Compared,
    far,
    tolerances,
    tpch_tables,
    unlike,
)
from tests.sql.test_total import DIFFERENT
from tests.sql.tpch_queries import QUERIES

from benchmarks.records import record
from leakcap.sql.compile import compiled
from leakcap.sql.refusals import NotAnswered


def generated(questions: int = QUESTIONS) -> None:
    """Questions at random."""
    hospital, refused, largest = Compared(registered()), Counter[str](), defaultdict[str, float](float)
    numbers = 0
    for seed in range(questions):
        text, keys = question(seed)
        try:
            program = compiled(text, hospital.catalog)
        except NotAnswered as refusal:
            refused[str(refusal).rpartition("`: ")[2]] += 1
            print(f"{seed}: refused, {refusal}: {text}", flush=True)
            continue
        allowed = tolerances(program)[keys:]
        for mine, other in hospital.answers(program, text, keys):
            worst = differences(mine, other, allowed)
            numbers += len(worst)
            for name, one in worst:
                largest[name] = max(largest[name], one)
            if unlike(mine, other, allowed):
                print(f"{seed}: another answer: {text}", flush=True)
                largest["a group"] = float("inf")
    said = f"{questions - refused.total()} answered, {numbers:,} numbers, largest differences: "
    said += ", ".join(f"{name} {worst:.1g}" for name, worst in sorted(largest.items()))
    said += f"; {refused.total()} refused ({100 * refused.total() / questions:.1f} %)"
    said += "".join(f"; {count} of them: {why[:150]}" for why, count in refused.most_common(4))
    print(said)
    if questions < QUESTIONS:
        return
    record(
        "sql-right-generated",
        said,
        topic="Questions in SQL",
        claim=f"{questions} questions put together at random, at 3 worlds each: the analyst's own text in plain DuckDB "
        "on the rows of the world beside ours in it; differences are relative, of var, stddev (squared) and covar "
        "relative to the product of half ranges, of corr in tens; wanted differences "
        f"({len(DIFFERENT)} expressions row by row, such as x / 0) stand in tests/sql/test_total.py",
        command="python -m benchmarks.sql_right generated",
        asked=f"all at most {NEAR:.0e}; at most 10 % refused",
    )


def differences(mine: Any, other: Any, allowed: list[Allowed]) -> list[tuple[str, float]]:
    """Of all numbers that plain DuckDB gives, by what they are."""
    return [
        (one.name, far(ours, theirs, one))
        for key, row in other.items()
        for one, ours, theirs in zip(allowed, mine.get(key, [None] * len(row)), row, strict=True)
        if theirs is not None
    ]


def tpch() -> None:
    """TPC-H, customers as the people."""
    answered, worst, public, refused = 0, 0.0, [], []
    with tempfile.TemporaryDirectory() as folder:
        tables = Compared(tpch_tables(Path(folder)))
        for number, text in QUERIES.items():
            keys = KEYS.get(number, 0)
            try:
                program = compiled(text, tables.catalog)
            except NotAnswered:
                refused.append(number)
                continue
            if not program.releases:
                public.append(number)
                continue
            answered += 1
            allowed = tolerances(program)[keys:]
            for mine, other in tables.answers(program, text, keys):
                worst = max([worst, *(one for _, one in differences(mine, other, allowed))])
            print(f"Q{number}: {worst:.1g}", flush=True)
    if tuple(refused) != BY_PEOPLE or tuple(public) != PUBLIC:
        print(f"refused {refused}, public {public}")
    record(
        "sql-right-tpch",
        f"{answered} answered, largest relative difference {worst:.1g}; as public, for nothing: Q"
        f"{', Q'.join(map(str, public))}; refused, by the rows of people: Q{', Q'.join(map(str, refused))}",
        topic="Questions in SQL",
        claim="TPC-H at scale .01, customers as the people, at 3 worlds: the own text of each query in plain DuckDB on "
        "the rows of the world beside ours in it",
        command="python -m benchmarks.sql_right tpch",
        asked=f"16 answered, within {NEAR:.0e}; Q2, 11, 16 public; Q3, 10, 18 refused",
    )


PARTS = {"generated": generated, "tpch": tpch}

if __name__ == "__main__":
    for name in sys.argv[1:] or PARTS:
        PARTS[name]()
