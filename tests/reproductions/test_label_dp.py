"""The reproduction of label privacy on pictures: it learns, it resumes, its tables read what it wrote. Toy sizes."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from reproductions.label_dp import figure1, page, published, table5, tables, tuning
from reproductions.label_dp.evidence import class_shares, mechanism
from reproductions.label_dp.pictures import PARTS, Pictures, pictures
from reproductions.label_dp.recipe import PRESETS, Recipe, agibi_as_run, alibi, ceiling, naive, ours
from reproductions.label_dp.runs import Conditions, changed, main, result, run_all, run_one, write

import leakcap as lc
from leakcap.errors import InputError

CLASSES = 10


def stripes(count: int, seed: int, size: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Pictures whose hue says the class, with noise of every pixel."""
    draw = np.random.default_rng(seed)
    y = draw.integers(0, CLASSES, count)
    hues = np.random.default_rng(99).uniform(60, 195, (CLASSES, 1, 1, 3))
    return np.clip(hues[y] + draw.normal(0, 40, (count, size, size, 3)), 0, 255).astype(np.uint8), y.astype(np.int64)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder with toy pictures under CIFAR-10's name."""
    arrays = dict(zip(PARTS, (*stripes(400, 0), *stripes(200, 1)), strict=True))
    np.savez(tmp_path / "cifar10.npz", **arrays)
    monkeypatch.setenv("LEAKCAP_DATA", str(tmp_path))
    return tmp_path


def toy(recipe: Recipe, **change: object) -> Recipe:
    small = {"network": "resnet9", "width": 0.125, "epochs": 4, "batch": 40, "peak_lr": 0.2, "limit": 400}
    return replace(recipe, **{**small, **change})


def here(folder: Path, deadline: float = math.inf) -> Conditions:
    return Conditions(folder / "out", "cpu", False, deadline, quiet=True)


def record(recipe: Recipe, accuracy: float, **more: object) -> dict[str, object]:
    known: dict[str, object] = {"judged_on": "test pictures", "device": "toy", "seconds": 1.0, "mechanism": "KRR"}
    same = dict.fromkeys(("posterior_accuracy", "accuracy_without_flip"), accuracy)
    said = {**same, "memorisation": None, **known, **more}
    return {"name": recipe.name, "recipe": recipe.to_dict(), "accuracy": accuracy, **said}


# The record of a run


def test_a_recipe_survives_its_file_and_seeds_share_a_key() -> None:
    for preset in PRESETS.values():
        recipe = preset(2.0)
        assert Recipe.from_dict(json.loads(json.dumps(recipe.to_dict()))) == recipe
        assert replace(recipe, seed=5).key == recipe.key != replace(recipe, epochs=3).key


def test_recipes_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InputError, match="prior"):
        replace(ours(1.0), prior="nobody")
    with pytest.raises(InputError, match="epsilon"):
        replace(ours(1.0), epsilon=None)
    with pytest.raises(InputError, match="mixup"):
        replace(alibi(1.0), mixup=1.0)
    with pytest.raises(InputError, match="there is no setting"):
        changed([ours(1.0)], ["epocs=3"])


def test_lists_hold_each_run_once_in_the_promised_order_and_tuning_never_sees_test_pictures() -> None:
    for runs in tuning.LISTS.values():
        names = [run.name for run in runs()]
        assert len(set(names)) == len(names)
    levels = list(dict.fromkeys((run.preset, run.epsilon) for run in tuning.table()))
    assert levels[:3] == [("ours", 1.0), ("ours", 2.0), ("ceiling", None)]
    assert levels[3:] == [("ours", 8.0), ("ours", 4.0), ("alibi", 1.0), ("alibi", 2.1), ("alibi", 8.0)]
    assert all(run.held_out == 5000 for run in tuning.tuning())


# Evidence


def test_gaussian_noise_as_the_public_code_has_it_is_read_by_its_deviation() -> None:
    used = mechanism(agibi_as_run(3.7), 4)
    observed = used.privatize(np.zeros(20_000, dtype=np.int64))
    assert abs(observed[:, 1:].std() - 1.86) < 0.02 and abs(observed[:, 0].mean() - 1) < 0.06
    likelihood = -((observed[:, None, :] - np.eye(4)) ** 2).sum(axis=2) / (2 * used.sigma**2)  # equation 5
    right, said = likelihood - likelihood[:, :1], used.scores(observed) - used.scores(observed)[:, :1]
    np.testing.assert_allclose(said, used.sigma * right, atol=1e-9)
    with pytest.raises(InputError, match="known for epsilon"):
        mechanism(agibi_as_run(4.0), 4)


