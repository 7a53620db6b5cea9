"""Words for figures that bound nothing, and for what a pool cap publishes."""

from __future__ import annotations

import json

import numpy as np
import pytest

import leakcap as lc
from leakcap.certificates.text import in_short
from leakcap.errors import NumericalError
from leakcap.report.release.page import Answer, public_page

ROWS = np.random.default_rng(0).normal(50, 10, size=300)


def test_figures_of_100_per_cent_are_told_as_no_bound_and_stored_as_they_are() -> None:
    certificate = lc.plan(lc.stats.mean, ROWS, cap=0.95, design="bits").certificate
    assert certificate.name_a_member_success == 1.0
    text = str(certificate)
    line = next(line for line in text.splitlines() if "name one participant" in line)
    assert line.split()[-2:] == ["no", "bound"]
    assert "100.00 %" not in text
    page = certificate.to_html()
    assert "no bound" in page
    assert "<b>100" not in page
    assert json.loads(certificate.to_json())["name_a_member_success"] == 1.0
    assert lc.Certificate.from_json(certificate.to_json()) == certificate


def test_figures_below_are_told_in_per_cent() -> None:
    certificate = lc.plan(lc.stats.mean, ROWS, cap=0.6, design="bits").certificate
    assert "no bound" not in str(certificate)
    assert all("%" in after for _, _, after in in_short(certificate))


@pytest.mark.parametrize("cap", [lc.pool_membership(0.6), lc.membership(0.6)])
def test_intervals_speak_of_a_part_that_was_not_used_only_where_there_is_one(cap: lc.Cap) -> None:
    pool = isinstance(cap, type(lc.pool_membership(0.6)))
    plan = lc.plan(lc.stats.mean, ROWS, cap=cap, **({"bounds": (0, 100)} if pool else {"design": "bits"}))
    answer = Answer("mean", ("age",), np.array([1.0]), np.array([0.0]), np.array([2.0]))
    page = " ".join(public_page(plan.certificate, answer).split())
    assert ("part of the pool that was not used" in page) != pool
    assert "allow for the noise" in page


def test_a_pool_certificate_says_what_error_bars_follow_from() -> None:
    text = " ".join(str(lc.plan(lc.stats.mean, ROWS, cap=lc.pool_membership(0.6), bounds=(0, 100)).certificate).split())
    assert "None of them depends on the data" not in text
    assert "follow from the released noisy sums and the public bounds" in text


@pytest.mark.parametrize("options", [{"design": "bits"}, {"mode": "individual"}])
def test_numbers_too_large_are_refused_with_advice_that_works(options: dict[str, str]) -> None:
    rows = np.append(ROWS, 1e200)
    with pytest.raises(NumericalError, match="cut them to bounds of your own") as refused:
        lc.plan(lc.stats.mean, rows, cap=0.6, **options)
    assert "clip=" not in str(refused.value)
    lc.plan(lc.stats.mean, rows.clip(0, 100), cap=0.6, **options)
