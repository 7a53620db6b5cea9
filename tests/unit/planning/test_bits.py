"""`design="bits"`: what a plan says, gives and refuses; the bound itself is tested in tests/claims/modes."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leakcap as lc
from leakcap.noise import Seeded
from leakcap.report.release.page import public_page

X = np.random.default_rng(0).standard_normal((60, 3)) * [1, 3, 0.5] + [0, 50, 2]
CAP = lc.membership(0.6)


def planned(fn: Any = lc.stats.mean, rows: Any = X, **options: Any) -> lc.Plan:
    return lc.plan(fn, rows, **{"cap": CAP, "design": "bits", "seed": 1} | options)


def test_the_certificate_names_the_promise_first() -> None:
    plan = planned(seed=None)
    certificate = plan.certificate
    assert (certificate.kind, certificate.mode, certificate.design) == (
        "closed_form",
        "individual",
        "independent fair bits",
    )
    assert certificate.whoever_is_known and not certificate.only_one_person
    promise = "Nobody can guess with more than 60.00 % success (guessing: 50 %) whether a given person was in"
    whoever = "even knowing everything about everybody else."
    told = " ".join(str(certificate).split("The game")[0].split())
    shown = " ".join(public_page(certificate).replace("\u00a0", " ").split())
    assert promise in told and whoever in told
    assert promise in shown and whoever in shown
    assert lc.Certificate.from_json(certificate.to_json()) == certificate
    assert "design='bits'" in repr(plan)


def test_other_certificates_promise_no_such_thing() -> None:
    for options in ({"mode": "individual", "worlds": 64}, {"worlds": 64, "draws": 512}):
        certificate = lc.plan(lc.stats.mean, X, cap=CAP, seed=1, **options).certificate
        assert not certificate.whoever_is_known
        assert "even knowing everything about everybody else" not in " ".join(str(certificate).split())


def test_there_are_no_worlds_and_no_outputs() -> None:
    plan = planned()
    for name in ("worlds", "outputs"):
        with pytest.raises(lc.InputError, match="every subset is possible"):
            getattr(plan, name)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fn": lambda rows: rows.mean(axis=0)}, "add up what every unit brings"),
        ({"fn": lc.stats.variance}, "add up what every unit brings"),
        ({"fn": lc.stats.median}, "made of counts between cut points"),
        ({"mode": "empirical"}, "leave mode out"),
        ({"worlds": 64}, "leave worlds out"),
        ({"worlds": "doubling"}, "leave worlds out"),
        ({"rate": 1 / 3}, "no rate"),
        ({"strata": np.arange(60) % 3}, "no strata"),
        ({"clip": (0, 1)}, "neither clip nor draws"),
        ({"draws": 1000}, "neither clip nor draws"),
        ({"rows": np.where(X > 55, np.nan, X)}, "missing or infinite"),
        ({"design": "coins"}, "design"),
        ({"rows": X[:0]}, "too few units"),
        ({"rows": X[:3, 0]}, "too few units"),
        ({"cap": lc.mutual_information(0.1)}, "one person named in advance"),
        ({"cap": lc.membership(0.5 + 1e-15)}, "coin flip"),
    ],
)
def test_what_bits_do_not_cover_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(lc.LeakcapError, match=message):
        planned(**options)


@pytest.mark.parametrize("fn", [lc.stats.mean, lc.stats.sum])
def test_answers_are_on_the_scale_of_the_whole_pool(fn: Any) -> None:
    plan = planned(fn)
    drawn = np.array([plan.releaser.vector(Seeded(seed)) for seed in range(2000)])
    summary = plan.summary()
    error = np.sqrt(summary.halving**2 + plan.noise.output_deviations**2)
    assert np.abs(drawn.mean(axis=0) - fn(X)).max() < 6 * error.max() / np.sqrt(2000)
    assert drawn.std(axis=0) == pytest.approx(error, rel=0.15)
    sampling = X.std(axis=0) * (1 if fn is lc.stats.mean else 60) / np.sqrt(60)
    assert summary.halving == pytest.approx(sampling, rel=0.15)


def test_intervals_cover_the_whole_pools_answer() -> None:
    covered = []
    for seed in range(60):
        low, high = planned(seed=seed).release().interval(0.9)
        covered.append((low <= X.mean(axis=0)) & (X.mean(axis=0) <= high))
    assert 0.8 < np.mean(covered) < 0.98


def test_rows_of_one_person_have_one_coin() -> None:
    who = np.repeat(np.arange(30), 2)
    own = X.reshape(30, 2, 3)
    for fn, rows in ((lc.stats.mean, own.mean(axis=1)), (lc.stats.sum, own.sum(axis=1))):
        together, single = planned(fn, unit=who), planned(fn, rows)
        assert together.exposure == pytest.approx(single.exposure, abs=1e-9)
        assert together.noise.covariance() == pytest.approx(single.noise.covariance(), rel=1e-6)


def test_tables_keep_their_form() -> None:
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    released = lc.release(lc.stats.mean, table, cap=CAP, design="bits").value
    assert np.shape(released) == np.shape(lc.stats.mean(table))


def test_equal_rows_need_no_noise_and_leave_as_they_are() -> None:
    plan = planned(rows=np.full((20, 2), 3.5))
    assert plan.certificate.membership_success == 0.5
    assert plan.release().value == pytest.approx([3.5, 3.5])


@pytest.mark.parametrize(
    ("fn", "rows"),
    [
        (functools.partial(lc.stats.histogram, edges=[-3, -1, 0, 1, 3]), X),
        (functools.partial(lc.stats.histogram, edges=[0, 50, 100]), X[:, 1]),
        (functools.partial(lc.stats.categories, levels=["a", "b", "c"]), np.array(list("abca") * 15)),
        (functools.partial(lc.stats.categories, levels=[1, 2]), np.arange(60) % 4),
        (functools.partial(lc.stats.categories, levels=["x"]), np.array([["x", "y"], ["y", "x"], ["z", "x"]] * 20)),
    ],
)
def test_shares_of_bins_and_levels_are_sums_over_people(fn: Any, rows: Any) -> None:
    plan = planned(fn, rows)
    assert plan.certificate.membership_success <= 0.6
    centre = np.mean([plan.releaser.vector(Seeded(seed)) for seed in range(400)], axis=0)
    assert centre == pytest.approx(np.ravel(fn(rows)), abs=0.05)
    assert np.shape(plan.release().value) == np.shape(fn(rows))
    assert planned(fn, rows, mode="individual", design="worlds", worlds=64).certificate.membership_success <= 0.6


def test_levels_that_do_not_fit_the_rows_are_refused_in_the_functions_words() -> None:
    for levels, message in (([], "at least one"), ([1, 1], "different"), (["a"], "must be numbers")):
        with pytest.raises(lc.InputError, match=message):
            planned(functools.partial(lc.stats.categories, levels=levels), np.arange(60) % 4)


def test_a_bare_number_caps_membership() -> None:
    assert planned(cap=0.6).certificate.capped == planned(cap=lc.membership(0.6)).certificate.capped
    both = lc.plan(lc.stats.mean, X, cap=[lc.name_a_member(0.9), 0.6], worlds=32, draws=512, seed=1).certificate
    assert [one.cap for one in both.capped] == ["NameAMember", "Membership"]


def test_recaps_share_the_right_to_release() -> None:
    plan = planned(seed=None)
    tighter = plan.recap(lc.membership(0.55))
    assert tighter.certificate.membership_success <= 0.55
    assert tighter.noise.std > plan.noise.std
    tighter.release()
    with pytest.raises(lc.AlreadyReleased):
        plan.release()
