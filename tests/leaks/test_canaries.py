"""A key holds no label but the canaries', and a report no place of any: runs that differ in a secret are compared."""

from __future__ import annotations

import copy
import json
import pickle
import stat
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.audit.canaries import CanaryKey

RNG = np.random.default_rng(0)
Y = RNG.integers(5, size=300)


def key_bytes(y: Any, folder: Path) -> bytes:
    folder.mkdir()
    lc.audit.plant(y, 60, classes=range(5), seed=8)[1].save(folder / "key.json")
    return (folder / "key.json").read_bytes()


def test_a_key_does_not_depend_on_labels_of_others(tmp_path: Path) -> None:
    key = lc.audit.plant(Y, 60, classes=range(5), seed=8)[1]
    other = (Y + 1) % 5
    other[key.rows] = Y[key.rows]
    assert key_bytes(Y, tmp_path / "a") == key_bytes(other, tmp_path / "b")
    # The twin: labels of canaries are in it.
    other[key.rows[0]] = (other[key.rows[0]] + 1) % 5
    assert key_bytes(Y, tmp_path / "c") != key_bytes(other, tmp_path / "d")


def test_places_of_canaries_do_not_depend_on_any_label() -> None:
    rows = [lc.audit.plant(y, 60, classes=range(5), seed=8)[1].rows.tolist() for y in (Y, (Y + 2) % 5, np.zeros(300))]
    assert rows[0] == rows[1] == rows[2]


def shown(key: CanaryKey, scores: Any) -> str:
    """All that a report shows, but for the time it took."""
    report = lc.audit.memorised(scores, key, epsilon=1.0)
    held = json.loads(report.to_json())
    held.pop("seconds")
    page = "".join(line for line in report.to_html().splitlines() if "second" not in line)
    return json.dumps(held) + page + str(report) + repr(replace(report, seconds=0.0))


def test_a_report_shows_no_place_and_no_label() -> None:
    key = lc.audit.plant(Y, 60, classes=range(5), seed=8)[1]
    scores = RNG.random((60, 5))
    elsewhere = np.sort(RNG.permutation(300)[:60])
    moved = CanaryKey(300, key.classes, elsewhere, key.planted, decoys=key.decoys, truths=key.truths)
    assert shown(key, scores) == shown(moved, scores)
    turn = (np.arange(5) + 1) % 5  # other labels throughout, believed alike
    pairs = [np.asarray(turn[one]) for one in (key.planted, key.decoys, key.truths)]
    turned = CanaryKey(300, key.classes, key.rows, pairs[0], decoys=pairs[1], truths=pairs[2])
    assert shown(key, scores) == shown(turned, scores[:, np.argsort(turn)])
    # The twin: what is guessed right is told, and must differ.
    assert shown(key, scores) != shown(key, np.eye(5)[key.planted])


def test_a_refutation_names_nobody() -> None:
    labels, key = lc.audit.plant(Y, 60, classes=range(5), seed=8)
    report = lc.audit.memorised(np.eye(5)[labels], key, epsilon=0.5)
    assert report.verdict == "refuted" and report.exposed == ()
    assert json.loads(report.to_json())["most exposed units, by number"] == []


def test_guesses_do_not_look_at_what_was_planted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Label and decoy exchanged: right guesses become wrong ones, and nothing else changes."""
    key = lc.audit.plant(Y, 60, classes=range(5), seed=8)[1]
    turned = CanaryKey(300, key.classes, key.rows, key.decoys, decoys=key.planted, truths=key.truths)
    for scores in (RNG.random((60, 5)), np.ones((60, 5)), np.eye(5)[RNG.integers(5, size=60)]):
        for one, other in zip(
            lc.audit.memorised(scores, key).counts[:3], lc.audit.memorised(scores, turned).counts[:3], strict=True
        ):
            assert one.right + other.right == one.guesses


MARK = 4711.25  # in a row of a canary


@pytest.mark.parametrize("kind", [ValueError, SystemExit, ZeroDivisionError])
def test_errors_of_a_model_do_not_tell_which_rows_it_was_asked_about(kind: Any, capfd: Any, caplog: Any) -> None:
    key = lc.audit.plant(Y, 60, classes=range(5), seed=8)[1]
    X = np.full((300, 2), MARK)

    def failing(rows: Any) -> Any:
        raise kind(f"cannot read {rows[0]}")

    with pytest.raises(lc.errors.OutputError) as caught:
        lc.audit.memorised(failing, key, X)
    told = "".join(traceback.format_exception(caught.value)) + "".join(capfd.readouterr()) + caplog.text
    assert str(MARK) not in told and caught.value.__context__ is None
    assert kind.__name__ in told


def test_a_key_is_its_owners_alone_and_in_nothing_else(tmp_path: Path, capfd: Any, caplog: Any) -> None:
    """Two keys with the same outcome of an audit: all but the key's own file is the same."""
    key = lc.audit.plant(Y, 60, classes=range(5), seed=8)[1]
    key.save(tmp_path / "key.json")
    assert stat.S_IMODE((tmp_path / "key.json").stat().st_mode) == 0o600
    other = CanaryKey(300, key.classes, key.rows, key.decoys, decoys=key.planted, truths=key.truths)
    assert repr(key) == repr(other)
    for one in (key, other):
        with pytest.raises(lc.errors.InputError):
            pickle.dumps(one)
        with pytest.raises(lc.errors.InputError):
            copy.deepcopy(one)
    even = np.ones((60, 5))
    right = [lc.audit.memorised(even + np.eye(5)[one.planted], one).counts for one in (key, other)]
    assert right[0] == right[1]
    assert shown(key, even + np.eye(5)[key.planted]) == shown(other, even + np.eye(5)[other.planted])
    said = capfd.readouterr()
    assert not said.out + said.err + caplog.text
