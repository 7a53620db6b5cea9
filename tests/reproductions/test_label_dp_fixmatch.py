"""The commands of FixMatch and PATE-FM resume, and a teacher's file is used for its own part alone. Toys."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from reproductions.label_dp import fixmatch, pate_fm, tables
from reproductions.label_dp.augment import Album
from reproductions.label_dp.central.__main__ import toy_pictures
from reproductions.label_dp.central.contrastive import Contrastive
from reproductions.label_dp.central.settings import SMOKE as SMALL
from reproductions.label_dp.central.store import save_weights
from reproductions.label_dp.fixmatch import some_labels
from reproductions.label_dp.started import Started, StartedFixMatch
from reproductions.label_dp.told import AS_RUN, RIGHT, fast_route, gaussian
from reproductions.label_dp.told import pate_fm as pate_words

import leakcap as lc
from leakcap.errors import InputError

TINY = {"steps": 1, "batch_size": 8, "mu": 1}


def test_as_many_labels_of_each_class_and_no_others() -> None:
    y = np.arange(500) % 10
    known = some_labels(y, 50, 10, seed=0)
    assert np.bincount(known[known >= 0]).tolist() == [5] * 10 and (known[known >= 0] == y[known >= 0]).all()
    assert not np.array_equal(known, some_labels(y, 50, 10, seed=1))


def test_a_run_leaves_a_file_and_is_not_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fixmatch, "SMOKE", TINY)
    command = ["--smoke", "--labels", "50", "--out", str(tmp_path), "--device", "cpu"]
    assert fixmatch.main(command) == 0
    record = json.loads((tmp_path / "fixmatch-50-seed0.json").read_text())
    assert record["steps"] == 1 and 0 <= record["accuracy"] <= 1 and record["settings"]["confidence"] == 0.95
    monkeypatch.setattr(fixmatch, "run", None)
    assert fixmatch.main(command) == 0


def test_teachers_are_kept_and_vote_once_all_are_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pate_fm, "SMOKE", TINY)
    command = ["--smoke", "--teachers", "60", "--epsilon", "8", "--out", str(tmp_path), "--device", "cpu"]
    assert pate_fm.main([*command, "--seconds", "0"]) == 1  # no time: nothing trained, nothing released
    assert not list(tmp_path.glob("*.json"))
    data = toy_pictures()
    parts = pate_fm.parts_of(len(data.y_train), 60, 0)
    folder = tmp_path / "teachers-60-seed0-30s-lr0.03"
    for part in parts[1:]:  # perfect teachers, as files
        np.save(pate_fm.kept(folder, int(part[0])), data.y_train.astype(np.uint8))
    assert pate_fm.main(command) == 0  # one teacher was missing, and is trained
    record = json.loads((tmp_path / "pate-fm-60-eps8-30s-lr0.03-seed0.json").read_text())
    assert record["epsilon"] == 8 and record["answers_right"] > 0.9
    assert record["epsilon_by_votes"] > 0 and 8 < record["epsilon_newer"] < 10
    monkeypatch.setattr(lc.labels, "PATE", None)
    assert pate_fm.main(command) == 0  # nothing is released again
    (tmp_path / "pate-fm-60-eps8-30s-lr0.03-seed0.json").unlink()
    assert pate_fm.main(command) == 0  # nor if the call was stopped while the student learnt


def test_given_noise_and_planted_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pate_fm, "SMOKE", TINY)
    data = toy_pictures()
    labels, _ = lc.audit.plant(data.y_train, 20, classes=range(10), seed=0)
    folder = tmp_path / "teachers-30-seed0-canaries20-30s-lr0.03"
    folder.mkdir()
    for part in pate_fm.parts_of(len(labels), 30, 0):
        np.save(pate_fm.kept(folder, int(part[0])), labels.astype(np.uint8))
    noise = ["--sigma1", "20", "--sigma2", "20", "--threshold", "15", "--queries", "60", "--answers", "40"]
    command = ["--smoke", "--teachers", "30", "--canaries", "20", *noise, "--out", str(tmp_path), "--device", "cpu"]
    assert pate_fm.main(command) == 0
    record = json.loads(next(tmp_path.glob("pate-fm-30-*.json")).read_text())
    assert record["settings"]["threshold"] == 15 and record["memorisation"]["canaries"] == 20
    paper = pate_fm.noise_of(argparse.Namespace(paper=0.29, epsilon=8.0))
    assert paper == {"sigma1": 800, "sigma2": 300, "threshold": 400, "queries": 375, "answers": 250}


def test_teachers_of_another_pace_are_kept_apart(tmp_path: Path) -> None:
    """They learnt otherwise, and would vote together under the name of one of them."""
    tiny = ["--smoke", "--teachers", "60", "--seconds", "0", "--out", str(tmp_path), "--device", "cpu"]
    for pace in ([], ["--teacher-seconds", "0.6"], ["--learning-rate", "0.003"], ["--canaries", "5"]):
        assert pate_fm.main([*tiny, *pace]) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "teachers-60-seed0-0.6s-lr0.03",
        "teachers-60-seed0-30s-lr0.003",
        "teachers-60-seed0-30s-lr0.03",
        "teachers-60-seed0-canaries5-30s-lr0.03",
    ]


def test_an_encoder_that_took_all_seconds_leaves_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, device = toy_pictures(), torch.device("cpu")
    save_weights(
        tmp_path,
        "encoder",
        Contrastive(SMALL, Album.of(torch.from_numpy(data.x_train)), device).whole,
        epoch=1,
        epochs=1,
        seconds=500.0,
    )
    with pytest.raises(SystemExit):
        fixmatch.main(["--smoke", "--encoder", str(tmp_path), "--out", str(tmp_path / "out"), "--device", "cpu"])
    assert "give more --seconds" in capsys.readouterr().err
    encoder, _ = fixmatch.started(data, tmp_path, "cpu", smoke=True)
    known = some_labels(data.y_train, 100, 10, seed=0)
    settings = {"steps": 10_000, "batch_size": 8, "mu": 1, "seconds": 0.1, "random_state": 0}
    assert StartedFixMatch(encoder, 10, device="cpu", **settings).fit(data.x_train, known).n_steps_ <= 100


def test_a_teacher_answers_for_the_part_it_learnt(tmp_path: Path) -> None:
    np.save(pate_fm.kept(tmp_path, 7), np.arange(10, dtype=np.uint8))
    rows = np.array([[7], [3]])
    assert pate_fm.KeptTeacher(tmp_path).fit(rows, np.array([0, 1])).predict(rows).tolist() == [7, 3]
    assert pate_fm.KeptTeacher(tmp_path).fit(rows[::-1], np.array([0, 1])).predict(rows).tolist() == [0, 0]


def test_an_encoder_from_a_folder_is_where_training_starts_and_its_seconds_count(tmp_path: Path) -> None:
    """First guesses are those of the labels and of neighbours; nothing of other labels is in the network."""
    data, device = toy_pictures(), torch.device("cpu")
    album = Album.of(torch.from_numpy(data.x_train))
    save_weights(tmp_path, "encoder", Contrastive(SMALL, album, device).whole, epoch=1, epochs=1, seconds=100.0)
    encoder, passed = fixmatch.started(data, tmp_path, "cpu", smoke=True)
    assert encoder.seconds == 100 and passed > 100
    known = some_labels(data.y_train, 100, 10, seed=0)
    net = encoder.network(known, 10)
    assert float((net(album.plain(slice(0, 500))).argmax(1).numpy() == data.y_train[:500]).mean()) > 0.3  # chance: .1
    again = encoder.network(np.where(known >= 0, known, -1), 10)
    pairs = zip(net.parameters(), again.parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)
    model = StartedFixMatch(encoder, 10, device="cpu", random_state=0, **TINY).fit(data.x_train, known)
    assert model.n_steps_ == 1 and model.predict_proba(data.x_test).shape == (300, 10)
    with pytest.raises(InputError, match=r"run reproductions\.label_dp\.central first"):
        fixmatch.started(data, tmp_path / "nothing", "cpu", smoke=True)


def test_rounds_of_guesses_reach_classes_from_neighbour_to_neighbour() -> None:
    """Features say little of three classes, and three neighbours in four are of a picture's own class."""
    draw = np.random.default_rng(0)
    y = np.repeat(np.arange(3), 500)
    encoder = Started.__new__(Started)
    encoder.columns = draw.normal(size=(1500, 10)) + 1.5 * np.eye(3, 10)[y]
    encoder.seen = torch.from_numpy(encoder.columns).float()
    own = 500 * y[:, None] + draw.integers(0, 500, (1500, 4))
    some = np.where(draw.random((1500, 4)) < 0.75, own, draw.integers(0, 1500, (1500, 4)))
    encoder.near = torch.from_numpy(np.column_stack([np.arange(1500), some]))
    known = some_labels(y, 15, 3, seed=1)

    def right(rounds: int) -> float:
        return float((encoder.guesses(known, 3, rounds).argmax(1).numpy() == y).mean())

    assert right(20) > right(0) + 0.07 and right(20) > 0.87
    shares = encoder.guesses(known, 3, 20).mean(0)
    assert torch.allclose(shares, torch.full((3,), 1 / 3), atol=0.01)  # those of the labels


