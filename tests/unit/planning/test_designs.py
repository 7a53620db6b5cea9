"""`design="matched"` and `"central"`: what a plan says, gives and refuses; the bound: tests/claims/worlds."""

from __future__ import annotations

import datetime
import html
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse

import leakcap as lc
from leakcap.audit.second_game.universe import universe
from leakcap.planning.entry import stored_plan
from leakcap.planning.likeness import MAX_COLUMNS, MAX_DIRECTIONS, likeness
from leakcap.report.release.page import public_page
from leakcap.simulate import Pool
from leakcap.worlds import Units
from leakcap.worlds.matched import partners
from tests.refusals import refusal

X = np.random.default_rng(0).standard_normal((60, 3)) * [1, 3, 0.5] + [0, 50, 2]
DESIGNS = ("matched", "central")
PRIVATE = str(777_000 + 123)  # in no line of this file


def mean(rows: Any, *others: Any) -> Any:
    return np.asarray(rows)[:, :2].mean(axis=0)


def planned(design: str, fn: Any = mean, data: tuple[Any, ...] = (X,), **options: Any) -> lc.Plan:
    return lc.plan(fn, *data, **{"cap": 0.7, "design": design, "worlds": 32, "draws": 512, "seed": 1} | options)


def error(plan: lc.Plan) -> float:
    return float(np.sqrt((plan.summary().halving ** 2).sum()))


# What a plan says


@pytest.mark.parametrize("design", DESIGNS)
def test_the_certificate_names_the_design_and_what_is_lost(design: str) -> None:
    certificate = planned(design).certificate
    names = {"matched": "matched pairs", "central": "central halves"}
    assert certificate.design == names[design]
    assert f"({names[design]}, each person in a share 1/2" in " ".join(str(certificate).split())
    assert any(line.startswith("Which worlds are possible") for line in certificate.pool_public)
    for words in ("(MIP) as its authors define it", "resembles the whole pool"):
        assert sum(words in line for line in certificate.not_promised) == 1
    assert "designed-worlds" in certificate.theorems and "uniform-halves" not in certificate.theorems
    assert certificate.has_partners == (design == "matched")
    for page in (str(certificate), html.unescape(public_page(certificate))):
        assert ("Whoever is told somebody's partner" in page) == (design == "matched")
    assert any("exactly one took part" in line for line in certificate.not_promised) == (design == "matched")
    assert lc.Certificate.from_json(certificate.to_json()) == certificate


def test_other_certificates_say_nothing_of_it() -> None:
    certificate = planned("worlds").certificate
    assert certificate.design == "random halves" and not certificate.has_partners
    assert certificate.theorems[-1] == "uniform-halves"
    assert not any("MIP" in line for line in certificate.not_promised)


def test_worlds_given_as_an_array_are_not_said_to_be_uniform() -> None:
    masks = planned("worlds").worlds.masks()
    certificate = planned("worlds", worlds=masks).certificate
    assert "uniform-halves" not in certificate.theorems
    assert any("(MIP)" in line for line in certificate.not_promised)


def test_the_cap_mip_is_described_as_the_finite_game() -> None:
    certificate = planned("matched", cap=lc.mip(0.2)).certificate
    assert certificate.capped[0].certified <= 0.7
    assert any("every figure is about the listed worlds" in line for line in certificate.not_promised)


# What it gives


def test_worlds_resemble_the_pool() -> None:
    """Sampling errors of means, relative to those of random halves, are smaller by far."""
    random = error(planned("worlds", worlds=256))
    assert error(planned("matched", worlds=256)) < 0.5 * random
    assert error(planned("central", worlds=256)) < 0.7 * random


@pytest.mark.parametrize("design", DESIGNS)
def test_the_same_pool_and_seed_give_the_same_worlds(design: str) -> None:
    first, again, other = planned(design), planned(design), planned(design, seed=2)
    assert np.array_equal(first.worlds.packed, again.worlds.packed)
    assert first.certificate.to_json() == again.certificate.to_json()
    assert not np.array_equal(first.worlds.packed, other.worlds.packed)


