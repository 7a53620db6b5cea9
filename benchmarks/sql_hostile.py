"""Hostile questions in SQL, by kind: how many are answered, hang, or show a value. `python -m benchmarks.sql_hostile`.

All of `tests/sql/hostile.py`, about a small hospital: a question that is not refused is run, and counts as answered. It
hangs if it takes longer than HANGS seconds, and shows something if its refusal holds a value of
people's rows that the question did not.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from tests.sql.hostile import REFUSED
from tests.sql.others import Hospitals
from tests.sql.test_hostile import peoples_values, refusal_of, shown_of

from benchmarks.records import record

HANGS = 10.0  # CPU seconds


def main() -> None:
    """Ask them all."""
    values, kinds, longest = peoples_values(), [], 0.0
    answered = hung = shown = 0
    with tempfile.TemporaryDirectory() as folder:
        hospitals = Hospitals.built(Path(folder))
        for kind, texts in REFUSED.items():
            for text in texts:
                began = time.process_time()
                refusal = refusal_of(hospitals, text)
                took = time.process_time() - began
                longest = max(longest, took)
                answered += refusal is None
                hung += took > HANGS
                shown += refusal is not None and bool(shown_of(refusal, text) & values)
            kinds.append(f"{kind} {len(texts)}")
            print(f"{kinds[-1]}: {answered} answered, {hung} hung, {shown} shown by now", flush=True)
    total = sum(map(len, REFUSED.values()))
    record(
        "sql-hostile",
        f"{total} questions: {answered} answered, {hung} hung (the longest took {longest:.1f} CPU seconds to refuse), "
        f"{shown} showed a value; {', '.join(kinds)}",
        topic="Questions in SQL",
        claim="hostile questions in SQL about people, by kind: how many are answered, hang, or show a value of a row",
        command="python -m benchmarks.sql_hostile",
        asked="400 questions, none answered, none hung, none showing a value",
    )


PARTS: tuple[str, ...] = ()  # it is one

if __name__ == "__main__":
    main()