@pytest.mark.parametrize("kind", ["auto", "krr", "laplace", "gaussian", "unary", "subset"])
def test_every_mechanism_gives_scores_that_favour_the_truth(kind: str) -> None:
    recipe = replace(ours(4.0), mechanism=kind, delta=1e-5 if kind == "gaussian" else 0.0)
    chosen = mechanism(recipe, CLASSES)
    y = np.random.default_rng(0).integers(0, CLASSES, 2000)
    scores = chosen.scores(chosen.privatize(y))
    assert (scores.argmax(1) == y).mean() > 0.2  # chance is 0.1, and the deviation of the mean below 0.01


def test_class_shares_come_back_from_privatised_labels() -> None:
    true = np.array([0.4, 0.3, 0.2, 0.1])
    y = np.random.default_rng(0).choice(4, 40_000, p=true)
    krr = lc.labels.KRR(epsilon=1.0, n_classes=4)
    observed = krr.privatize(y)
    assert np.abs(class_shares(krr.scores(observed)) - true).max() < 0.05  # six deviations
    assert np.abs(np.bincount(observed) / len(y) - true).max() > 0.08  # counting what was observed would not do


# Tables


def test_tables_read_runs_of_several_occasions_and_say_what_was_not_run(tmp_path: Path, folder: Path) -> None:
    monday, tuesday = tmp_path / "monday", tmp_path / "tuesday"
    for place, seeds in ((monday, (0, 1)), (tuesday, (1, 2))):
        place.mkdir()
        for seed in seeds:
            write(result(place, ours(1.0, seed)), record(ours(1.0, seed), 0.75 + 0.01 * seed))
    write(result(monday, replace(ours(1.0), epochs=3)), record(replace(ours(1.0), epochs=3), 0.99))
    runs = tables.read([monday, tuesday])
    text = tables.page(runs)
    assert len(runs) == 4  # the second seed was found twice and counts once
    assert "| 1 | 76.0 ± 1.0 (3 seeds) | 76.0 | KRR |" in text
    assert "epochs=3 | test pictures | 99.0 (1 seed)" in text.split("## Other settings")[1]
    assert "99.0" not in text.split("## Other settings")[0]  # another recipe never slips into a table
    assert "not run" in text and "data not at hand" in text


def test_published_figures_of_table_4_are_those_of_table_1() -> None:
    printed = {(row.data, row.epsilon): row.accuracy for row in published.TABLE_1 if row.method == "alibi"}
    assert {(data, epsilon): accuracy for data, _, _, accuracy, epsilon in published.TABLE_4} == printed


def test_the_page_shows_the_runs_that_are_kept_and_what_trusts_a_curator_by_itself() -> None:
    """The table in the docs is the one that the kept runs make; PATE-FM stands in a column of its own."""
    text = page.PAGE.read_text(encoding="utf-8")
    runs = tables.read([page.MEASURED])
    assert page.filled(text, runs) == text
    assert published.pate_fm("cifar10") == {0.18: 73.4, 0.29: 86.9, 1.6: 93.7}
    lines = [line.split(" | ") for line in tables.short(runs).splitlines()]
    assert len({len(line) for line in lines}) == 1
    assert all((line[-1] == "93.7 |") == (line[0] == "| 1.6") for line in lines)
    assert not any("93.7" in line[-2] for line in lines)  # never among labels privatised one by one
    printed = {row.epsilon: row.accuracy for row in published.TABLE_1 if (row.data, row.method) == ("cifar10", "alibi")}
    assert published.ONE_BY_ONE_CIFAR10[1.0] == ("ALIBI", printed[1.0])


def test_table_1_shows_runs_with_a_curator_where_they_are_kept(tmp_path: Path) -> None:
    before = tables.table_1_or_6([], 1, (tmp_path,))
    assert "ours, a curator" not in before and "by the votes" not in before
    noise = {"teachers": 800, "sigma1": 800, "sigma2": 300, "threshold": 400, "answers": 250, "questions": 375}
    run = {"settings": noise, "epsilon": 0.261, "epsilon_by_votes": 0.25, "accuracy": 0.6, "accuracy_without_flip": 0.5}
    run["memorisation"] = {"epsilon_lower": 0.1, "canaries": 1000}
    (tmp_path / "pate-fm-800.json").write_text(json.dumps(run))
    other = run | {"settings": noise | {"teachers": 40}, "accuracy": 0.99}
    (tmp_path / "pate-fm-40.json").write_text(json.dumps(other))  # other noise: no line of this table
    found = tables.table_1_or_6([], 1, (tmp_path,))
    assert "0.261 certified, 0.25 by the votes (0.29 printed) | 86.9 | 60.0 (1 seed)" in found and "99.0" not in found
    assert "0.1 or more (1,000 canaries)" in found
    assert "ours, a curator | 0.29 | - | 92.0 (3 seeds)" in tables.table_1_or_6([], 1)


