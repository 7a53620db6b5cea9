"""How long an answer takes does not tell whether somebody is in the tables, whose rows fail wherever they can.

CPU time, in pairs of the same question to two pools in turn. Honest pools are said to differ once in 1,000 times. That
times follow how much there is to do is another matter, and is told in docs/sharp-edges.md.
"""

from __future__ import annotations

import pytest

from tests.leaks.sql_pool_timing import CAPS, KINDS, MANY, seen, tries_again, two_pools
from tests.leaks.sql_timing import ALPHA

PAIRS, FEW = 40, 20  # a planted fault is seen in fewer


@pytest.mark.slow
@pytest.mark.parametrize("cap", CAPS)
def test_the_time_of_an_answer_does_not_tell_whether_somebody_is_there(
    cap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with two_pools(monkeypatch, cap) as sessions:
        for kind in KINDS:
            assert seen(sessions, kind, PAIRS) > ALPHA, kind


@pytest.mark.slow
def test_that_something_is_tried_is_caught_by_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with two_pools(monkeypatch, "pool cap") as sessions:
        tries_again(monkeypatch)
        assert seen(sessions, "what may fail", FEW) < ALPHA


@pytest.mark.slow
def test_that_rows_are_not_bounded_is_caught_by_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with two_pools(monkeypatch, "bits", rows=MANY) as sessions:
        for kind in KINDS:
            assert seen(sessions, kind, FEW, rows=MANY) < ALPHA, kind
