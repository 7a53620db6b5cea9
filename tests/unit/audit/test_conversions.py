"""Figures worked out again from the record alone: true ones agree, and an edited one is seen."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap import convert
from leakcap.audit import conversions as module
from leakcap.audit.conversions import conversions

ROWS = np.random.default_rng(4).normal(40, 9, size=(120, 2))
WORLDS = {"worlds": 64, "draws": 1024, "design": "worlds"}
POOL = {"cap": lc.pool_membership(0.6), "bounds": (0, 100)}


def planned(**options: Any) -> lc.Certificate:
    return lc.plan(options.pop("fn", lc.stats.mean), ROWS, **options).certificate


MADE: dict[str, Callable[[], Any]] = {
    "worlds": lambda: planned(cap=[lc.membership(0.6), lc.any_inference(0.1, 0.3)], **WORLDS),
    "information": lambda: planned(cap=[lc.mutual_information(0.1), lc.name_a_member(0.7)], **WORLDS),
    "identification": lambda: planned(cap=[lc.identification(0.2), lc.true_positive_rate(0.01, 0.2)], **WORLDS),
    "one output": lambda: planned(fn=lambda x: x[:, 0].mean(), cap=0.6, **WORLDS),
    "a third": lambda: planned(cap=0.6, rate=1 / 3, worlds=63, draws=1024, design="worlds"),
    "nothing to hide": lambda: planned(fn=lambda x: 3.0, cap=0.6, **WORLDS),
    "bits": lambda: planned(cap=[lc.membership(0.6), lc.true_positive_rate(0.01, 0.2)], design="bits"),
    "exponential": lambda: planned(cap=0.6, design="bits", mechanism="exponential"),
    "pool": lambda: planned(**POOL),
    "confidence": lambda: planned(cap=0.75, mode="confidence", worlds=64),
    "individual": lambda: planned(cap=0.75, mode="individual", worlds=64),
    "empirical": lambda: planned(cap=lc.mutual_information(1), mode="empirical"),
    "simulation": lambda: planned(cap=0.6, seed=1, **WORLDS),
    "labels": lambda: lc.labels.KRR(epsilon=1.0, n_classes=5).certificate(labels=100),
    "labels, delta": lambda: lc.labels.Gaussian(epsilon=1.0, delta=1e-6, n_classes=5).certificate(labels=100),
    "session": lambda: lc.Session(ROWS, cap=0.6).certificate,
    "session of all": lambda: lc.Session(ROWS, cap=lc.pool_membership(0.6)).certificate,
    "session of worlds": lambda: lc.Session(ROWS, cap=0.6, design="worlds").certificate,
}


@cache
def made(kind: str) -> Any:
    return MADE[kind]()


def refuted(certificate: Any) -> list[str]:
    return [claim.words for claim in conversions(certificate) if not claim.holds]


@pytest.mark.filterwarnings("ignore::leakcap.errors.LeakcapWarning")
@pytest.mark.parametrize("kind", MADE)
def test_what_was_certified_agrees_with_itself(kind: str) -> None:
    claims = list(conversions(made(kind)))
    assert claims and all(claim.holds for claim in claims), refuted(made(kind))
    assert not any("NOT" in claim.words for claim in claims)


def lower(pairs: Any, share: float = 0.9) -> Any:
    return tuple((first, share * second) for first, second in pairs)


def of_the_cap(certificate: lc.Certificate, place: int = 0, **changes: Any) -> lc.Certificate:
    capped = list(certificate.capped)
    capped[place] = replace(capped[place], **changes)
    return replace(certificate, capped=tuple(capped))


EDITED: dict[str, tuple[str, Callable[[Any], Any], str]] = {
    "a cap that is not kept": ("bits", lambda c: of_the_cap(c, limit=0.55), "cap is NOT kept"),
    "a cap's figure": ("worlds", lambda c: of_the_cap(c, certified=0.55), "figure is NOT the one of the record"),
    "the success alone": ("worlds", lambda c: replace(c, membership_success=0.55), "NOT the one of the record"),
    "information of a cap": ("information", lambda c: of_the_cap(c, certified=0.01), "NOT the one of the record"),
    "naming of a cap": ("information", lambda c: of_the_cap(c, 1, certified=0.51), "NOT the one of the record"),
    "any question of a cap": ("worlds", lambda c: of_the_cap(c, 1, certified=0.11), "does NOT follow from the record"),
    "the world of a cap": ("identification", lambda c: of_the_cap(c, certified=0.016), "does NOT follow"),
    "recognition of a cap": ("identification", lambda c: of_the_cap(c, 1, certified=0.011), "does NOT follow"),
    "the information": (
        "worlds",
        lambda c: replace(c, mutual_information=c.mutual_information / 4),
        "within the stated",
    ),
    "a curve below chance": ("worlds", lambda c: replace(c, leakage_curve=((0.5, 0.4),)), "within the stated"),
    "the confidence": ("worlds", lambda c: replace(c, confidence=1 - 1e-9), "confidence 1 is NOT"),
    "the risk of an attempt": ("worlds", lambda c: replace(c, gamma_used=c.gamma_used / 2), "is NOT what the stated"),
    "the risk again": ("worlds", lambda c: replace(c, gamma_again=c.gamma_used / 8), "is NOT what the stated risk"),
    "recognition of bits": ("bits", lambda c: replace(c, hockey_sticks=lower(c.hockey_sticks)), "recognised at few"),
    "known memberships": ("bits", lambda c: replace(c, known_memberships=((119, 0.55),)), "whoever else is known"),
    "naming from bits": ("bits", lambda c: replace(c, name_a_member_success=0.6), "naming a participant does NOT"),
    "recognition of all": ("pool", lambda c: replace(c, hockey_sticks=lower(c.hockey_sticks)), "recognised at few"),
    "information of all": ("pool", lambda c: replace(c, mutual_information=0.001), "information does NOT follow"),
    "the guess of labels": ("labels", lambda c: replace(c, guess_success=0.9), "is NOT within what epsilon allows"),
    "the prior of labels": ("labels", lambda c: replace(c, prior_success=0.1), "is NOT the likeliest class"),
    "information of labels": ("labels", lambda c: replace(c, mutual_information=1.1), "information is NOT within"),
    "epsilon of labels": ("labels", lambda c: replace(c, epsilon=0.1), "naming one label"),
    "success of a session": ("session", lambda c: replace(c, membership_success=0.55), "does NOT follow from the dist"),
    "a session's distance": ("session", lambda c: replace(c, square=c.square / 4), "does NOT follow from the distance"),
    "a session's cap": ("session", lambda c: of_the_cap(c, limit=0.55), "cap is NOT kept"),
}


@pytest.mark.parametrize("name", EDITED)
def test_an_edited_figure_is_seen(name: str) -> None:
    kind, edit, words = EDITED[name]
    found = refuted(edit(made(kind)))
    assert any(words in one for one in found), found


@pytest.mark.parametrize("nats", [1e-6, 0.01, 0.3, 2.0])
def test_the_other_code_gives_what_the_library_gives(nats: float) -> None:
    """Two ways to the same roots: bisection here, Newton's way with proven rounding there."""
    for prior in (1e-6, 0.01, 0.5, 0.9):
        assert module._by_information(nats, prior) == pytest.approx(convert.posterior(nats, prior), rel=1e-9, abs=1e-9)
    for rate in (1 / 3, 1 / 2):
        for fpr in (0.001, 0.01, 0.5):
            found = module._recognised_by_information(nats, fpr, rate)
            assert found == pytest.approx(convert.true_positive_rate(nats, fpr, rate), rel=1e-9, abs=1e-9)


def test_a_wrong_conversion_of_the_library_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = made("worlds")
    monkeypatch.setattr(lc.Certificate, "posterior", lambda self, prior: prior)
    assert any("any question about who took part: worked out again it is NOT" in one for one in refuted(certificate))
    monkeypatch.undo()
    monkeypatch.setattr(lc.Certificate, "true_positive_rate", lambda self, fpr: fpr)
    assert any("participants recognised: worked out again it is NOT" in one for one in refuted(certificate))


def test_anything_else_is_no_certificate() -> None:
    with pytest.raises(TypeError, match="no certificate"):
        conversions(math.pi)
