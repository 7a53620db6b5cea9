"""Certificates of encoded sets: two records, one of which has nothing to read a success off."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest

from leakcap.audit.conversions import conversions
from leakcap.certificates.obfuscation import (
    CHOSEN_PLAINTEXTS,
    ObfuscationCertificate,
    UnclaimedEncoding,
    encoding_from_json,
    not_promised,
)
from leakcap.errors import InputError
from tests.refusals import refusal
from tests.unit.certificates.encodings import claimed, unclaimed


@pytest.mark.parametrize("certificate", [claimed(), unclaimed(), claimed(kind="simulation")])
def test_a_certificate_comes_back_from_its_json(certificate: Any) -> None:
    assert encoding_from_json(certificate.to_json()) == certificate
    with pytest.raises(FrozenInstanceError):
        certificate.noise = 1.0


def test_only_noise_that_was_certified_is_a_guarantee() -> None:
    assert claimed().is_guarantee and not claimed(kind="simulation").is_guarantee and not unclaimed().is_guarantee
    names = {field.name for field in fields(UnclaimedEncoding)}
    figures = {"membership_success", "mean_success", "true_positives", "confidence", "theorems"}
    assert not names & figures and figures <= {field.name for field in fields(ObfuscationCertificate)}


@pytest.mark.parametrize(
    "changes",
    [
        {"membership_success": 0.4},
        {"membership_success": 1.1},
        {"mean_success": 0.7},
        {"noise": 0.0},
        {"noise": float("nan")},
        {"true_positives": [[0.01, 0.001]]},
        {"kind": "no_claim"},
        {"classes": 1},
        {"mix": 0},
        {"rows_released": 2.5},
        {"counted": 1},
        {"pool_public": "words"},
        {"not_promised": [3]},
        {"extra": 1},
    ],
)
def test_a_text_that_is_no_certificate_is_refused(changes: dict[str, Any]) -> None:
    given = {**json.loads(claimed().to_json()), **changes}
    refusal(lambda: encoding_from_json(json.dumps(given)), kind=InputError)


def test_figures_do_not_make_an_unclaimed_set_a_claimed_one() -> None:
    given = {**json.loads(unclaimed().to_json()), "membership_success": 0.55}
    refusal(lambda: encoding_from_json(json.dumps(given)), kind=InputError)
    refusal(lambda: encoding_from_json("no JSON"), kind=InputError)
    refusal(lambda: encoding_from_json("[]"), kind=InputError)


def test_the_words_round_up_and_name_game_attacker_and_limits() -> None:
    told = " ".join(str(claimed(not_promised=not_promised(False), membership_success=0.59991)).split())
    assert "60.00 %" in told and "50 %" in told and "The game" in told and "The attacker" in told
    assert CHOSEN_PLAINTEXTS in told and "means of 200 rows of one class and 200 of another" in told
    assert "SIMULATION" in str(claimed(kind="simulation"))
    assert str(unclaimed()).startswith("NO CLAIM") and "after, at most" not in str(unclaimed())


def test_pages_say_what_is_claimed_and_that_nothing_is() -> None:
    assert "60 %" in claimed(membership_success=0.6).to_html().replace("\xa0", " ")
    page = unclaimed().to_html()
    assert "No claim" in page and "What the attacker can do" not in page
    refusal(claimed(kind="simulation").to_html, "simulation")
    assert "Simulation" in claimed(kind="simulation").to_html(allow_simulation=True)


def test_sizes_that_do_not_fit_each_other_are_seen_without_the_plan() -> None:
    assert all(claim.holds for claim in conversions(claimed()))
    for wrong in ({"rows_released": 2_001}, {"mix": 4_001}, {"mask_dim": 1_281}, {"rows_sampled": 39_999}):
        assert not all(claim.holds for claim in conversions(claimed(**wrong)))
    assert [claim.holds for claim in conversions(unclaimed())] == [True]
