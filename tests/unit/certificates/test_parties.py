"""The certificate of parties: it follows from the question, says whom it holds against, and survives as JSON."""

from __future__ import annotations

import json

import pytest

import leakcap as lc
from leakcap.local import PartiesCertificate, promise
from tests.parties import small_question
from tests.refusals import refusal

POOL = promise(small_question())
BITS = promise(small_question(design="bits", rows=1000))


@pytest.mark.parametrize("certificate", [POOL, BITS])
def test_it_survives_as_json(certificate):
    again = PartiesCertificate.from_json(certificate.to_json())
    assert again == certificate
    assert str(again) == str(certificate)


def test_it_says_whom_it_holds_against_and_what_is_public():
    told = " ".join(str(POOL).split())
    for words in (
        "Another party who knows its own rows, or up to 1 of the 3 parties together",
        "semi-honest",
        "Not public: how many rows a party has",
        "Opened: the noisy sums, once",
        "Cap kept: at most 60.00 %",
        "exclusive or of coins of 2 parties",
    ):
        assert words in told
    assert "no party has more than 1,000 rows" in " ".join(str(BITS).split())


def test_figures_are_in_order():
    for certificate in (POOL, BITS):
        assert 0.599 < certificate.membership_success <= certificate.cap == 0.6
        assert certificate.membership_success < certificate.replaced_success < 0.7
        assert 0.01 < certificate.true_positive_rate(0.01) < 0.04
    assert POOL.pool_membership_success == POOL.membership_success
    assert BITS.pool_membership_success == pytest.approx(0.55, abs=1e-4)


@pytest.mark.parametrize(
    "changed",
    [
        {"kind": "pool"},
        {"design": "worlds"},
        {"membership_success": 1.5},
        {"threshold": 2},
        {"parties": "3"},
        {"known": 7},
        {"known": [7]},
        {"colour": "red"},
    ],
)
def test_other_json_is_refused(changed):
    given = json.loads(POOL.to_json()) | changed
    refusal(lambda: PartiesCertificate.from_json(json.dumps(given)), kind=lc.InputError)
