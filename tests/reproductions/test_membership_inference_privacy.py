"""*Provable Membership Inference Privacy*: all parts run at toy size, and formulas equal counts over all halves."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reproductions.membership_inference_privacy import attacks, figure_1, figure_2, theorems
from reproductions.membership_inference_privacy.__main__ import PARTS, main
from reproductions.membership_inference_privacy.algorithm_1 import Algorithm1
from reproductions.membership_inference_privacy.page import PAGE, filled
from reproductions.membership_inference_privacy.paper import dp_scale, epsilon_of, mip_scale, printed_noise
from scipy.stats import norm

import leakcap as lc
from leakcap import convert


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Path:
    """What all parts but the page write at toy size."""
    out = tmp_path_factory.mktemp("mip")
    main([*(name for name in PARTS if name != "page"), "--quick", "--out", str(out)])
    return Path(out)


def test_every_part_writes_its_table_and_its_picture(folder: Path) -> None:
    names = {path.name for path in folder.iterdir()}
    for part in ("figure_1", "figure_2", "attacks"):
        assert {f"{part}.csv", f"{part}.svg", f"{part}.png"} <= names
    assert {"figure_1_attacked.csv", "true_positives.csv", "theorems.csv"} <= names


def test_a_part_that_does_not_exist_is_refused() -> None:
    with pytest.raises(SystemExit, match="choose from"):
        main(["figure3"])


def test_the_page_shows_what_was_made_and_says_what_was_not(folder: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    once = filled(text, folder)
    assert filled(once, folder) == once
    for mark in ("figure_1", "figure_1_attacked", "figure_2", "attacks", "true_positives", "theorems"):
        assert once.split(f"<!-- {mark} -->")[1].split("<!-- end -->")[0].count("\n| ") > 2
    shown = [part.split("<!-- end -->")[0] for part in text.split("-->\n")[1::2]]
    assert len(shown) == 6 and all(part.count("\n| ") > 2 for part in shown), "run all parts, and `page`"
    assert filled(once, folder / "nothing here").count("*Not run in full yet.*") == 6


# ---- figure 1 -----------------------------------------------------------------------------------------------------


def test_the_example_is_that_of_the_proof_and_its_moments_bound_those_of_all_halves() -> None:
    for n in (8, 10):
        one = figure_1.Example(n)
        masks, answers = one.answers()
        assert len(answers) == one.halves and (masks.sum(axis=1) == n // 2).all()
        assert np.sort(answers)[-1] == pytest.approx(math.sqrt(one.halves), rel=1e-6)
        assert 0 <= np.sort(answers)[-2] <= 1, "every other half has an answer between 0 and 1"
        assert np.abs(answers).mean() <= one.first_moment <= 1.2 * np.abs(answers).mean()
        assert answers.std() <= one.deviation <= 1.02 * answers.std()
        neighbours = (masks[:, None] ^ masks).sum(axis=2) == 2
        assert np.abs(answers[:, None] - answers)[neighbours].max() == pytest.approx(one.sensitivity, rel=1e-9)


def test_the_best_attack_on_it_equals_a_fine_sum_and_stays_below_eta() -> None:
    one = figure_1.Example(8)
    masks, answers = one.answers()
    for scale in (0.05, 0.5):
        y = np.unique(np.concatenate([np.linspace(-3, 12, 40_001), answers]))
        signed = np.exp(-np.abs(y[:, None] - answers) / scale) @ np.where(masks, 1.0, -1.0)
        sums = 0.5 + 0.25 * np.trapezoid(np.abs(signed), y, axis=0).max() / (2 * scale) / (len(answers) / 2)
        assert figure_1.best_attack(one, scale) == pytest.approx(sums, abs=2e-4)
    for eta in (0.01, 0.1, 0.4):
        assert figure_1.best_attack(one, float(convert.scale_for_mip(one.first_moment, eta))) <= 0.5 + eta


def test_the_paper_says_what_its_formulas_say() -> None:
    """MIP below DP from 36 units on, at eta of .01 and more; and not for much smaller pools."""
    for row in figure_1.rows((36, 48), (0.01, 0.1, 0.4)):
        assert row.ours < row.paper < row.dp
    assert all(row.paper > row.dp for row in figure_1.rows((24,), (0.01,)))
    assert mip_scale(0.1, 2) == pytest.approx(3794.56)
    assert 1 / (1 + math.exp(-epsilon_of(0.1))) - 0.5 == pytest.approx(0.1)
    assert dp_scale(0.1, 2.0) == pytest.approx(2 / math.log(1.2 / 0.8))


# ---- figure 2 -----------------------------------------------------------------------------------------------------


def test_ours_is_nearer_than_the_papers_in_every_point(folder: Path) -> None:
    with (folder / "figure_2.csv").open() as file:
        at = {(line["series"], float(line["eta"])): line for line in csv.DictReader(file)}
    for eta in (0.01, 0.4):
        for power in (2, 4, 6):
            ours, theirs = (
                float(at[f"{name}, M = {power}", eta]["scale"]) for name in ("a first moment", "the paper's MIP")
            )
            assert ours == pytest.approx(1 / math.atanh(2 * eta)) and ours < theirs / 4
        plans = [float(line["error"]) for (series, at_eta), line in at.items() if "leakcap" in series and at_eta == eta]
        assert len(plans) == 3 and max(plans) < float(at["a first moment, M = 2", eta]["error"])


def test_clipped_descent_without_clipping_and_noise_finds_the_covariance() -> None:
    pool = figure_2.Pool.of(4000)
    found = figure_2.clipped_descent(pool.rows, 0.0, np.random.default_rng(0), steps=60)
    plain = pool.products.mean(axis=0)
    assert 0.2 < pool.error(found) < 0.5, "clipped at the median it is biased"
    assert pool.error(plain) < 0.1


def test_the_noise_of_dp_sgd_is_that_of_gaussian_differential_privacy() -> None:
    for eta in (0.01, 0.2):
        multiplier = figure_2.noise_multiplier(eta, 25)
        mu, epsilon = 5 / multiplier, epsilon_of(eta)
        delta = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
        assert delta == pytest.approx(figure_2.DELTA, rel=1e-6)


# ---- attacks ------------------------------------------------------------------------------------------------------


def test_the_attacks_break_what_is_printed_and_not_ours() -> None:
    assert attacks.exact_success(10**6, 0.4) == pytest.approx(0.989, abs=5e-4)
    assert attacks.exact_success(10**6, 0.25) == pytest.approx(0.931, abs=5e-4)
    printed, ours = attacks.radius(10**6, 0.25, (50, 2), np.random.default_rng(0))
    assert printed.beaten and not ours.beaten
    assert printed.exact == pytest.approx(printed.measured, abs=0.1)
    told, pooled = attacks.scale(0.1, 60, np.random.default_rng(0))
    assert told.measured == 1 and told.beaten and not pooled.beaten
    tight, mine = attacks.true_positives(0.25, 1500)
    assert tight.low > 0.25 and tight.low < 0.5 and mine.low < 0.5


# ---- Algorithm 1, Theorems 5 and 7 --------------------------------------------------------------------------------


def test_algorithm_1_refuses_more_than_one_number_with_the_counter_example() -> None:
    rows, rng = np.random.default_rng(0).standard_normal((40, 2)), np.random.default_rng(1)
    with pytest.raises(lc.InputError, match=r"sign of their sum with 98.9 %.*scale_for_mip"):
        Algorithm1(lambda part: part.mean(axis=0), 0.1, budget=4).released(rows, rng)


def test_algorithm_1_adds_laplace_noise_of_the_printed_scale() -> None:
    rows, rng = np.random.default_rng(0).standard_normal(200), np.random.default_rng(1)
    algorithm = Algorithm1(lambda part: float(part.mean()), 0.4, budget=64, printed=False)
    noise = []
    for _ in range(600):
        number, secret = algorithm.released(rows, rng)
        noise.append(number - rows[secret].mean())
        assert len(secret) == 100
    sigma = rows.std() / math.sqrt(199)
    assert np.mean(np.abs(noise)) == pytest.approx(mip_scale(0.4, 2) * sigma, rel=0.2)


def test_printed_noise_has_a_laplace_radius_and_no_gamma_one() -> None:
    rng = np.random.default_rng(0)
    noise = np.array([printed_noise(np.full(20, 2.0), 2, 0.4, rng) for _ in range(1500)])
    length = np.sqrt(((noise / 2.0) ** 2).mean(axis=1))
    assert length.mean() == pytest.approx(mip_scale(0.4, 2), rel=0.1)  # Gamma(20) would be twenty times as long
    assert (length < 0.1 * mip_scale(0.4, 2)).mean() == pytest.approx(0.095, abs=0.04)


def test_theorems_5_and_7_by_counting() -> None:
    for n in (4, 6, 8, 10):
        assert theorems.counted(n) == pytest.approx(theorems.advantage(n), abs=1e-12)
    table = theorems.rows((4, 12, 40))
    assert [row.eta for row in table] == sorted((row.eta for row in table), reverse=True)
    assert table[-1].eta < 1e-11
    assert all(row.neighbours == 1 and math.isinf(row.renyi) for row in table)
