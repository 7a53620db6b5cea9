"""The reproduction of learnable obfuscation: printed figures put right, a page made of its records, runs that go on."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reproductions.learnable_obfuscation import beside, cells, figure_1, page, told
from reproductions.learnable_obfuscation.__main__ import main
from reproductions.learnable_obfuscation.arithmetic import (
    nats_behind,
    papers_failure,
    printed_members,
    right_failure,
    trials_of,
)
from reproductions.learnable_obfuscation.as_printed import AsPrinted
from reproductions.learnable_obfuscation.cells import Cell, cells_of, read_record, write_record
from reproductions.learnable_obfuscation.data import made_up
from reproductions.learnable_obfuscation.guessed import amounts_to
from reproductions.learnable_obfuscation.insider import Insider, gains_of
from reproductions.learnable_obfuscation.published import ATTACKED, POOL, TABLES
from reproductions.learnable_obfuscation.told import Measured
from reproductions.marked import NOT_RUN


def relative_entropy(success: float, prior: float) -> float:
    return success * math.log(success / prior) + (1 - success) * math.log((1 - success) / (1 - prior))


# What is printed


def test_every_printed_figure_about_a_member_has_more_nats_behind_it_than_the_bit() -> None:
    """All 36 cells of Tables 3 and 5, by arithmetic of its own; the paper's conversion gives the figure back."""
    found = list(printed_members())
    assert [cell.table for cell in found] == [3] * 18 + [5] * 18
    for cell in found:
        rate = cell.setting[0] / 50_000
        entropy = -rate * math.log(rate) - (1 - rate) * math.log(1 - rate)
        assert cell.nats == pytest.approx(relative_entropy(1 - cell.failure, rate), rel=1e-12)
        assert cell.nats > 1.3 * entropy == pytest.approx(1.3 * cell.entropy, rel=1e-9)
        assert papers_failure(cell.nats, rate) == pytest.approx(cell.failure, abs=1e-6)
        assert right_failure(cell.nats, rate) == 0
    assert round(min(cell.nats / cell.entropy for cell in found), 2) == 1.32
    assert "36 of 36" in told.printed_figures()


def test_the_papers_conversion_is_broken_by_a_release_that_tells_everything() -> None:
    """Planted: the bit itself is released. The paper's conversion says that most claims fail, where none does."""
    rate = 0.02
    entropy = -rate * math.log(rate) - (1 - rate) * math.log(1 - rate)
    assert papers_failure(entropy, rate) > 0.89
    assert right_failure(entropy * (1 + 1e-9), rate) == 0
    assert right_failure(0.01, rate) > 0.7  # what is less than the bit does say something
    assert nats_behind(1 - rate, rate) == pytest.approx(0, abs=1e-12)


def test_tables_hold_the_cells_that_the_paper_has() -> None:
    sizes = {table: sum(noise > 0 for row in rows.values() for noise in row) for table, rows in TABLES.items()}
    assert sizes == {1: 24, 2: 24, 3: 18, 5: 18}
    assert {(cell.setting, cell.noise) for cell in cells_of(4)} == {(s, n) for s, row in ATTACKED.items() for n in row}
    for setting, row in TABLES[3].items():
        assert row[0.0].accuracy == TABLES[1][setting][0.0].accuracy
        for noise in (0.03, 0.04, 0.05):  # a bound on failures lies below what the paper's own attack reached
            assert row[noise].failure < ATTACKED[setting][noise] <= 1 - setting[0] / POOL


