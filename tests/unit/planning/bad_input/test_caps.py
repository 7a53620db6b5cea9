"""Caps that cannot be kept, or that say nothing."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from tests.unit.planning.bad_input.asking import CAPS, SMALL, X, mean, refused


@pytest.mark.parametrize("name", CAPS)
def test_caps_that_cannot_be_kept_or_say_nothing_are_refused(name: str) -> None:
    refused(lc.InputError, "", lambda: lc.plan(mean, X, cap=CAPS[name](), worlds=16, draws=256))


@pytest.mark.parametrize("mode", ["confidence", "empirical"])
@pytest.mark.parametrize(
    "cap", [lc.name_a_member(0.5), lc.precision(0.1, 0.4), lc.task(np.eye(64), 0.5), lc.membership(1.0)], ids=repr
)
def test_impossible_caps_are_refused_in_the_other_modes_too(mode: str, cap: Any) -> None:
    refused(lc.CapError, "", lambda: lc.plan(mean, X, cap=cap, worlds=64, mode=mode))


def test_a_cap_at_the_prior_says_what_the_prior_is() -> None:
    refused(lc.CapError, "without the release", lambda: lc.plan(mean, X, **(SMALL | {"cap": lc.name_a_member(0.5)})))
    refused(lc.CapError, re.escape("0.0625"), lambda: lc.plan(mean, X, **(SMALL | {"cap": lc.identification(0.01)})))


def test_an_impossible_recap_leaves_the_plan_as_it_was() -> None:
    plan = lc.plan(mean, X, **SMALL)
    before = plan.certificate.to_json(), plan.noise.std
    for cap in (lc.identification(0.01), lc.mutual_information(50.0), lc.task(np.eye(3), 0.9)):
        refused(lc.InputError, "", lambda cap=cap: plan.recap(cap))
    assert (plan.certificate.to_json(), plan.noise.std) == before
    assert not plan._token._spent
