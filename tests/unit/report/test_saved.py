"""A release in a folder and back: the same value, error bars and certificate; public bytes alone are read."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import Ridge

import leakcap as lc
from leakcap.report.release.saved import MODEL, RELEASE

X = np.random.default_rng(0).normal(size=(60, 3))
TABLE = pd.DataFrame({"age": X[:, 0], "size": X[:, 1], "ward": np.repeat(["A", "B", "C"], 20)})
HOW: dict[str, Any] = {"cap": 0.9, "worlds": 16, "draws": 256}


@dataclass
class Own:
    mean: float


FORMS: dict[str, tuple[Callable[..., Any], Any]] = {
    "a number": (lambda x: float(x.mean()), X),
    "an array": (lambda x: x.mean(axis=0), X),
    "a dict of parts": (lambda x: {"mean": x.mean(), "parts": (x[:, 0].mean(), [x[:, 1].mean(), 7])}, X),
    "a series": (lambda t: t[["age", "size"]].mean(), TABLE),
    "a table by group": (lambda t: t.groupby("ward")[["age", "size"]].mean(), TABLE),
    "two levels": (lambda t: t.groupby(["ward", t["age"] > 9])["size"].agg(["mean", "sum"]), TABLE),
    "polars": (lambda t: t.select(pl.col("age", "size").mean()), pl.from_pandas(TABLE)),
}


@pytest.mark.parametrize("name", FORMS)
def test_what_is_loaded_is_what_was_saved(name: str, tmp_path: Path) -> None:
    fn, data = FORMS[name]
    release = lc.release(fn, data, **HOW)
    release.save(tmp_path / "out", title="Asked", issuer="We")
    for folder in (tmp_path / "out", tmp_path / "out" / "public"):
        again = lc.load(folder)
        assert type(again.value) is type(release.value)
        assert pickle.dumps(again.value) == pickle.dumps(release.value) or str(again.value) == str(release.value)
        assert again.certificate == release.certificate
        assert np.array_equal(again.interval(0.9)[0], release.interval(0.9)[0])
        assert again.names == release.names
    assert not (tmp_path / "out" / "public" / MODEL).exists()


def test_a_model_is_unpickled_only_where_it_is_trusted(tmp_path: Path) -> None:
    release = lc.release(lambda x: Ridge().fit(x[:, :2], x[:, 2]), X, **HOW)
    release.save(tmp_path / "out")
    careful = lc.load(tmp_path / "out")
    assert np.array_equal(careful.value, release.outputs)
    assert careful.not_rebuilt is not None and "trust=True" in careful.not_rebuilt
    trusted = lc.load(tmp_path / "out", trust=True)
    assert np.array_equal(trusted.value.coef_, release.value.coef_)
    (tmp_path / "out" / "public" / MODEL).write_bytes(pickle.dumps(pytest.fail))  # would run
    lc.load(tmp_path / "out")


def test_a_value_of_a_kind_of_its_own_is_loaded_as_numbers(tmp_path: Path) -> None:
    release = lc.release(lambda x: Own(float(x.mean())), X, **HOW)
    release.save(tmp_path / "out")
    again = lc.load(tmp_path / "out")
    assert np.array_equal(again.value, release.outputs)
    assert again.not_rebuilt is not None


def test_the_folder_is_that_of_the_command_line(tmp_path: Path) -> None:
    release = lc.release(lambda x: x.mean(axis=0), X, **HOW)
    release.save(tmp_path / "out")
    names = {path.name for path in (tmp_path / "out" / "public").iterdir()}
    assert {"answer.csv", "answer.json", "certificate.html", "certificate.json", "README.txt", RELEASE} <= names
    custodian = tmp_path / "out" / "custodian"
    assert {path.name for path in custodian.iterdir()} == {"README.txt", "exposure.csv", "report.html"}
    assert all(path.stat().st_mode & 0o077 == 0 for path in (custodian, *custodian.iterdir()))
    with pytest.raises(lc.AlreadyReleased, match="another folder"):
        release.save(tmp_path / "out")


def test_a_release_that_was_copied_or_loaded_saves_its_public_part_alone(tmp_path: Path) -> None:
    release = lc.release(lambda x: x.mean(axis=0), X, **HOW)
    pickle.loads(pickle.dumps(release)).save(tmp_path / "copy")
    assert not list((tmp_path / "copy" / "custodian").iterdir())
    lc.load(tmp_path / "copy").save(tmp_path / "again")
    one, two = ((tmp_path / name / "public" / RELEASE).read_text() for name in ("copy", "again"))
    assert one == two


def test_simulations_are_saved_only_where_that_is_said(tmp_path: Path) -> None:
    release = lc.release(lambda x: x.mean(), X, **HOW, seed=1)
    with pytest.raises(lc.InputError, match="allow_simulation=True"):
        release.save(tmp_path / "out")
    assert not (tmp_path / "out").exists()
    release.save(tmp_path / "out", allow_simulation=True)


def test_what_is_no_release_or_damaged_or_older_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(lc.InputError, match="no release in"):
        lc.load(tmp_path)
    release = lc.release(lambda x: x.mean(), X, **HOW)
    release.save(tmp_path / "out")
    place = tmp_path / "out" / "public" / RELEASE
    held = json.loads(place.read_text())
    (place.parent / "SHA256SUMS").unlink()
    place.write_text(json.dumps(held | {"form": 99}))
    with pytest.raises(lc.InputError, match="later version"):
        lc.load(tmp_path / "out")
    place.write_text("{")
    with pytest.raises(lc.InputError, match="damaged"):
        lc.load(tmp_path / "out")
    place.unlink()
    with pytest.raises(lc.InputError, match="earlier version"):
        lc.load(tmp_path / "out")
