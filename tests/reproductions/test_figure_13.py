"""Figure 13: an attacker that wins where there is something to find, and is at chance where there is not."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from reproductions.pac_private_algorithms import figure_13, series


def played(shift: float, releases: int = 2000, flowers: int = 40) -> figure_13.Success:
    """Confidences of flowers of which one tells whether it took part, as far as `shift` says."""
    rng = np.random.default_rng(3)
    inside = rng.permuted(np.tile(np.arange(flowers) < flowers // 2, (releases, 1)), axis=1)
    confidence = rng.normal(size=(releases, flowers))
    confidence[:, 11] += shift * inside[:, 11]
    return figure_13.attacked(confidence, inside)


def test_thresholds_chosen_beforehand_find_nothing_in_noise_and_those_chosen_afterwards_do() -> None:
    """False alarms: 1 % for the flower, 1e-4 for the mean (20,000 fair guesses at least)."""
    found = played(0.0)
    assert found.most_exposed[1] < 0.5
    assert abs(found.by_release.mean() - 0.5) < 4 * found.by_release.std() / np.sqrt(len(found.by_release))
    assert found.chosen_after > 0.51


def test_the_one_flower_that_tells_is_the_one_that_is_judged() -> None:
    """N(2, 1) against N(0, 1): at most Phi(1) = .841."""
    share, low, _ = played(2.0).most_exposed
    assert low < 0.8413
    assert share > 0.79


def test_a_quick_run_writes_all_series_and_releases_keep_their_bound(tmp_path: Path) -> None:
    figure_13.main(["--quick", "--out", str(tmp_path)])
    with (tmp_path / "figure_13.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["series"] for row in rows} >= {series.HALVED, series.RULE, series.OURS_MI, series.OURS_CAP}
    for row in rows:
        if row["series"] in (series.OURS_MI, series.OURS_CAP):
            assert float(row["certified_membership"]) <= float(row["membership_cap"])
            assert float(row["most_exposed_low"]) <= float(row["certified_membership"])
    bare = next(row for row in rows if row["series"] == series.HALVED)
    assert float(bare["low"]) > 0.5
    for kind in (".svg", ".png"):
        assert (tmp_path / "figure_13").with_suffix(kind).stat().st_size > 2000
