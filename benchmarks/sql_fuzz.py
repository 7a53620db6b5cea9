"""Random questions in SQL, each asked of two pools that differ in other people.

`python -m benchmarks.sql_fuzz [--times] [questions] [minutes]` asks so many, and stops early after so many minutes. A
fault is anything but a refusal or an answer: an error of another kind, one of the engine, a refusal or a plan that is
another in the other pool (of every fifth question), other groups, somebody who brings something else or more than is
declared, a question that takes longer than its limit; with `--times` also one that takes much longer where there is
somebody more, with values that fail wherever they can. Faults are printed with their number; `tests/sql/fuzz.py` asks
one again.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from tests.sql.fuzz import Fuzz

from benchmarks.records import record

QUESTIONS, AT_ONCE, FEWEST, TIMES = 100_000, 500, 1000, "--times"


def main(questions: int = QUESTIONS, minutes: float = float("inf"), *, times: bool = False) -> None:
    """Ask, and store what was seen; with `times`, compare how long answers take, and store nothing."""
    began, end = time.process_time(), time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory() as folder:
        fuzz, asked = Fuzz.built(Path(folder), times=times), 0
        while asked < questions and time.monotonic() < end:
            for number, said in fuzz.asked(range(asked, asked + AT_ONCE)):
                print(f"{number}: {said}: {fuzz.posed(number)[0]}", flush=True)
            asked += AT_ONCE
            print(f"{asked:,}: {dict(fuzz.seen)} [{time.process_time() - began:.0f} CPU s]", flush=True)
    if asked < FEWEST or times:
        return
    seen = fuzz.seen
    record(
        "sql-fuzz",
        f"of {asked:,} questions {seen['refused']:,} refused, {seen['answered']:,} answered about people, "
        f"{seen['public']:,} about public tables alone, {len(fuzz.faults)} faults; "
        f"{time.process_time() - began:,.0f} CPU seconds",
        topic="Questions in SQL",
        claim="random questions in SQL over two sets of tables, each asked of two pools that differ in other people: "
        "errors, other refusals, plans or groups, and people who bring something else",
        command="python -m benchmarks.sql_fuzz",
        asked="100,000 questions, no fault",
    )


PARTS: tuple[str, ...] = ()  # it is one

if __name__ == "__main__":
    main(*(int(one) for one in sys.argv[1:] if one != TIMES), times=TIMES in sys.argv)
