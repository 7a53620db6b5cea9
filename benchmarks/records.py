"""What benchmarks have seen, one small JSON file a figure in `benchmarks/records/`.

A run stores its own figures with `record`, so that figures of long runs and of other machines keep their rows on
docs/benchmarks.md. Claim, command and what was asked are written once; a later run replaces what was seen, where and
when.
"""

from __future__ import annotations

import datetime
import json
import re
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from leakcap.ground.cores import threads

__all__ = ["FOLDER", "TOPICS", "Record", "record", "seen", "slug", "stored"]

FOLDER = Path(__file__).parent / "records"
TOPICS = (
    "Caps and noise",
    "Pool caps",
    "Without a holder",
    "Sessions",
    "Certifying: time and memory",
    "The command line",
    "All worlds at once",
    "On a GPU",
    "Private estimators",
    "Attacks",
    "Private labels",
    "Learnable obfuscation",
    "Encoded sets",
    "Reproductions",
    "Questions in SQL",
    "The ledger",
    "The server",
    "Beyond one machine",
    "The house",
)


@dataclass(frozen=True)
class Record:
    """One row of docs/benchmarks.md."""

    name: str  # also the name of the file
    topic: str  # one of TOPICS
    claim: str  # what was measured, in words
    command: str  # how to measure it again
    machine: str  # "two cores", "one H200"
    date: str  # of the run: 2026-11-15
    asked: str  # the goal, "-" where there was none
    seen: str  # the figure, with its unit or what it is relative to

    def store(self, folder: Path = FOLDER) -> None:
        text = json.dumps(asdict(self), indent=1, ensure_ascii=False)
        (folder / f"{self.name}.json").write_text(text + "\n", encoding="utf-8")


def record(name: str, seen: str, *, machine: str | None = None, folder: Path = FOLDER, **new: str) -> None:
    """Store what this run has seen, in the place of what an earlier one saw.

    The first time, `new` gives the other fields: `topic`, `claim`, `command`, `asked`. Later the stored ones stay.
    """
    path, today = folder / f"{name}.json", datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    run = {"seen": seen, "machine": machine or f"{threads()} cores", "date": today}
    held = replace(_read(path), **run) if path.is_file() else Record(name=name, **new, **run)
    held.store(folder)


def stored(folder: Path = FOLDER) -> list[Record]:
    """All records, topics in the order of TOPICS, names in that of the alphabet."""
    found = [_read(path) for path in sorted(folder.glob("*.json"))]
    return sorted(found, key=lambda one: TOPICS.index(one.topic))


def seen(name: str, folder: Path = FOLDER) -> str:
    """What the record of a name has seen, or nothing where there is none: no other is read for it."""
    path = folder / f"{name}.json"
    return _read(path).seen if path.is_file() else ""


def slug(words: str) -> str:
    """`"linear SVM, C = 1"` as part of a file's name: `linear-svm-c-1`."""
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")


def _read(path: Path) -> Record:
    held = json.loads(path.read_text(encoding="utf-8"))
    wanted = {field.name for field in fields(Record)}
    if set(held) != wanted or not all(isinstance(value, str) and value for value in held.values()):
        raise ValueError(f"{path.name} must hold {', '.join(sorted(wanted))}, each of them a text")
    if held["name"] != path.stem:
        raise ValueError(f"{path.name} is the record of {held['name']}")
    return Record(**held)
