"""Which files come first where several processes share the tests (`pytest -n`): those that take longest.

A file is one process's, so that what its tests share is made once; so are the files of a folder that share clusters.
One that takes minutes and comes last would hold up the end, with nothing left for the others to do. And there is one
process more than cores: tests wait for servers, browsers and time limits.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

from xdist.scheduler import LoadFileScheduling

__all__ = ["LongestFirst", "in_turn", "processes"]

SHARED = ("tests/unit/cluster",)
# The longest first, those of more than 15 CPU seconds; all others go by how many tests they hold.
LONGEST = (
    "tests/docs/test_guides.py",
    "tests/unit/cluster",
    "tests/leaks/test_cluster.py",
    "tests/claims/estimators/test_conformance.py",
    "tests/claims/obfuscation/test_one_unit.py",
    "tests/claims/audit/test_planted_faults.py",
    "tests/kills/test_kills.py",
    "tests/leaks/test_server_timing.py",
    "tests/unit/server/test_in_a_browser.py",
    "tests/claims/audit/test_sessions.py",
    "tests/claims/audit/test_memorisation.py",
    "tests/claims/modes/test_coverage.py",
    "tests/claims/obfuscation/test_coverage.py",
    "tests/claims/audit/test_encoded_attacks.py",
    "tests/sql/test_hostile.py",
    "tests/unit/server/test_distilling.py",
    "tests/claims/estimators/test_distilled.py",
)


def processes() -> int:
    """How many test beside each other."""
    return (os.cpu_count() or 1) + 1


def turn_of(nodeid: str) -> str:
    """The file or folder that is one process's."""
    file = nodeid.split("::", maxsplit=1)[0]
    folder = file.rpartition("/")[0]
    return folder if folder in SHARED else file


def in_turn(items: list[Any]) -> None:
    """Sort tests: those of a file stay together, in their order."""
    sizes = Counter(turn_of(one.nodeid) for one in items)

    def place(item: Any) -> tuple[int, int, str]:
        turn = turn_of(item.nodeid)
        return LONGEST.index(turn) if turn in LONGEST else len(LONGEST), -sizes[turn], turn

    items.sort(key=place)


class LongestFirst(LoadFileScheduling):  # type: ignore[misc]
    """Hands out files and shared folders as tests come."""

    def _split_scope(self, nodeid: str) -> str:
        return turn_of(nodeid)
