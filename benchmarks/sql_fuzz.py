"""Random questions in SQL, each asked of two pools that differ in other people.

`python -m benchmarks.sql_fuzz [--times] [--kept=FILE] [questions] [minutes]` asks so many, and stops early after so
many minutes. With `--kept` what was seen is written there, and the next call about the same code goes on. A fault is
anything but a refusal or an answer: an error of another kind, one of the engine, a refusal or a plan that is another
in the other pool (of every fifth question), other groups, somebody who brings something else or more than is declared,
a question that takes longer than its limit twice; with `--times` also one that takes much longer where there is
somebody more, with values that fail wherever they can. Faults are printed with their number; `tests/sql/fuzz.py` asks
one again.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.sql.fuzz import Fuzz

import leakcap
from benchmarks.records import record

QUESTIONS, AT_ONCE, FEWEST, TIMES, KEPT = 100_000, 500, 1000, "--times", "--kept="
ROOMS = ("sql", "sessions")  # of the package, whose code is asked


@dataclass
class Seen:
    """What came of the questions so far, and of which code."""

    code: str
    asked: int = 0
    kinds: dict[str, int] = field(default_factory=dict)
    faults: int = 0
    again: int = 0
    seconds: float = 0.0  # of CPU

    @classmethod
    def so_far(cls, file: Path | None) -> Seen:
        """As it was kept; of other code nothing counts."""
        code, package = hashlib.sha256(), Path(leakcap.__file__).parent
        for path in sorted(one for room in ROOMS for one in (package / room).rglob("*.py")):
            code.update(path.read_bytes())
        kept = cls(**json.loads(file.read_text())) if file is not None and file.exists() else None
        return kept if kept is not None and kept.code == code.hexdigest() else cls(code.hexdigest())


def main(
    questions: float = QUESTIONS, minutes: float = float("inf"), *, times: bool = False, kept: Path | None = None
) -> None:
    """Ask, and store what was seen; with `times`, compare how long answers take, and store nothing."""
    end, seen = time.monotonic() + 60 * minutes, Seen.so_far(kept)
    with tempfile.TemporaryDirectory() as folder:
        fuzz = Fuzz.built(Path(folder), times=times)
        fuzz.again = seen.again
        while seen.asked < questions and time.monotonic() < end:
            began, fuzz.seen, fuzz.faults = time.process_time(), Counter(seen.kinds), []
            for number, said in fuzz.asked(range(seen.asked, seen.asked + AT_ONCE)):
                print(f"{number}: {said}: {fuzz.posed(number)[0]}", flush=True)
            seen.asked, seen.kinds, seen.faults = seen.asked + AT_ONCE, dict(fuzz.seen), seen.faults + len(fuzz.faults)
            seen.again = fuzz.again
            seen.seconds += time.process_time() - began
            print(f"{seen.asked:,}: {seen.kinds} [{seen.seconds:.0f} CPU s]", flush=True)
            if kept is not None:
                kept.write_text(json.dumps(asdict(seen)))
    if seen.asked < (FEWEST if kept is None else questions) or times:
        return
    record(
        "sql-fuzz",
        f"of {seen.asked:,} questions {seen.kinds.get('refused', 0):,} refused, {seen.kinds.get('answered', 0):,} "
        f"answered about people, {seen.kinds.get('public', 0):,} about public tables alone, {seen.faults} faults; "
        f"{seen.again} were asked once more, since others had the cores; {seen.seconds:,.0f} CPU seconds",
        topic="Questions in SQL",
        claim="random questions in SQL over two sets of tables, each asked of two pools that differ in other people: "
        "errors, other refusals, plans or groups, and people who bring something else",
        command="python -m benchmarks.sql_fuzz",
        asked="100,000 questions, no fault",
    )


PARTS: tuple[str, ...] = ()  # it is one

if __name__ == "__main__":
    files = [Path(one.removeprefix(KEPT)) for one in sys.argv[1:] if one.startswith(KEPT)]
    numbers = [float(one) for one in sys.argv[1:] if not one.startswith("--")]
    main(*numbers, times=TIMES in sys.argv, kept=files[0] if files else None)