def test_a_school_comes_before_fixmatch_and_its_seconds_count(tmp_path: Path) -> None:
    data, device = toy_pictures(), torch.device("cpu")
    whole = Contrastive(SMALL, Album.of(torch.from_numpy(data.x_train)), device).whole
    save_weights(tmp_path, "encoder", whole, epoch=1, epochs=1, seconds=100.0)
    given = ["--smoke", "--encoder", str(tmp_path), "--out", str(tmp_path / "out"), "--device", "cpu", "--labels", "50"]
    with pytest.raises(SystemExit):
        fixmatch.main([*given, "--school", "10", "--seconds", "105"])
    encoder, _ = fixmatch.started(data, tmp_path, "cpu", smoke=True)
    known = some_labels(data.y_train, 100, 10, seed=0)
    plain, schooled = (encoder.network(known, 10, 5, school) for school in (0.0, 0.5))
    assert not torch.equal(plain.head.weight, schooled.head.weight)
    assert all(w.requires_grad for name, w in schooled.named_parameters() if name != "head.bias")


def test_what_kept_runs_reached_is_told_with_the_seconds_of_the_encoder() -> None:
    words = fixmatch.told()
    assert words.index("from random weights") < words.index("from an encoder") and "482 s in all" in words
    assert "80 s of school, 250 labels: 91.4 % (6,280 steps, 474 s in all, seed 0)" in words
    assert pate_words().startswith("200 teachers: 55.7 % at 7.81") and "PATE on embeddings 85" in fast_route()
    assert "482 s in all, 2 more than asked" in words and "477 s in all, seed 0)" in words
    lines = gaussian(tables.read([fixmatch.MEASURED]))
    assert [line["published"] for line in lines] == [71.3, 84.3, 93.5]
    assert all(line[AS_RUN] < line[RIGHT] for line in lines)  # its posterior and its noise cost accuracy