def test_the_picture_is_drawn(tmp_path: Path, folder: Path) -> None:
    pytest.importorskip("matplotlib")
    from reproductions.label_dp.__main__ import main as draw

    for run, value in ((ours(1.0), 0.75), (ours(1.0, 1), 0.77), (ceiling(), 0.96), (naive(1.0), 0.5)):
        write(result(tmp_path, run), record(run, value))
    draw([str(tmp_path), "--out", str(tmp_path / "page")])
    assert (tmp_path / "page" / "accuracy.png").stat().st_size > 2000
    assert "76.0 ± 1.4 (2 seeds)" in (tmp_path / "page" / "tables.md").read_text(encoding="utf-8")


# The runner


def pretend(recipe: Recipe, data: Pictures, conditions: Conditions, say: Callable[[str], None]) -> dict[str, Any]:
    """A run without training: fails with seed 1, and says which process it was."""
    if recipe.seed == 1:
        raise ArithmeticError("planted")
    more = {"accuracy_last_weights": 0.5, "pictures_per_second": 1.0, "process": os.getpid()}
    return record(recipe, 0.5, **more)


@pytest.mark.parametrize("workers", [1, 2])
def test_the_runner_resumes_goes_on_after_a_failure_and_never_repeats_a_run(workers: int, folder: Path) -> None:
    runs = [ours(8.0, seed) for seed in (0, 1, 2)]
    conditions = replace(here(folder), make=pretend)
    (folder / "out").mkdir()
    run_one(runs[0], conditions, None)
    first = result(folder / "out", runs[0])
    before = first.read_bytes(), first.stat().st_mtime_ns
    left = run_all([runs[0], runs[1], runs[2], runs[2]], conditions, workers)
    assert (first.read_bytes(), first.stat().st_mtime_ns) == before
    assert left == [runs[1]]  # it leaves its reason, and the others go on
    reason = result(folder / "out", runs[1]).with_suffix(".error.txt")
    assert "ArithmeticError: planted" in reason.read_text(encoding="utf-8")
    assert len(tables.read([folder / "out"])) == 2 and not list((folder / "out").glob("*.half"))
    third = json.loads(result(folder / "out", runs[2]).read_text(encoding="utf-8"))
    assert third["process"] != os.getpid()


def test_no_run_starts_that_would_end_too_late(folder: Path) -> None:
    late = toy(ours(8.0), limit=100)
    assert run_all([late], here(folder, deadline=0.0)) == [late]
    assert main(["--list", "naive", "--out", str(folder / "out"), "--show"]) == 0


# With torch


