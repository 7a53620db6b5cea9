"""Rare arguments together, and what records say of themselves in three lines."""

from __future__ import annotations

import inspect
from dataclasses import fields

import numpy as np
import pytest

import leakcap as lc

X = np.random.default_rng(0).normal(size=(60, 2))


def test_settings_hold_arguments_of_a_plan_with_the_same_defaults() -> None:
    known = inspect.signature(lc.plan).parameters
    for field in fields(lc.Settings):
        assert known[field.name].default == field.default, field.name


def test_a_plan_with_settings_is_the_plan_with_these_arguments() -> None:
    apart = lc.plan(lambda x: x.mean(axis=0), X, cap=0.7, worlds=16, seed=1, draws=512, clip=(-1, 1), confidence=0.99)
    settings = lc.Settings(draws=512, clip=(-1, 1), confidence=0.99)
    together = lc.plan(lambda x: x.mean(axis=0), X, cap=0.7, worlds=16, seed=1, settings=settings)
    assert together.certificate == apart.certificate
    assert np.array_equal(together.outputs, apart.outputs)


def test_an_argument_given_twice_is_refused_also_where_both_agree() -> None:
    with pytest.raises(lc.InputError, match="draws was given twice"):
        lc.plan(lambda x: x.mean(), X, cap=0.7, draws=512, settings=lc.Settings(draws=512))


def test_records_say_of_themselves_what_they_are_in_three_lines() -> None:
    plan = lc.plan(lambda x: x.mean(axis=0), X, cap=0.7, worlds=16, draws=256)
    release = plan.release()
    for record in (plan, plan.summary(), release.certificate):
        lines = repr(record).splitlines()
        assert len(lines) == 3
        assert max(map(len, lines)) < 160
    assert "whether a given person was in the secret random half" in repr(release.certificate)
    assert "a simulation, not a release" in repr(
        lc.plan(lambda x: x.mean(axis=0), X, cap=0.7, worlds=16, draws=256, seed=1)
    )


def test_only_public_names_are_listed() -> None:
    assert dir(lc) == sorted(lc.__all__)
    assert not [name for name in dir(lc) if name.startswith("_") and name != "__version__"]