def test_partners_depend_on_the_pool_alone() -> None:
    def pairs(seed: int) -> set[tuple[int, int]]:
        masks = planned("matched", seed=seed, worlds=64).worlds.masks()
        apart = (masks[:, :, None] != masks[:, None, :]).all(axis=0)
        return {(int(a), int(b)) for a, b in zip(*np.nonzero(apart), strict=True)}

    assert pairs(1) == pairs(2)
    assert len(pairs(1)) == 60


@pytest.mark.parametrize("design", DESIGNS)
def test_a_run_is_resumed_to_the_same_bytes(design: str, tmp_path: Path) -> None:
    options = {"seed": None, "checkpoint": tmp_path / "plan"}
    first = planned(design, **options)
    again = planned(design, **options)
    without_data = stored_plan(tmp_path / "plan")
    for plan in (again, without_data):
        assert np.array_equal(plan.worlds.packed, first.worlds.packed)
        assert plan.certificate.to_json() == first.certificate.to_json()
    released = first.release()
    assert planned(design, **options).release().value.tobytes() == released.value.tobytes()


def test_a_checkpoint_knows_the_design(tmp_path: Path) -> None:
    planned("matched", seed=None, checkpoint=tmp_path / "plan")
    refusal(lambda: planned("central", seed=None, checkpoint=tmp_path / "plan"), "begun otherwise")