def test_views_keep_shape_and_range_and_do_move_pictures() -> None:
    torch = pytest.importorskip("torch")
    from reproductions.label_dp.augment import Album

    torch.manual_seed(0)
    album = Album.of(torch.from_numpy(stripes(64, 0, size=32)[0]))
    rows = torch.arange(64)
    plain = album.plain(rows)
    low, high = ((edge - album.mean) / album.deviation for edge in (0.0, 1.0))
    for view in (album.weak(rows), album.strong(rows)):
        assert view.shape == plain.shape == (64, 3, 32, 32) and torch.isfinite(view).all()
        assert view.is_contiguous(memory_format=torch.channels_last)
        assert (view >= low.view(1, 3, 1, 1) - 1e-4).all() and (view <= high.view(1, 3, 1, 1) + 1e-4).all()
        moved = (view != plain).flatten(1).any(1)
        assert moved.float().mean() > 0.9
        assert (view[0] != view[1]).any()
    # a weak view only rearranges pixels: a picture of one colour stays as it is; a strong one is re-coloured
    flat = Album(torch.full((8, 32, 32, 3), 100, dtype=torch.uint8), album.mean, album.deviation)
    few = torch.arange(8)
    assert torch.equal(flat.weak(few), flat.plain(few)) and not torch.equal(flat.strong(few), flat.plain(few))
    # weak views are mirrored about half of the time and shifted evenly: a single bright pixel lands where it should
    dot = torch.zeros((1, 32, 32, 3), dtype=torch.uint8)
    dot[0, 16, 10] = 255
    one = Album(dot, torch.zeros(3), torch.ones(3))
    places = one.weak(torch.zeros(400, dtype=torch.long))[:, 0].flatten(1).argmax(1)
    assert set((places // 32).tolist()) == set(range(12, 21))
    assert set((places % 32).tolist()) == set(range(6, 15)) | set(range(17, 26))


def test_one_step_of_alibi_follows_the_gradient_of_the_marginal_likelihood() -> None:
    torch = pytest.importorskip("torch")
    from reproductions.label_dp.train import Lesson, Teacher, _cross_entropy

    torch.manual_seed(0)
    logits, scores = torch.randn(20, CLASSES, requires_grad=True), torch.randn(20, CLASSES)
    likelihood = (scores + logits.log_softmax(1)).logsumexp(1).mean()
    (wanted,) = torch.autograd.grad(-likelihood, logits)

    def gradient(power: float) -> object:
        recipe = replace(alibi(1.0), prior_power=power)
        target = Teacher(recipe, Lesson(scores=scores), CLASSES, torch.device("cpu")).targets(torch.arange(20), logits)
        return torch.autograd.grad(_cross_entropy(logits, target), logits)[0]

    assert torch.allclose(gradient(1.0), wanted, atol=1e-6)
    assert not torch.allclose(gradient(2.0), wanted, atol=1e-3)  # the planted fault: not Bayes' rule


@pytest.mark.parametrize(
    "recipe",
    [
        toy(ours(4.0)),
        toy(ours(8.0), mixup=1.0, balance=True, prior="teacher", views=("strong",), prior_power=1.2, epochs=8),
        toy(alibi(8.0), network="wide16", width=0.5),
    ],
    ids=["ours", "variant", "alibi"],
)
def test_a_small_network_learns_from_privatised_labels(recipe: Recipe, folder: Path) -> None:
    torch = pytest.importorskip("torch")
    from reproductions.label_dp.experiment import Experiment

    found = Experiment(recipe, pictures("cifar10"), torch.device("cpu"), say=lambda line: None).run()
    assert found["accuracy"] > 0.4  # chance is 0.1
    assert found["posterior_accuracy"] > 0.4
    assert found["judged_on"] == "test pictures" and found["mechanism"] != "none"


def test_a_network_learns_nothing_from_labels_that_say_nothing(folder: Path) -> None:
    torch = pytest.importorskip("torch")
    from reproductions.label_dp.experiment import Experiment

    recipe = toy(ours(1e-3), mechanism="krr", epochs=2)
    found = Experiment(recipe, pictures("cifar10"), torch.device("cpu"), say=lambda line: None).run()
    assert found["accuracy"] < 0.4


@pytest.mark.parametrize("change", [{"stages": 2}, {"rounds": 2}, {"held_out": 100, "canaries": 50}])
def test_stages_rounds_canaries_and_held_out_pictures_run_and_say_so(change: dict[str, int], folder: Path) -> None:
    torch = pytest.importorskip("torch")
    from reproductions.label_dp.experiment import Experiment

    recipe = toy(ours(4.0), views=("weak",), prior="own", **change)
    found = Experiment(recipe, pictures("cifar10"), torch.device("cpu"), say=lambda line: None).run()
    assert found["accuracy"] > 0.25
    assert ("RRWithPrior" in found["mechanism"]) == ("stages" in change)
    assert (found["judged_on"] != "test pictures") == ("held_out" in change)
    if "canaries" in change:
        assert found["memorisation"]["canaries"] == 50 and len(found["memorisation"]["counts"]) == 6
        assert found["held_out_gain"] > 0


def test_the_memorisation_attack_wins_against_a_network_that_repeats_labels_and_not_against_one_that_cannot() -> None:
    torch = pytest.importorskip("torch")
    from reproductions.label_dp.judge import memorisation

    draw = np.random.default_rng(0)
    y = draw.integers(0, CLASSES, 2000)
    _, key = lc.audit.plant(y, 1000, classes=range(CLASSES), seed=0)
    repeats = torch.full((2000, CLASSES), 0.01)
    repeats[key.rows, key.planted] = 0.91
    found = memorisation(repeats.log(), key)
    assert found["epsilon_lower"] > 7 and all(one["right"] == one["guesses"] for one in found["counts"])
    assert found["all_decoys"] == {"0.5": [[8, 8]] * 1000, "0.9": [[8, 8]] * 1000}
    assert found["believed"] == [[0.91, True]] * 1000
    coin = draw.random(1000) < 0.5
    blind = torch.full((2000, CLASSES), 0.01)
    blind[key.rows, np.where(coin, key.planted, key.decoys)] = 0.91
    decoy = [one for one in memorisation(blind.log(), key)["counts"] if one["game"] == "one decoy"]
    assert all(abs(one["right"] / one["guesses"] - 0.5) < 0.2 for one in decoy)
    silent = memorisation(torch.full((2000, CLASSES), 0.1).log(), key)
    assert silent["epsilon_lower"] == 0 and silent["all_decoys"] == {"0.5": [[0, 0]] * 1000, "0.9": [[0, 0]] * 1000}


def remembered(right: int, canaries: int) -> dict[str, Any]:
    """What a run's file holds where so many of the canaries are guessed right."""
    counts = [
        {"game": game, "candidates": of, "canaries": canaries, "guesses": canaries, "right": right}
        for game, of in (("one decoy", 2), ("every wrong label", 9))
    ]
    hits = [[8, 8]] * right + [[0, 1]] * (canaries - right)
    believed = [[0.9, True]] * (right - 1) + [[0.8, True]] + [[0.3, False], [0.4, False]] * ((canaries - right) // 2)
    both = {"all_decoys": {"0.5": hits, "0.9": hits}, "believed": believed}
    return {"canaries": canaries, "epsilon_lower": 1.0, "counts": counts, **both}


def test_ten_trainings_of_a_hundred_are_added_up_to_one_of_a_thousand(tmp_path: Path) -> None:
    wanted = tuning.table5()
    assert [run.canaries for run in wanted] == [1000] + 10 * [100] and len({run.name for run in wanted}) == 11
    for recipe in wanted:
        held = remembered(6 * recipe.canaries // 10, recipe.canaries)
        write(tmp_path / f"{recipe.name}.json", record(recipe, 0.8, memorisation=held))
    runs = tables.read([tmp_path])
    rows = table5.lines(runs, wanted)
    assert all(one == ten for _, one, ten in rows[:-1]) and len(rows) == 6
    assert rows[-1][1:] == ("1.0-2.2", "0.2-2.5") and "published" in rows[-1][0]
    assert "1 x 1,000 labels" in table5.page(runs, wanted)
    assert "Not all runs" in table5.page(runs[:5], wanted)
    both = table5.pooled(runs, wanted)
    assert both is not None and table5.pooled(runs[:5], wanted) is None
    assert table5.overlap(both).count(": they overlap") == 2
    apart = table5.Pooled.of([remembered(950, 1000)]), both[1]
    assert table5.overlap(apart).count("they do NOT overlap") == 2
    with mock.patch.object(table5, "record") as kept:
        table5.keep(both, wanted, "NVIDIA H200")
    assert kept.call_args.args == ("labels-table5-cifar10-2-1", table5.overlap(both))
    assert kept.call_args.kwargs["machine"] == "one H200"
    assert "1.0 or more (1,000 canaries)" in tables.measured(tables.of(runs, wanted[0]), "cifar10")
    figure1.draw(runs, tmp_path / "figure.png")
    assert len(figure1.groups(runs)) == 2 and (tmp_path / "figure.png").stat().st_size > 5000
    figure1.draw([], tmp_path / "none.png")
    assert not (tmp_path / "none.png").exists()


@pytest.mark.slow
def test_table_5_runs_on_a_processor(folder: Path) -> None:
    pytest.importorskip("torch")
    arguments = ["--smoke", "--out", str(folder / "out")]
    assert table5.main(arguments) == 0
    assert "Appendix B" in (folder / "out" / "table5.md").read_text()
    assert table5.main(arguments) == 0  # nothing is trained again


def test_a_run_leaves_a_file_that_the_tables_read(folder: Path) -> None:
    pytest.importorskip("torch")
    recipe = toy(ours(8.0), epochs=1, limit=100, views=("weak",))
    (folder / "out").mkdir()
    run_one(recipe, here(folder), pictures("cifar10"))
    (run,) = tables.read([folder / "out"])
    assert run.recipe == recipe and 0 <= run.per_cent <= 100
    assert run.record["pictures_per_second"] > 0 and run.record["torch"]
    assert "limit=100" in tables.page([run]).split("## Other settings")[1]
