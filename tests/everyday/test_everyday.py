"""Sixty things that people try first: each works, or is refused with a cure that then works."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.everyday.desk import Desk
from tests.everyday.lists import Task, mistakes, tasks

pytestmark = [
    pytest.mark.skipif(not os.environ.get("LEAKCAP_DATA"), reason="the data sets are not here: set LEAKCAP_DATA"),
    pytest.mark.usefixtures("few_worlds", "few_draws"),
]


def test_there_are_forty_tasks_and_twenty_mistakes() -> None:
    assert len({one.title for one in tasks()}) == 40
    assert len({one.title for one in mistakes()}) == 20


@pytest.mark.parametrize("one", tasks(), ids=lambda one: one.title)
def test_it_works(one: Task, tmp_path: Path) -> None:
    found = one.run(Desk(tmp_path))
    assert found <= one.within


@pytest.mark.parametrize("one", mistakes(), ids=lambda one: one.title)
def test_the_cure_works(one: Task, tmp_path: Path) -> None:
    one.run(Desk(tmp_path))