@pytest.mark.usefixtures("small_pools")
def test_matched_worlds_are_doubled(tmp_path: Path) -> None:
    few = {"cap": lc.mutual_information(0.3), "worlds": "doubling", "checkpoint": tmp_path / "plan"}
    plan = planned("matched", seed=None, **few)
    masks = plan.worlds.masks()
    assert (masks[: plan.worlds.m // 2] != masks[plan.worlds.m // 2 :]).all()
    assert plan.certificate.design == "matched pairs"
    assert np.array_equal(stored_plan(tmp_path / "plan").worlds.packed, plan.worlds.packed)


@pytest.mark.parametrize("design", DESIGNS)
def test_a_number_of_worlds_is_found_for_it(design: str) -> None:
    assert planned(design, worlds="auto").worlds.m == 1024


@pytest.mark.parametrize("design", DESIGNS)
def test_knobs_that_draw_other_worlds_are_not_tried(design: str) -> None:
    found = planned(design, worlds=64).suggest(strata={"thirds": np.arange(60) % 3}, releases=20, seconds=5.0)
    names = [one.knob for one in found.tried] + [name for name, _ in found.left_out]
    assert "weights equal" in names or "weights relative" in names
    assert not any("rate" in name or "thirds" in name for name in names)


def test_an_estimator_takes_a_design() -> None:
    model = lc.estimators.Mean(cap=0.7, worlds=32, options={"design": "matched", "draws": 512}).fit(X)
    assert model.certificate_.design == "matched pairs"


def test_both_games_can_be_audited() -> None:
    plan = planned("matched", seed=None)
    report = lc.audit.run(plan, trials=400)
    assert report.verdict != "refuted"
    second = universe(mean, X, 0, cap=0.7, plans=28, releases=2, worlds=8, draws=256, design="matched")
    assert len(second.findings) == 3


# Who is like whom


def rows_of(*data: Any, unit: Any = None) -> np.ndarray:
    pool = Pool(data)
    return likeness(pool, Units.of(pool.rows, unit))


def test_columns_count_alike_whatever_their_scale() -> None:
    """And however they are turned: distances between units are those of standardised columns."""
    found = rows_of(X * [1e-300, 1e306, 1.0] + [0, -1e307, 0])
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    assert found @ found.T == pytest.approx(standard @ standard.T, abs=1e-6)
    assert (np.diff(found.std(axis=0)) <= 1e-12).all(), "the widest direction comes first"


def test_arguments_are_joined_and_words_are_told_apart() -> None:
    words = np.array(["a", "b"] * 30)
    for column in (words, pd.DataFrame({"word": pd.Categorical(words)}), pl.Series(words), list(words)):
        assert rows_of(X, column).shape == (60, 4)
        pairs = words[partners(rows_of(column))].reshape(-1, 2)
        assert (pairs[:, 0] == pairs[:, 1]).all()


FRAME = pd.DataFrame(
    {
        "number": X[:, 0],
        "word": ["a", "b", "c"] * 20,
        "id": [f"person {i}" for i in range(60)],
        "day": [datetime.date(2024, 1, 1 + i % 28) for i in range(60)],
        "time": pd.to_datetime(["2024-01-01", None, "2024-02-01", "2024-02-02", "2024-02-09"] * 12),
        "whole": pd.array([1, None, 3, 9] * 15, dtype="Int64"),
        "flag": [True, False] * 30,
        "constant": 1.0,
    }
)


def test_tables_with_columns_of_all_kinds_are_read() -> None:
    # number, two of three words, time, whole, flag; 28 days are words; an id that nobody shares is left out.
    assert np.isfinite(rows_of(FRAME)).all()
    assert rows_of(FRAME.drop(columns="day")).shape == (60, 6)
    assert rows_of(FRAME.drop(columns=["day", "id"])).shape == (60, 6)
    assert rows_of(pl.from_pandas(FRAME[["number", "word", "flag"]])).shape == (60, 4)
    fn = lambda table: table["number"].mean()  # noqa: E731
    assert planned("matched", fn, (FRAME,)).certificate.membership_success <= 0.7


def test_missing_and_infinite_values_count_as_the_mean() -> None:
    holes = np.where(np.arange(180).reshape(60, 3) % 7 == 0, [np.nan, np.inf, -np.inf], X)
    assert np.isfinite(rows_of(holes)).all()
    assert planned("central", data=(np.nan_to_num(holes, posinf=0, neginf=0),)).certificate.kind == "simulation"


def test_units_are_matched_by_the_mean_of_their_rows() -> None:
    who, lone = np.repeat(np.arange(20), 3), X.reshape(20, 3, 3).mean(axis=1)
    standard = (lone - lone.mean(axis=0)) / lone.std(axis=0)
    found = rows_of(X, unit=who)
    assert found @ found.T == pytest.approx(standard @ standard.T, abs=1e-9)
    uneven = np.sort(np.arange(60) % 20 // np.where(np.arange(60) > 30, 2, 1))
    assert rows_of(X, unit=uneven).shape[1] == 4, "and by how many there are"
    plan = planned("matched", unit=who)
    assert plan.worlds.n == 20


def test_many_directions_are_cut_off() -> None:
    assert rows_of(np.random.default_rng(0).standard_normal((100, 90))).shape == (100, MAX_DIRECTIONS)
    assert rows_of(np.random.default_rng(0).standard_normal((20, 4, 4))).shape == (20, 16)


def test_the_unit_that_is_alone_is_an_ordinary_one() -> None:
    values = np.array([[0.0], [0.1], [5.0], [5.1], [-5.0], [-5.1], [2.0]])
    order = partners(values)
    assert order[-1] in (0, 1, 6)
    assert len(order) == 7


# What is refused


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"mode": "confidence"}, "leave mode out"),
        ({"mode": "empirical"}, "leave mode out"),
        ({"mode": "individual"}, "leave mode out"),
        ({"rate": 1 / 3}, "leave rate out"),
        ({"worlds": np.ones((2, 60), dtype=bool)}, "draws the worlds"),
        ({"worlds": 33}, "multiple of 2"),
        ({"worlds": 0}, "worlds"),
        ({"data": (X[:3],)}, "too few units"),
        ({"data": (X[:0],)}, "too few units"),
        ({"strata": np.r_[np.zeros(59), 1]}, "every stratum"),
        ({"data": (np.ones((60, 2)),)}, "no column by which units differ"),
        ({"data": (scipy.sparse.csr_matrix(X),), "fn": lambda x: x.mean()}, "sparse"),
        ({"data": ([f"{PRIVATE} {i}" for i in range(60)],), "fn": len}, "words from a short list"),
        ({"data": ([[1]] * 30 + [[1, 2]] * 30,), "fn": len}, "columns of numbers"),
        ({"data": (np.random.default_rng(0).standard_normal((8, MAX_COLUMNS + 1)),)}, f"at most {MAX_COLUMNS}"),
    ],
)
def test_what_does_not_fit_is_refused_in_words(design: str, options: dict[str, Any], words: str) -> None:
    refusal(lambda: planned(design, **options), words, private=(PRIVATE,))


def test_central_worlds_are_not_doubled() -> None:
    refusal(lambda: planned("central", worlds="doubling"), "fixed number")
