"""A verdict is "holds" only within a stated slack; what is above its bound is refuted or marked as within chance."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from leakcap.audit import AuditReport, Finding, check_mechanism
from leakcap.audit.verdicts import checked, judged


def report(*findings: Finding, trials: int = 2_000) -> AuditReport:
    return AuditReport(findings, None, trials, 1e-6, "mechanism", 1.0)


def check(high: float, p: float = 1.0) -> Finding:
    return checked(
        "law of the noise",
        "size",
        measured=1.0,
        interval=(0.995, high),
        claim=1.0,
        slack=0.01,
        p=p,
        alpha=1e-6,
        trials=1_000,
        reading="{} times as large",
    )


def guess(wins: int, trials: int = 10_000, certified: float = 0.6) -> Finding:
    return judged("bayes", "who it was", wins=wins, trials=trials, prior=0.5, certified=certified, alpha=1e-6)


def test_a_check_holds_within_its_slack_only() -> None:
    assert check(1.009).verdict == "holds" and check(1.009).needed is None
    wide = check(1.04)
    assert wide.verdict == "inconclusive" and wide.needed == pytest.approx(1.2 * 1_000 * 16, rel=1e-3)
    assert check(1.0, p=1e-9).verdict == check(9.0, p=1e-9).verdict == "refuted"


def test_a_figure_above_its_bound_is_refuted_or_within_chance() -> None:
    below, above, far = guess(5_990), guess(6_020), guess(6_900)
    assert [one.within_chance for one in (below, above, far)] == [False, True, False]
    assert (above.verdict, far.verdict) == ("inconclusive", "refuted")
    told = report(below, above)
    assert "1 of 2 figures lies above the bound, within chance" in told.sentence
    assert "inconclusive (above its bound, within chance)" in str(told) and "trials would decide" in str(told)
    held = json.loads(told.to_json())["findings"]
    assert [one["within_chance"] for one in held] == [False, True]
    page = told.to_html()
    assert "above that within chance" in page and "</span> within chance" in page


def test_the_first_line_says_what_was_found() -> None:
    assert (
        "the best attack (who it was) was right in 59.90% of cases, at most 60.00% allowed"
        in report(guess(5_990)).sentence
    )
    broken = report(guess(6_900)).sentence
    assert broken.startswith("REFUTED: bayes") and "69.00%, where at most 60.00% is allowed" in broken
    odd = report(check(1.0, p=1e-9)).sentence
    assert odd.startswith("REFUTED: the mechanism is not the one") and "1 times as large" in odd
    assert report(check(1.0)).sentence.startswith("Nothing refuted in 2,000 releases.")


def test_trials_that_would_decide_count_all_parts() -> None:
    wide = check(1.04)
    told = report(wide)
    assert told.trials_needed(wide) == 2 * (wide.needed or 0) and told.trials_needed(check(1.0)) is None
    assert f"{told.trials_needed(wide):,} would decide" in told.sentence


def coin(rate: float) -> Any:
    rng = np.random.default_rng()
    return lambda secret: secret if rng.random() < rate else 1 - secret


@pytest.mark.parametrize(
    ("epsilon", "trials", "verdict"), [(1.0, 10_000, "holds"), (1.0, 400, "inconclusive"), (0.5, 10_000, "refuted")]
)
def test_epsilon_holds_only_where_its_upper_end_is_near_the_claim(epsilon: float, trials: int, verdict: str) -> None:
    """Randomised response at epsilon 1."""
    found = check_mechanism(coin(1 / (1 + math.exp(-1))), [0, 1], epsilon=epsilon, trials=trials)
    one = found.findings[0]
    assert one.verdict == verdict, str(found)
    if verdict == "inconclusive":
        needed = found.trials_needed(one)
        assert needed is not None and trials < needed < 20_000
