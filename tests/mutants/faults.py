"""Faults as records: where, what the line becomes, what it would mean for a user, and which tests must fail.

One TOML file a room, `tests/mutants/<room>.toml`, a `[[mutant]]` each.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["LISTS", "ROOT", "Mutant", "all_mutants", "by_commit", "chosen"]

LISTS = Path(__file__).parent
ROOT = LISTS.parent.parent
PACKAGE = ROOT / "src" / "leakcap"


@dataclass(frozen=True)
class Mutant:
    """One small fault.

    Attributes:
        name: of the fault, unique, the room first.
        file: below `src/leakcap`.
        line: text that the file holds exactly once.
        becomes: what stands there instead.
        means: what it would mean for a user, in a sentence.
        tests: nodes as pytest names them; every one must fail.
        survives: why no test can see it; empty where one must.
    """

    name: str
    file: str
    line: str
    becomes: str
    means: str
    tests: tuple[str, ...]
    survives: str = ""

    @property
    def room(self) -> str:
        return self.file.partition("/")[0]

    def problem(self, package: Path = PACKAGE) -> str:
        """Why the fault cannot be planted; empty where it can."""
        path = package / self.file
        if not path.is_file():
            return f"{self.file} does not exist"
        found = path.read_text().count(self.line)
        if found != 1:
            return f"{self.file} holds the line {found} times: name one that stands there once"
        if self.line == self.becomes:
            return "the line becomes itself"
        return "" if self.tests else "no test is named"

    def plant(self, package: Path) -> None:
        """Write the fault into a copy of the package."""
        path = package / self.file
        path.write_text(path.read_text().replace(self.line, self.becomes))


def all_mutants() -> tuple[Mutant, ...]:
    """The whole list, in the order of the files."""
    records = [record for path in sorted(LISTS.glob("*.toml")) for record in tomllib.loads(path.read_text())["mutant"]]
    return tuple(Mutant(**{**record, "tests": tuple(record["tests"])}) for record in records)


def chosen(mutants: Sequence[Mutant], names: Iterable[str]) -> tuple[Mutant, ...]:
    """Those of these names or of these rooms."""
    wanted = set(names)
    unknown = wanted - {mutant.name for mutant in mutants} - {mutant.room for mutant in mutants}
    if unknown:
        raise SystemExit(f"no mutant and no room is called {', '.join(sorted(unknown))}: see --list")
    return tuple(mutant for mutant in mutants if {mutant.name, mutant.room} & wanted)


def by_commit(mutants: Sequence[Mutant], commit: str, count: int = 6) -> tuple[Mutant, ...]:
    """A few, others for every commit and the same for the same one."""

    def place(mutant: Mutant) -> bytes:
        return hashlib.sha256(f"{commit} {mutant.name}".encode()).digest()

    return tuple(sorted(mutants, key=place)[:count])
