"""*PAC Privacy*, Examples 2 to 6 and the composition: closed forms against sums over all halves, figures that are kept
against those of the corrected table, and every command on toy sizes."""

from __future__ import annotations

import csv
import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from benchmarks.records import stored
from reproductions.pac_privacy import (
    example_2,
    example_3,
    example_4,
    example_5,
    example_6,
    output,
    page,
    records,
    rules,
)
from reproductions.pac_privacy.__main__ import main
from reproductions.pac_privacy.cifar import Moments, pictures

import leakcap as lc


def small_pixels(count: int = 6, d: int = 3) -> np.ndarray:
    return np.random.default_rng(0).integers(256, size=(count, d)).astype(np.uint8)


def kept(name: str) -> list[dict[str, str]]:
    with (output.MEASURED / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_covariances_of_halves_are_those_of_all_halves() -> None:
    pixels = small_pixels()
    scaled, moments = pixels / 255.0, Moments.of(pixels)
    coins = np.array([scaled[list(mask)].sum(axis=0) / 3 for mask in itertools.product((False, True), repeat=6)])
    halves = np.array([scaled[list(chosen)].mean(axis=0) for chosen in itertools.combinations(range(6), 3)])
    for found, answers in (
        (moments.independent(), coins),
        (moments.fixed_size(), halves),
        (moments.covariance(), scaled),
    ):
        true = np.linalg.eigvalsh(np.cov(answers.T, bias=True))[::-1]
        assert found == pytest.approx(true, rel=1e-9)
    assert moments.independent().sum() > 1.2 * moments.fixed_size().sum()  # planted: one taken for the other


def test_algorithm_2_is_the_mean_square_distance_of_two_halves() -> None:
    answers = np.random.default_rng(1).normal(size=(40, 3))
    apart = ((answers[:, None] - answers[None]) ** 2).sum(axis=2).mean()
    noise = rules.algorithm_2(float(answers.var(axis=0).sum()), 3, 0.5)
    assert noise == pytest.approx([apart / (2 * 0.5)] * 3)


@pytest.mark.parametrize("nats", [0.01, 0.02, 0.025, 1.0])
def test_the_least_noise_for_one_record_is_least_and_keeps_equation_12(nats: float) -> None:
    lam, n = example_5.EIGENVALUES, 100

    def information(noise: np.ndarray) -> float:
        return 0.5 * float(np.log((lam / n + noise) / ((n - 1) * lam / n**2 + noise)).sum())

    found = rules.least_noise_for_one(lam, n, nats)
    free = information(np.zeros(4))
    assert free == pytest.approx(2 * math.log(100 / 99))
    if nats >= free:
        assert not found.any()
        return
    assert information(found) == pytest.approx(nats, rel=1e-6)
    rng = np.random.default_rng(2)
    for _ in range(200):  # any other noise of the same total tells as much or more
        other = np.abs(found + 0.1 * found.sum() * rng.normal(size=4))
        other *= found.sum() / other.sum()
        assert information(other) >= nats * (1 - 1e-9)


def test_equation_14_holds_of_the_means_covariance_and_not_as_printed() -> None:
    for one in map(example_5.line, (1.0, 0.25, 0.05, 0.03, 0.02, 0.01, 0.001)):
        assert one.equation_14 <= one.difference * (1 + 1e-9)
        assert one.difference <= one.all_records_paper
        assert one.equation_14_as_printed > one.all_records_paper  # more than there is in all


def test_figures_of_formulas_alone() -> None:
    assert round(example_3.zcdp(), 1) == 17.7
    assert round(example_6.local_dp()) == 2172


def figure(name: str, game: str, rule: str) -> float:
    (found,) = [float(line["noise_norm"]) for line in kept(name) if (line["game"], line["rule"]) == (game, rule)]
    return found


SEEN = {
    ("example_3.csv", "coins", "the paper's rule"): 0.718,
    ("example_3.csv", "halves of one size", "the paper's rule"): 0.658,
    ("example_3.csv", "coins", "log-det"): 0.713,
    ("example_3.csv", "halves of one size", "log-det"): 0.657,
    ("example_3.csv", "coins", "Algorithm 2"): 6.73,
    ("example_3.csv", "halves of one size", "Algorithm 2"): 3.12,
    ("example_3.csv", "coins", "zCDP"): 17.7,
    ("example_6.csv", "one of 60,000", "the paper's rule"): 161,
    ("example_6.csv", "one of 60,000", "local DP (zCDP)"): 2172,
}


@pytest.mark.parametrize(("name", "game", "rule"), SEEN)
def test_kept_figures_are_those_of_the_corrected_table(name: str, game: str, rule: str) -> None:
    assert f"{figure(name, game, rule):.3g}" == f"{SEEN[name, game, rule]:.3g}"


def test_the_record_of_example_1_is_rounded_up() -> None:
    (found,) = [one.seen for one in records.made() if one.name == "pac-privacy-example-1"]
    assert found == "0.35730, 0.14893, 0.06791"


def test_the_papers_figure_of_example_3_is_the_plug_in_of_100_halves() -> None:
    seen = figure("example_3.csv", "halves of one size", "the paper's rule, plug-in of 100 halves")
    assert round(seen, 2) == 0.28
    assert figure("example_3.csv", "halves of one size", "the paper's rule") > 2 * seen


@pytest.mark.slow
def test_all_pictures_give_the_corrected_table_again() -> None:
    moments = Moments.of(pictures())
    made = {(row.game, row.rule): row.noise_norm for row in example_3.closed_forms(moments)}
    made |= {(row.game, row.rule): row.noise_norm for row in example_6.closed_forms(moments.covariance(), 60_000)}
    for (_, game, rule), value in SEEN.items():
        assert f"{made[game, rule]:.3g}" == f"{value:.3g}"


def test_made_up_pictures_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cifar10_train_1.webp").write_bytes(b"made up")
    monkeypatch.setenv("LEAKCAP_DATA", str(tmp_path))
    with pytest.raises(lc.InputError, match="made-up pictures"):
        pictures()


def test_example_3s_kernel_agrees_with_its_function() -> None:
    pixels = small_pixels(40, 5)
    plan = lc.plan(
        example_3.mean_of_half, pixels, cap=lc.mutual_information(1.0), worlds=16, design="worlds", seed=1, draws=256
    )
    for world in range(16):
        assert plan.outputs[world] == pytest.approx(pixels[plan.worlds.mask(world)].mean(axis=0) / 255)


def test_a_published_picture_needs_no_more_noise_than_the_papers_rule() -> None:
    pixels = np.random.default_rng(3).uniform(size=(40, 12))
    papers, log_det, ours = example_6.listed_pictures(pixels, draws=2048)
    assert ours.noise_norm < 1.02 * log_det.noise_norm < 1.02 * papers.noise_norm
    assert ours.bounds.startswith("certified")


def test_jointly_needs_less_noise_but_not_by_algorithm_2() -> None:
    rows = np.random.default_rng(4).normal(size=(60, 4)) @ np.diag([1.0, 5.0, 2.0, 3.0])
    found = {(row.rule, row.game): row for row in example_2.closed_forms(rows, papers=True)}
    for way in ("halves", "with replacement"):
        apart, joint = (found[f"Algorithm 2, {way}", what] for what in ("beside each other", "joint"))
        assert joint.noise_norm == pytest.approx(apart.noise_norm)
        for rule in ("the paper's rule", "log-det"):
            apart, joint = (found[f"{rule}, {way}", what] for what in ("beside each other", "joint"))
            assert joint.noise_norm < apart.noise_norm
    printed = {row.paper for row in found.values()} - {None}
    assert printed == {6.85, 2.60, 7.32, 4.57}
    assert math.hypot(6.85, 2.60) == pytest.approx(7.32, abs=0.01)  # the paper's third is made of its first two


def test_example_2_takes_other_patients(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = np.random.default_rng(5).normal([38, 154, 123, 83], [7, 27, 7, 7], size=(100, 4))
    path = tmp_path / "patients.csv"
    np.savetxt(path, table, delimiter=",", header="Age,Weight,Systolic,Diastolic", comments="")
    main(["example2", "--quick", "--patients", str(path), "--out", str(tmp_path)])
    assert "4.57" in capsys.readouterr().out
    path.write_text("name,age\na,3\n")
    with pytest.raises(lc.InputError, match="first four columns"):
        example_2.patients(path)
    with pytest.raises(SystemExit):  # nothing of other patients is kept
        main(["example2", "--keep", "--patients", str(path), "--out", str(tmp_path)])


@pytest.mark.parametrize(
    ("part", "stem"), [("example2", "example_2"), ("example5", "example_5"), ("composition", "composition")]
)
def test_one_command_makes_a_table_and_pictures(part: str, stem: str, tmp_path: Path) -> None:
    main([part, "--quick", "--out", str(tmp_path)])
    assert {path.name for path in tmp_path.iterdir()} == {f"{stem}.{ending}" for ending in ("csv", "svg", "png")}


def test_example_4s_record_and_picture() -> None:
    row = example_4.Row("standardised", "the paper's rule, plug-in of 1,024 halves", 22.9, 0.948, 0.5, "nothing", None)
    made = example_4.Row("standardised", "exact, one nat", 30.0, 0.948, 0.3, "information 1.000", 200.0)
    assert example_4.drawn([row, made]).axes[0].get_lines()
    line = {name: "" if value is None else str(value) for name, value in vars(made).items()}
    assert "200 s" in page.TABLES["example_4"]([line]) and "93.5%" in page.TABLES["example_4"]([line])


def test_the_page_is_that_of_the_kept_files() -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.filled(text) == text, "run `python -m reproductions.pac_privacy page`"
    known = stored()
    assert all(one in known for one in records.made())
    listed = {line["file"] for line in kept("runs.csv")}
    assert listed == {path.name for path in output.MEASURED.glob("*.csv")} - {"runs.csv"}