def test_trials_of_theorem_six_are_those_after_which_its_errors_are_allowed() -> None:
    """Put back into (9) and (10) as they are printed, and as the proof page has them, for four released rows."""
    nats, gamma, m, d, noise = 0.01, 1e-6, 4, 2, 0.5
    found = trials_of((1000, m, 1), noise, nats=nats, gamma=gamma, columns=d)
    q, power, root = 0.02, 1 / noise**2, math.sqrt(m)
    for log_trials, reach in ((found.nine, root), (found.nine_mended, m), (found.nine_traces, 1)):
        span = math.sqrt(math.log(2 / gamma)) * m * (1 + reach * power)
        assert d * q * (1 - q) / math.sqrt(2 * 10**log_trials) * span == pytest.approx(nats)
    for log_trials, reach, kind in ((found.ten, root, "printed"), (found.ten_mended, m, "mended")):
        L, b = 10**log_trials, 1 + reach * power
        a = math.sqrt(32 * math.log(6 * m / gamma) * b**2 / L)
        inner = m * (root + a) * a / noise ** (2 * m) if kind == "printed" else m * (b + a) ** (m - 1) * a
        spread = math.sqrt(2 * math.log(3 / gamma) / L) * m * math.log(b)
        assert d / 2 * (math.log1p(inner) + spread) == pytest.approx(nats, rel=1e-5)
    assert found.nine_traces < found.nine < found.nine_mended
    assert found.ten_tangent < found.ten_mended
    large = trials_of((1000, 2000, 5), 0.05, nats=nats, gamma=gamma)
    assert large.ten_mended > 20_000 and large.ten > 10_000  # digits: far from m^4 d^2
    assert 30 < large.ten_tangent < 32


# The page


def test_the_page_is_the_one_that_the_records_make() -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.filled(text) == text
    for name, part in page.PARTS.items():
        assert f"<!-- {name} -->" in text, part
    for picture in page.PICTURES.values():
        drawn = page.DOCS / "images" / picture
        assert f"images/{picture}" in text and 5_000 < drawn.stat().st_size < 60_000


def test_a_changed_record_changes_the_page(tmp_path: Path) -> None:
    """Planted: a success that nobody measured."""
    shutil.copytree(cells.MEASURED, tmp_path / "measured")
    cell = Cell((4000, 6000, 15), 0.05)
    held = read_record(tmp_path / "measured", "member", cell)
    assert held is not None
    write_record(tmp_path / "measured", "member", cell, held | {"success_certified": 0.6123})
    tables = [told.one_member(Measured(folder), 3) for folder in (cells.MEASURED, tmp_path / "measured")]
    assert [("0.6123" in table) for table in tables] == [False, True]
    assert tables[0] in page.PAGE.read_text(encoding="utf-8")


def test_without_records_the_page_says_what_is_missing(tmp_path: Path) -> None:
    nothing = Measured(tmp_path)
    assert "Not measured yet: 234 of 234 records" in told.missing(nothing)
    for name in ("figure_1", "figure_2", "unencoded", "shared_out", "learnable", "learnable_words", "mask"):
        assert page.PARTS[name](nothing) == NOT_RUN
    known = told.one_member(nothing, 3)  # what is printed is known without
    assert "| (1K, 2K, 5) | 0.05 | 0.70 | 0.577 | 0.098 | 0.00 |  |" in known


def test_every_cell_of_tables_3_and_5_has_both_conversions_and_what_is_certified() -> None:
    records = Measured(cells.MEASURED)
    for table in (3, 5):
        lines = told.one_member(records, table).splitlines()
        assert len(lines) == 2 + 18
        for cell, line in zip((one for one in cells_of(table) if one.noise), lines[2:], strict=True):
            shown = [word.strip() for word in line.strip("|").split("|")]
            found = records("member", cell)
            assert shown[5] == "0.00" and float(shown[3]) > float(shown[4])
            if found:
                worst, mean = float(shown[-2]), float(shown[-1])
                assert found["success_certified"] <= worst <= found["success_certified"] + 2e-4
                assert found["mean_success_certified"] <= mean <= worst
                assert found["mean_success_certified"] >= 0.5 and found["gamma"] == 1e-6


def test_records_are_sane_and_no_attack_beats_its_bound() -> None:
    records = Measured(cells.MEASURED)
    for kind, cell in told.wanted():
        found = records(kind, cell)
        if not found:
            continue
        assert found["kind"] == kind and tuple(found["setting"]) == cell.setting and found["public"] == cell.learnable
        if kind == "accuracy":
            assert len(found["network_trials"]) == len(found["ridge_trials"]) == 5
            assert 0.5 < found["network"] < 0.95 and 0.5 < found["ridge"] < 0.95
        if kind == "whole":
            assert min(found["log_det_nats_estimate"], found["trace_nats_estimate"], found["mask_nats_estimate"]) > 0
    assert "| NO |" not in told.attacked(records)


