"""*PAC Privacy*, Example 1: its three figures, by whole-number arithmetic beside ours, in a table and a picture."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from reproductions.pac_privacy import example_1, example_4, rules
from reproductions.pac_privacy.__main__ import main

import leakcap as lc


def test_example_1_is_made_by_one_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["example1", "--out", str(tmp_path)])
    assert {path.name for path in tmp_path.iterdir()} == {"example_1.csv", "example_1.svg", "example_1.png"}
    table = {int(line.split()[0]): line.split() for line in capsys.readouterr().out.splitlines()[1:]}
    assert (table[1][1], table[10][2], table[50][2]) == ("0.35730", "0.14893", "0.06791")
    with pytest.raises(SystemExit, match="choose from"):
        main(["example9"])


def test_theorem_2_is_the_mean_of_roots_found_by_bisection() -> None:
    def root(prior: float) -> float:
        low, high = prior, 1.0
        for _ in range(100):
            a = (low + high) / 2
            kl = a * math.log(a / prior) + ((1 - a) * math.log((1 - a) / (1 - prior)) if a < 1 else 0.0)
            low, high = (a, high) if kl <= 1 else (low, a)
        return high

    for row in example_1.rows((2, 10, 50)):
        chance = [math.comb(row.n, hits) * Fraction(99 ** (row.n - hits), 100**row.n) for hits in range(row.n + 1)]
        roots = [root(float(sum(chance[j:]))) for j in range(1, row.n + 1)]
        assert row.theorem_2 == pytest.approx(sum(roots) / row.n, rel=1e-9)
        # Planted: each record alone in place of all of them together, and the paper's inequality in place of its root.
        assert abs(row.theorem_2 - row.theorem_1) > 0.05
        assert abs(row.theorem_2 - row.by_fano) > 0.005


def test_the_papers_second_figure_is_fanos() -> None:
    assert round(example_1.by_fano(10), 2) == 0.17


def test_example_4_refuses_pictures_that_are_not_the_published_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_up = np.zeros((60_000, 28, 28), dtype=np.uint8)
    np.savez_compressed(
        tmp_path / "mnist.npz", x_train=made_up, x_test=made_up[:10_000], y_train=made_up[:, 0, 0], y_test=made_up[0, 0]
    )
    monkeypatch.setenv("LEAKCAP_DATA", str(tmp_path))
    with pytest.raises(lc.InputError, match="made-up pictures"):
        example_4.digits()


def test_example_4s_log_det_rule_spends_exactly_what_is_allowed() -> None:
    variances = np.array([4.0, 1.0, 0.01])
    for nats in (0.1, 1.0):
        noise = rules.least_noise(variances, nats)
        assert 0.5 * np.log1p(variances / noise).sum() == pytest.approx(nats, rel=1e-9)
        assert noise.sum() <= rules.papers_noise(variances, nats).sum()
