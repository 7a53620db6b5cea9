"""Which certificates are composed, which are refused and why, and the composition as data."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.planning.released import forget_released

X = np.random.default_rng(1).normal(size=(16, 2))


@cache
def plain(number: int = 0) -> lc.Certificate:
    return lc.plan(np.mean, X + number, cap=0.8, worlds=16).certificate


@cache
def parts() -> tuple[lc.Certificate, ...]:
    forget_released()
    together = lc.plan_together([np.mean, np.std], X, cap=0.8, worlds=16)
    return tuple(part.certificate for part in together.apart(0.7))


def refused(*certificates: Any, data: Any = "independent") -> str:
    with pytest.raises(lc.InputError) as caught:
        lc.compose(*certificates, data=data)
    return str(caught.value)


def test_none_and_one_are_refused() -> None:
    assert "two certificates or more" in refused()
    assert "two certificates or more" in refused(plain())


@pytest.mark.parametrize("data", ["", "dependent", None, 3])
def test_unknown_relations_are_refused(data: Any) -> None:
    assert "data" in refused(plain(), plain(1), data=data)


def test_what_is_no_certificate_of_a_release_is_refused() -> None:
    labels = lc.labels.KRR(epsilon=1.0, n_classes=2).certificate(labels=10)
    session = lc.Session(X, cap=0.6, design="bits", seed=0).certificate
    composed = lc.compose(plain(), plain(1), data="independent")
    for other, reason in (
        (labels, "labels"),
        (session, "session"),
        (composed, "all at once"),
        (plain().to_json(), "give certificates"),
        (None, "give certificates"),
        (lc.plan(np.mean, X, cap=0.8, worlds=16, seed=1).certificate, "guarantee"),
    ):
        assert reason in refused(plain(), other)
        assert reason in refused(other, plain(), data="same")


def test_a_certificate_from_before_ids_is_read_and_refused() -> None:
    record = json.loads(plain().to_json())
    for name in ("secret_id", "data_id", "log_det", "signal"):
        del record[name]
    older = lc.Certificate.from_json(json.dumps(record))
    assert older.secret_id is None
    assert older.membership_success == plain().membership_success
    for data in ("independent", "same"):
        assert "states no ids" in refused(older, plain(1), data=data)


def test_answers_from_the_coins_of_an_account_are_left_to_its_clock(tmp_path: Any) -> None:
    account = {"cap": 0.7, "design": "bits", "ledger": f"sqlite:///{tmp_path / 'ledger.db'}"}
    coins = [lc.plan(lc.stats.mean, X[:, [column]], name="people", **account).certificate for column in (0, 1)]
    assert [one.secret_id for one in coins] == [None, None]
    for data in ("independent", "same"):
        assert "clock" in refused(*coins, data=data)
    own = lc.plan(np.mean, X, cap=0.7, worlds=16, ledger=f"sqlite:///{tmp_path / 'own.db'}", name="people")
    assert own.certificate.secret_id is not None, "a release by worlds has an account and a secret for itself"


@pytest.mark.parametrize("forged", ["", "A" * 32, "0" * 31, "0" * 33, 7, ["0" * 32]])
@pytest.mark.parametrize("name", ["secret_id", "data_id"])
def test_ids_of_another_form_are_refused(name: str, forged: Any) -> None:
    with pytest.raises(lc.InputError):
        lc.Certificate.from_json(json.dumps(json.loads(plain().to_json()) | {name: forged}))


def test_the_same_release_is_not_independent_of_itself() -> None:
    assert "same secret" in refused(plain(), plain())
    assert "same secret" in refused(*parts())
    other_secret = replace(parts()[1], secret_id="e" * 32)
    assert "same data set" in refused(parts()[0], other_secret)


def test_secrets_and_pools_that_differ_are_refused_as_the_same() -> None:
    assert "different secrets" in refused(plain(), plain(1), data="same")
    one, two = parts()
    for name, value in {"data_id": "f" * 32, "units": 17, "worlds": 32, "rate": "1/4"}.items():
        assert "different pools" in refused(one, replace(two, **{name: value}), data="same")
    for name in ("log_det", "signal"):
        assert "add up" in refused(one, replace(two, **{name: None}), data="same")


def test_promises_of_two_kinds_are_refused() -> None:
    pool = lc.plan(lc.stats.mean, X, cap=lc.pool_membership(0.6), bounds=(-5, 5)).certificate
    assert "two promises" in refused(pool, plain())


def test_what_bounds_one_person_alone_composes_to_that() -> None:
    pools = [
        lc.plan(lc.stats.mean, X, cap=lc.pool_membership(success), bounds=(-5, 5)).certificate for success in (0.6, 0.7)
    ]
    composed = lc.compose(*pools, data="independent")
    assert composed.membership_success == max(one.membership_success for one in pools)
    assert composed.mutual_information is None
    assert lc.Composition.from_json(composed.to_json()) == composed
    with pytest.raises(lc.InputError, match="one person"):
        composed.posterior(0.5)
    assert "Any guess but the one" in str(composed)


def test_a_composition_survives_json_and_no_entry_can_be_forged() -> None:
    for composed in (lc.compose(*parts(), data="same"), lc.compose(plain(), plain(1), data="independent")):
        assert lc.Composition.from_json(composed.to_json()) == composed
        record = json.loads(composed.to_json())
        for name, forged in {
            "data": "both",
            "parts": [],
            "membership_success": 1.5,
            "mutual_information": -1,
            "confidence": "all",
            "assumptions": "none",
            "theorems": [1],
            "leakcap_version": 3,
            "bonus": 1,
        }.items():
            with pytest.raises(lc.InputError):
                lc.Composition.from_json(json.dumps(record | {name: forged}))
        for broken in ({"secret_id": "x"}, {"gamma": 2}, {"bonus": 1}):
            forged_parts = [one | broken for one in record["parts"]]
            with pytest.raises(lc.InputError):
                lc.Composition.from_json(json.dumps(record | {"parts": forged_parts}))


def test_what_the_caller_declared_is_listed() -> None:
    text = " ".join(str(lc.compose(plain(), plain(1), data="independent")).split())
    assert "Declared by the caller, not checked: the data sets are independent" in text
    assert "Declared" not in str(lc.compose(*parts(), data="same"))


def test_figures_in_words_are_not_below_the_record() -> None:
    composed = replace(lc.compose(*parts(), data="same"), membership_success=0.612345, mutual_information=0.123449)
    text = str(composed)
    assert "61.24 %" in text
    assert "0.1235 nats" in text


def test_posterior_takes_arrays_and_refuses_what_is_no_probability() -> None:
    composed = lc.compose(plain(), plain(1), data="independent")
    priors = np.array([0.0, 0.01, 0.5, 1.0])
    found = composed.posterior(priors)
    assert found[0] == 0 and found[-1] == 1 and (found >= priors).all()
    assert composed.posterior(0.5) == found[2]
    for bad in (-0.1, 1.1, float("nan")):
        with pytest.raises(lc.InputError):
            composed.posterior(bad)


@pytest.mark.parametrize("version", ["9.9", "0.999.1", "banana 7.25"])
def test_certificates_of_later_versions_are_refused(version: str) -> None:
    ours, other = plain(), plain(1)
    lc.compose(ours, replace(other, leakcap_version="0.1.0"), data="independent")
    with pytest.raises(lc.InputError, match="later version") as refusal:
        lc.compose(ours, replace(other, leakcap_version=version), data="independent")
    assert "7.25" not in str(refusal.value)