def test_some_attack_wins_below_its_bound_and_others_show_nothing() -> None:
    """Without one that wins, attacks below their bounds would show nothing about the bounds."""
    records, wins = Measured(cells.MEASURED), 0
    for cell in (one for table in (3, 5) for one in cells_of(table) if one.noise):
        inside, printed, member = (records(kind, cell) for kind in ("insider", "printed", "member"))
        if inside and member:
            assert inside["low"] <= inside["balanced_success"] <= member["success_certified"] + 1e-9
            wins += inside["low"] > 0.5 and inside["high"] < member["success_certified"]
        if printed:
            assert printed["low"] <= 0.5 <= printed["high"]
    assert wins >= 6  # an interval above a coin flip and below the bound
    assert "| NO |" not in told.attacked_again(records)


def test_what_the_insider_gains_is_the_ratio_of_the_laws() -> None:
    """In as many dimensions as rows have, beside the law as it is, with public rows and without."""
    rng, (m, wide, d, swaps) = np.random.default_rng(0), (9, 4, 5, 3)
    mixed, added, released = rng.normal(size=(m, wide)), rng.normal(size=(m, wide)), rng.normal(size=(m, d))
    weights, change = rng.normal(size=(m, swaps)), rng.normal(size=(swaps, wide))

    def law(means: Any, public: Any) -> float:
        covariance = (means @ means.T + public @ public.T) / d + 0.3 * np.eye(m)
        fits = float(np.sum(released * np.linalg.solve(covariance, released)))
        return -(d * np.linalg.slogdet(covariance)[1] + fits) / 2

    for public in (None, added):
        more = {} if public is None else {"added": public, "added_gram": public.T @ public}
        found = gains_of(mixed, released, weights, change, columns=d, variance=0.3, **more)
        held = np.zeros((m, 1)) if public is None else public
        moved = [law(mixed + np.outer(weights[:, one], change[one]), held) for one in range(swaps)]
        assert found == pytest.approx(np.array(moved) - law(mixed, held))


def test_the_insider_wins_and_a_coin_counted_as_printed_looks_like_an_attack() -> None:
    data = made_up(learnable=False)
    cell = Cell((200, 400, 5), 0.2)
    found = Insider(data, columns=16)(cell, releases=4)
    assert found["low"] > 0.5 and found["recognised"] > found["false_alarms"]
    printed = AsPrinted(data, columns=16)(Cell((200, 400, 5), 0.2), releases=4, simulated=3)
    assert abs(printed["balanced_success"] - 0.5) < 0.1
    coin = np.random.default_rng(1).normal(size=(10, 100)) * 1e4
    inside = np.arange(100) % 2 == np.zeros((10, 1))
    tossed = amounts_to(coin, inside, 0.02, 0.0)
    assert tossed["failed_as_printed"] == pytest.approx(0.5, abs=0.06) and tossed["low"] < 0.5 < tossed["high"]


def test_an_attack_above_its_bound_would_show(tmp_path: Path) -> None:
    """Planted: an attack that gets more than is certified."""
    cell = Cell((1000, 2000, 5), 0.05)
    attack = {"balanced_success": 0.9, "error": 0.01, "recognised": 0.9, "false_alarms": 0.1}
    write_record(tmp_path, "attack", cell, attack)
    for certified, word in ((0.95, "yes"), (0.88, "within its error"), (0.6, "NO")):
        write_record(tmp_path, "member", cell, {"success_certified": certified})
        assert f"| {word} |" in told.attacked(Measured(tmp_path))


