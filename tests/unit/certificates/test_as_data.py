"""Certificates as data: they survive a file, and no entry can be changed unnoticed."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

import pytest
from scipy.stats import norm

import leakcap as lc
from tests.unit.planning.means import SMALL, X, mean, seeded


def test_a_certificate_survives_json() -> None:
    for options in ({}, {"cap": lc.membership(0.75)}, {"floor": 0.2}):
        certificate = seeded(**options).certificate
        again = lc.Certificate.from_json(certificate.to_json())
        assert again == certificate
        assert again.to_json() == certificate.to_json()
        assert str(again) == str(certificate)
        assert again.posterior(0.3) == certificate.posterior(0.3)
        assert again.given(2) == certificate.given(2)
        assert again.true_positive_rate(0.01) == certificate.true_positive_rate(0.01)


def test_json_is_plain_and_in_a_stable_order() -> None:
    text = seeded().certificate.to_json()
    names = list(json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON")))
    assert names == sorted(names)


NO_CERTIFICATE = ["", "no JSON", "null", "[]", "3", '"text"', "{}", '{"kind": "exact"}']


@pytest.mark.parametrize("text", NO_CERTIFICATE)
def test_json_that_is_no_certificate_is_refused(text: str) -> None:
    with pytest.raises(lc.InputError):
        lc.Certificate.from_json(text)


TAMPERED: dict[str, Any] = {
    "kind": "certified",
    "membership_success": "0.5",
    "mutual_information": -1.0,
    "leakage_curve": [1, 2],
    "hockey_sticks": "none",
    "known_memberships": [[1]],
    "name_a_member_success": 1.5,
    "capped": [{"cap": "Membership"}],
    "worlds": "many",
    "units": -3,
    "rate": "half",
    "confidence": 7,
    "gamma": None,
    "attempt": 1.5,
    "bounds": [],
    "draws": [1, 2],
    "integrated": "yes",
    "theorems": "exact-membership",
    "assumptions": [1, 2],
    "leakcap_version": 3,
}


@pytest.mark.parametrize("name", TAMPERED)
def test_tampered_json_is_refused(name: str) -> None:
    record = json.loads(seeded().certificate.to_json())
    with pytest.raises(lc.InputError):
        lc.Certificate.from_json(json.dumps(record | {name: TAMPERED[name]}))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_json_with_numbers_that_are_none_is_refused(value: float) -> None:
    record = json.loads(seeded().certificate.to_json())
    with pytest.raises(lc.InputError):
        lc.Certificate.from_json(json.dumps(record | {"membership_success": value}))


def test_missing_and_unknown_entries_are_refused() -> None:
    record = json.loads(seeded().certificate.to_json())
    for name in set(record) - {"gamma_again"}:
        with pytest.raises(lc.InputError):
            lc.Certificate.from_json(json.dumps({key: value for key, value in record.items() if key != name}))
    with pytest.raises(lc.InputError):
        lc.Certificate.from_json(json.dumps(record | {"bonus": 1}))


def test_a_certificate_from_before_the_split_of_gamma_was_stated_is_read() -> None:
    record = json.loads(seeded().certificate.to_json())
    assert record.pop("gamma_again") == 0  # one stage: nobody was looked at again
    older = lc.Certificate.from_json(json.dumps(record))
    assert older.gamma_again is None
    assert json.loads(older.to_json()) == record


def test_the_split_of_gamma_is_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    stages = import_module("leakcap.leakage.stages")
    for name, value in {"FLOPS": 1.0, "PLENTY_FLOPS": 1.0, "FEWEST": 256, "FEW_UNITS": 8}.items():
        monkeypatch.setattr(stages, name, value)
    certificate = seeded(draws=512).certificate
    assert [draws for name, draws in certificate.draws if name.startswith("units")] == [256, 512]
    assert certificate.gamma_again == certificate.gamma_used / 2
    assert "for the few who got more draws" in " ".join(str(certificate).split())
    assert "for the few who got more draws" in certificate.to_html(allow_simulation=True)
    for forged in (-1e-9, certificate.gamma_used * 1.01):
        with pytest.raises(lc.InputError):
            lc.Certificate.from_json(json.dumps(json.loads(certificate.to_json()) | {"gamma_again": forged}))


def test_a_certificate_cannot_be_edited() -> None:
    certificate = seeded().certificate
    with pytest.raises(AttributeError):
        certificate.membership_success = 0.5  # type: ignore[misc]
    with pytest.raises(AttributeError):
        certificate.capped[0].certified = 0.5  # type: ignore[misc]
    with pytest.raises((TypeError, AttributeError)):
        certificate.draws["units"] = 10**9  # type: ignore[index]


def test_a_release_cannot_be_edited() -> None:
    release = lc.plan(mean, X, seed=1, **SMALL).release()
    with pytest.raises(AttributeError):
        release.certificate = None  # type: ignore[misc, assignment]


def test_the_certificate_names_its_setting() -> None:
    certificate = lc.plan(mean, X, seed=1, public=["column names"], **SMALL).certificate
    assert (certificate.worlds, certificate.units, certificate.outputs) == (32, 30, 3)
    assert certificate.rate == "1/2"
    assert certificate.colluders == 5
    assert certificate.declared_public == ("column names",)
    text = " ".join(str(certificate).split())
    assert "column names" in text
    assert "log2 of 32 worlds" in text
    assert "It does not hide that somebody is in the data" in text
    assert norm.cdf(0) == certificate.sampling_rate
