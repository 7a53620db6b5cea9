"""`mode="confidence", design="bits"`: what such a plan says, gives and refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.report.release.page import public_page

X = np.random.default_rng(0).standard_normal((60, 2))


def planned(**options: Any) -> lc.Plan:
    given: dict[str, Any] = {"cap": 0.6, "design": "bits", "mode": "confidence", "worlds": 128, "seed": 1}
    return lc.plan(lambda rows: np.median(rows, axis=0), X, **given | options)


def test_the_certificate_names_the_promise_and_says_that_it_is_an_average() -> None:
    certificate = planned(seed=None).certificate
    facts = (certificate.kind, certificate.mode, certificate.design)
    assert facts == ("confidence", "confidence", "independent fair bits")
    assert certificate.whoever_is_known and certificate.on_average_over_the_known and not certificate.only_one_person
    assert certificate.colluders == 59
    text = " ".join(str(certificate).split())
    page = " ".join(public_page(certificate).replace("\u00a0", " ").split())
    for words in (text, page):
        assert "even knowing everything about everybody else" in words
        assert "on average over what they know" in words
        assert "for some ways in which they fall, a guess may succeed more often" in words
        assert "on the scale of the whole pool" not in words
    assert "In closed form" not in text
    assert lc.Certificate.from_json(certificate.to_json()) == certificate


def test_sums_over_people_promise_more_than_an_average() -> None:
    certificate = lc.plan(lc.stats.mean, X, cap=0.6, design="bits", seed=1).certificate
    assert certificate.whoever_is_known and not certificate.on_average_over_the_known
    assert "on average" not in str(certificate)


def test_other_caps_hold_too() -> None:
    caps = [lc.membership(0.6), lc.mutual_information(0.01), lc.name_a_member(0.7)]
    certificate = planned(cap=caps).certificate
    assert all(one.certified <= one.limit for one in certificate.capped)
    assert planned(cap=lc.identification(1e-3)).certificate.capped[0].before == 2.0**-60


def test_it_is_released_once_with_error_bars() -> None:
    plan = planned(seed=None)
    release = plan.release()
    low, high = release.interval(0.9)
    assert (low < high).all()
    with pytest.raises(lc.AlreadyReleased):
        plan.recap(0.55).release()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"worlds": "doubling"}, "needs mode='exact'"),
        ({"worlds": 32}, "at least 64"),
        ({"rate": 1 / 3}, "no rate"),
        ({"strata": np.arange(60) % 3}, "no strata"),
        ({"cap": 0.5 + 1e-13}, "coin flip"),
    ],
)
def test_what_cannot_be_had_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(lc.LeakcapError, match=message):
        planned(**options)


def test_an_audit_of_it_runs_and_looks_at_the_coins() -> None:
    report = lc.audit.run(planned(), trials=400)
    assert report.holds is not False
    assert any(finding.attack == "secret" for finding in report.findings)
