"""Rule 6 for models of secret labels: with noised sums and answers held fixed, no word or file tells the labels.

Everything that can be seen of a command is compared between runs with different labels, as in `test_command.py`.
Planted twins show that it would be seen. Nothing here is statistical: there are no false alarms.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from leakcap.cli import label_models as command
from leakcap.custody import keys
from leakcap.custody.signing import own_signer
from leakcap.labels.learning.votes import NoisedVotes
from leakcap.labels.statistics.sums import SumsMechanism
from leakcap.tables.learnt_labels import LabelModel
from tests.leaks.command_line.runs import Seen, contents, heard_of, telling

ROWS = 120
NAMES = ["a", "b", "c"]
COMMON = ["--column", "y", "--classes", ",".join(NAMES), "--epsilon", "9"]
KINDS = {
    "ridge": ["--method", "statistics"],
    "logistic": ["--method", "statistics", "--model", "logistic"],
    "lda": ["--method", "statistics", "--model", "lda"],
    "bayes": ["--method", "statistics", "--model", "bayes"],
    "pate": ["--method", "pate", "--teachers", "40"],
}


def some_labels(number: int) -> Any:
    """Different in every row and in how many there are of each class; the third kind never has the last class."""
    shares = [[0.8, 0.1, 0.1], [0.1, 0.1, 0.8], [0.5, 0.5, 0.0]][number]
    return np.random.default_rng(40 + number).choice(3, size=ROWS, p=shares)


def table_of(labels: Any, form: str) -> str:
    rng = np.random.default_rng(1)
    features = {"x": rng.normal(size=ROWS), "z": rng.normal(size=ROWS), "word": ["here", "th,ere", ""] * (ROWS // 3)}
    table = pd.DataFrame(features | {"y": np.array(NAMES)[labels]})
    if form == "csv":
        table.to_csv("data.csv", index=False)
    else:  # with notes about the labels in it
        table.astype({"y": "category"}).to_parquet("data.parquet")
    return f"data.{form}"


def held_fixed(monkeypatch: Any) -> None:
    """Sums and answers that were agreed on beforehand, whatever the labels."""

    def sums(self: Any, rows: Any, codes: Any) -> Any:
        return np.random.default_rng(2).integers(-900, 900, (self.columns, self.classes.count))

    def answers(self: Any, votes: Any) -> Any:
        return np.random.default_rng(3).integers(0, self.classes, self.costs.questions)

    monkeypatch.setattr(SumsMechanism, "release", sums)
    monkeypatch.setattr(NoisedVotes, "release", answers)


@pytest.fixture
def watch(tmp_path: Path, monkeypatch: Any, capfd: Any, caplog: Any) -> Callable[..., list[Seen]]:
    """A command run once for every kind of labels, each time in an equal folder of its own."""

    def runs(kind: str, *more: str, form: str = "csv") -> list[Seen]:
        keys.own_key()  # whose first use is told
        own_signer()
        found = []
        for number in range(3):
            place = tmp_path / f"try{number}"
            place.mkdir(exist_ok=True)
            monkeypatch.chdir(place)  # --out is the same word everywhere
            data = table_of(some_labels(number), form)
            again = ["--again"] if Path("out").exists() else []
            arguments = ["labels", data, *COMMON, *KINDS[kind], *again, *more, "--out", "out"]
            found.append(Seen(*heard_of(arguments, capfd, caplog), contents(Path("out")), []))
        return found

    held_fixed(monkeypatch)
    return runs


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("kind", KINDS)
def test_all_that_a_model_leaves_is_the_same_whatever_the_labels_were(kind: str, form: str, watch: Any) -> None:
    runs = watch(kind, form=form)
    assert runs[0].code == 0, runs[0].err
    assert not telling(runs)
    assert {"public/predictions.csv", "public/certificate.json", "public/page.html"} <= set(runs[0].files)


@pytest.mark.parametrize("kind", ["ridge", "pate"])
def test_so_it_is_for_programs_and_again(kind: str, watch: Any) -> None:
    for more in (["--json"], ["--quiet"]):
        runs = watch(kind, *more)
        assert runs[0].code == 0, runs[0].err
        assert not telling(runs)
    assert "public-2/certificate.json" in runs[0].files


def test_so_it_is_where_no_student_came_of_it(watch: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(NoisedVotes, "release", lambda self, votes: np.zeros(len(votes), dtype=np.int64))
    runs = watch("pate")
    assert runs[0].code == 2 and not telling(runs)
    assert "custodian/labels/1.json" in runs[0].files


@pytest.mark.parametrize("kind", KINDS)
def test_a_label_that_nobody_named_is_not_shown(kind: str, capfd: Any, caplog: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(SumsMechanism, "release", lambda *given: pytest.fail("labels were summed"))
    table_of(some_labels(0), "csv")
    text = Path("data.csv").read_text().rstrip("\n")
    Path("data.csv").write_text(f"{text[:-1]}zq-4711\n")
    seen = heard_of(["labels", "data.csv", *COMMON, *KINDS[kind], "--out", "out"], capfd, caplog)
    assert seen[0] == 2 and "every class there may be" in seen[2]
    assert "4711" not in repr(seen) and not Path("out").exists()


# The planted twins


@pytest.mark.parametrize("file", ["model.json", "predictions.csv", "page.html", "extra"])
def test_a_planted_class_count_in_a_file_is_caught(file: str, watch: Any, monkeypatch: Any) -> None:
    files = command.model_files

    def careless(order: Any, model: Any, column: Any, **more: Any) -> Any:
        found = files(order, model, column, **more)
        return found | {file: f"{found.get(file, '')}{(column.codes(NAMES, None) == 0).sum()}"}

    monkeypatch.setattr(command, "model_files", careless)
    assert f"public/{file}" in telling(watch("ridge"))


def test_a_model_that_goes_on_from_labels_is_caught(watch: Any, monkeypatch: Any) -> None:
    """The last prediction is a label."""
    fit, named = LabelModel.fit, LabelModel._named

    def keeping(self: Any, column: Any) -> None:
        fit(self, column)
        self.last = int((column.codes(NAMES, None) == 2).any())

    def telling_it(self: Any, codes: Any) -> Any:
        return [*named(self, codes)[:-1], NAMES[self.last]]

    monkeypatch.setattr(LabelModel, "fit", keeping)
    monkeypatch.setattr(LabelModel, "_named", telling_it)
    assert "public/predictions.csv" in telling(watch("pate"))


def test_sums_without_noise_are_caught(watch: Any, monkeypatch: Any) -> None:
    from leakcap.labels.statistics.sums import class_sums

    monkeypatch.setattr(SumsMechanism, "release", lambda self, rows, codes: class_sums(rows, codes, 3))
    assert {"public/model.json", "public/predictions.csv"} <= telling(watch("ridge"))