def test_learnable_noise_is_compared_at_equal_success(tmp_path: Path) -> None:
    """Public rows that gain two points at every noise, and hide as much: two points, wherever one looks."""
    setting = (1000, 2000, 5)
    for learnable, gain in ((False, 0.0), (True, 0.02)):
        for noise, mean in ((0.03, 0.9), (0.04, 0.8), (0.05, 0.7)):
            cell = Cell(setting, noise, learnable)
            member = {"success_certified": 0.95, "mean_success_certified": mean, "trace_nats_estimate": 0.1}
            write_record(tmp_path, "member", cell, member)
            write_record(tmp_path, "accuracy", cell, {"network": 0.9 - noise + gain})
    assert beside.learnable(Measured(tmp_path)).count("| +2.0 |") == 3
    assert "+2.0 to +2.0 points" in beside.learnable_words(Measured(tmp_path))
    assert beside.points(-0.01) == "+0.0"


# Runs


def test_what_has_a_record_is_not_measured_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    from reproductions.learnable_obfuscation import measure

    def untrained(self: Any, some: Sequence[Cell]) -> Iterator[tuple[Cell, dict[str, Any]]]:
        return ((cell, {"network": 0.5}) for cell in some)

    monkeypatch.setattr(measure.Bench, "accuracies", untrained)
    options = ["--smoke", "--backend", "torch:cpu", "--out", str(tmp_path)]
    main(["table1", *options, "--seconds", "-1"])  # no time: nothing is begun
    assert "9 records of this share are missing" in capsys.readouterr().out
    main(["table1", *options])
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert len(made) == 9 and "every record" in capsys.readouterr().out
    lost = sorted(made)[-1]
    (tmp_path / lost).unlink()
    main(["table1", *options])
    again = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert capsys.readouterr().out.count(" s  ") == 1  # one line: the one that was lost
    assert all(again[name] == text for name, text in made.items() if name != lost)
    before, after = (json.loads(texts[lost]) for texts in (made, again))
    assert after | {"seconds": 0} == before | {"seconds": 0}  # seeded: the same figures


def test_one_cell_of_every_kind_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    from reproductions.learnable_obfuscation import learn, measure, member

    for name, few in (("DRAWS", 8), ("LOOKS", 2), ("SWAPS", 1)):
        monkeypatch.setattr(member, name, few)
    monkeypatch.setattr(measure, "TRIALS", 1)
    monkeypatch.setattr(learn, "PENALTIES", (0.1,))
    bench, cell = measure.Bench("cpu", smoke=True), Cell((200, 400, 5), 0.5, learnable=True)
    found = bench.tool("member", learnable=True)(cell)
    assert 0.5 <= found["mean_success_certified"] <= found["success_certified"] <= 1
    attack = bench.tool("attack", learnable=False)(Cell((200, 400, 5), 0.5), simulated=2, releases=2)
    assert 0 <= attack["balanced_success"] <= 1
    ((_, right),) = bench.accuracies([Cell((200, 400, 5), 0.0)])
    assert right["ridge"] > 0.8 and right["unencoded_ridge"] > 0.8  # ten classes that are easy to tell apart


def test_figures_are_measured_once_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    from reproductions.learnable_obfuscation.pictures import figure_one, figure_two, save_svg

    main(["figure1", "figure2", "--smoke", "--out", str(tmp_path)])
    points = json.loads((tmp_path / figure_1.FILE).read_text(encoding="utf-8"))
    assert all(point["log_det_pairs"] <= point["entropy"] + 1e-9 and point["pair_success"] <= 1 for point in points)
    capsys.readouterr()
    main(["figure1", "figure2", "--smoke", "--out", str(tmp_path)])
    assert capsys.readouterr().out.count("is there") == 2
    for draw, folder in ((figure_one, cells.MEASURED), (figure_two, tmp_path)):
        save_svg(draw(folder), tmp_path / "drawn.svg")
        assert "</svg>" in (tmp_path / "drawn.svg").read_text(encoding="utf-8")


def test_a_word_that_is_no_part_is_refused() -> None:
    with pytest.raises(SystemExit, match="figure1"):
        main(["table6"])
