"""The JSON interface against its own description: whatever is sent, it answers in its own words and never fails."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.server.running import Running

schemathesis = pytest.importorskip("schemathesis", reason="no schemathesis here: pip install 'leakcap[dev]' brings it")
hypothesis = pytest.importorskip("hypothesis")
EXAMPLES = 8  # of each route
JSON = {"content-type": "application/json"}
PERHAPS = {400, 401, 403, 404, 405, 409, 413, 422, 429}


def failures(running: Running, examples: int, **more: Any) -> tuple[int, list[tuple[str, str, int]]]:
    """How many requests were sent, and those that failed or were refused in words that are not ours."""
    programs = [running.program(name) for name in ("ann", "carla")]
    settings = hypothesis.settings(
        max_examples=examples, database=None, deadline=None, suppress_health_check=list(hypothesis.HealthCheck), **more
    )
    wrong: list[tuple[str, str, int]] = []
    tried = [0]

    def send(program: Any, case: Any) -> None:
        tried[0] += 1
        sent = isinstance(case.body, (dict, list, str, int, float, bool))
        asked = {"content": json.dumps(case.body).encode(), "headers": JSON} if sent else {}
        found = program.request(case.method, case.formatted_path, params=dict(case.query or {}), **asked)
        words = found.json().get("error", "") if found.status_code >= 400 else "."
        if found.status_code >= 500 or not words.endswith(".") or found.status_code not in PERHAPS | {200, 201}:
            wrong.append((case.method, case.path, found.status_code))

    for operation in schemathesis.openapi.from_dict(running.app.openapi()).get_all_operations():
        anybody = hypothesis.strategies.sampled_from(programs)
        settings(hypothesis.given(program=anybody, case=operation.ok().as_strategy())(send))()
    return tried[0], wrong


@pytest.mark.filterwarnings("ignore")  # of the tool's own
def test_nothing_that_can_be_sent_makes_it_fail(running: Running) -> None:
    tried, wrong = failures(running, EXAMPLES, derandomize=True)
    assert wrong == [] and tried > 60


@pytest.mark.filterwarnings("ignore")
def test_a_planted_failure_is_found(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> Any:
        raise KeyError

    monkeypatch.setattr(type(running.state.audit_log), "latest", fails)
    assert ("GET", "/api/events", 500) in failures(running, 4, derandomize=True)[1]
