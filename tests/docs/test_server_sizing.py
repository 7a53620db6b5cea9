"""What the guide says of how large a machine a server needs is what the records have seen, and what it is built for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from benchmarks.records import seen

from leakcap.server import settings
from leakcap.server.settings import ServerLimits

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "query-server.md"
(WORDS,) = re.findall(r"## How large a machine\n(.*?)\n## ", PAGE.read_text(encoding="utf-8"), re.DOTALL)
COST = re.compile(r"takes (\d+) CPU ms of the server and (\d+) of its engine: for 16 analysts .* takes (\d+) cores")


def test_the_cost_of_a_question_is_that_of_the_record() -> None:
    told = COST.search(seen("server-count"))
    assert told
    server, engine, cores = map(int, told.groups())
    each = (server + engine) / 1000
    assert f"{server} ms of the server and {engine} ms of its engine | {each:.2f} for each" in WORDS
    assert f"without a pause | | {cores}, for nobody" in WORDS
    assert f"every 10 seconds each | | {16 / 10 * each:.1f} |" in WORDS


def test_the_cost_of_a_stored_answer_is_that_of_the_record() -> None:
    cost = sorted(map(float, re.findall(r"([\d.]+) CPU ms of the server", seen("server-stored"))))
    assert f"{cost[0]} ms to {cost[-1]} ms of the server" in WORDS
    (least,) = re.findall(r"one for (\d+) or more in a second", WORDS)
    assert 0.9 * 1000 / cost[-1] < int(least) <= 1000 / cost[-1]


def test_what_was_met_on_two_cores_is_that_of_the_record() -> None:
    found = seen("server-count")
    (apart,) = re.findall(r"10 s apart, (\d+) ms", found)
    (waited,) = re.findall(r"; 16 analysts (\d+) ms", found)
    assert f"{apart} ms after the engine" in " ".join(WORDS.split())
    assert f"waited {int(waited) / 1000:.1f} seconds beyond it" in " ".join(WORDS.split())
    held = re.search(r"32 analysts in 10.* (\d+) kills of the server and (\d+) of workers", seen("server-holds-up-32"))
    assert held and f"killed {sum(map(int, held.groups()))} times" in " ".join(WORDS.split())


def test_a_larger_machine_computes_more_questions_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """18 cores of which 8 were used would keep 16 analysts waiting."""
    found = []
    for cores in (2, 18):
        monkeypatch.setattr(settings, "threads", lambda cores=cores: cores)
        found.append(ServerLimits().at_once)
    assert found == [8, 18] and "and never fewer than 8" in WORDS
