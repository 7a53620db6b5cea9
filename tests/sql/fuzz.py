"""Random questions by number, each asked of two pools that differ in other people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tests.sql.grammar import HOSPITAL, TPCH, question
from tests.sql.neighbours import ANSWERED, PUBLIC, REFUSED, Pool, Pools

__all__ = ["ANSWERED", "PUBLIC", "REFUSED", "Fuzz"]

STOPPED = "InterruptException"  # of the engine


@dataclass
class Fuzz:
    """Both sets of tables."""

    hospital: Pools
    tpch: Pools
    seen: Counter[str] = field(default_factory=Counter)
    faults: list[tuple[int, str]] = field(default_factory=list)
    again: int = 0  # questions that were stopped at their limit, and asked once more: others may have had the cores

    @classmethod
    def built(cls, folder: Path, *, times: bool = False) -> Fuzz:
        """With `times` every answer is also timed, with and without somebody more."""
        return cls(Pools.built(folder, times=times), Pools.built(folder, "tpch", times=times))

    def posed(self, number: int) -> tuple[str, Pools, Pool]:
        """A question, whom it is asked, and the other pool."""
        pools, words = (self.tpch, TPCH) if number % 4 == 3 else (self.hospital, HOSPITAL)
        return question(number, words), pools, pools.others[number // 4 % len(pools.others)]

    def outcome(self, number: int, *, plans: bool = False) -> str:
        """Of every fifth question the plans are compared: what they can hang on is few facts of a catalog."""
        text, pools, other = self.posed(number)
        return pools.outcome(text, other, plans=plans or number % 5 == 0)

    def asked(self, numbers: Iterable[int]) -> list[tuple[int, str]]:
        """Ask them; the faults among these, by number."""
        found = []
        for number in numbers:
            said = self.outcome(number)
            if STOPPED in said:
                self.again, said = self.again + 1, self.outcome(number)
            if said in (REFUSED, ANSWERED, PUBLIC):
                self.seen[said] += 1
            else:
                found.append((number, said))
        self.faults += found
        return found
