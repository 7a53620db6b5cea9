"""Rule 6 for private labels: with the observations held fixed, nothing that is written or said tells the labels.

Method: the operating system "draws" just the words that lead from the labels at hand to observations that were agreed
on beforehand. Runs with different labels are then compared in everything that can be seen of them: files (names,
modes, sizes, contents, the custodian's too), both streams, log lines, warnings and the exit code. Planted twins show
that each of these is looked at. Nothing here is statistical: there are no false alarms.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from leakcap import labels as mechanisms
from leakcap.cli import labels as command
from leakcap.custody import keys
from leakcap.custody.signing import own_signer
from leakcap.labels.mechanisms import integer_law as chances
from leakcap.labels.mechanisms.base import Mechanism
from leakcap.labels.mechanisms.integer_law import Chances
from leakcap.labels.mechanisms.krr import response
from tests.leaks.command_line.runs import Seen, contents, heard_of, telling
from tests.leaks.labels.kinds import Labels, Words

ROWS = 40
NAMES = ["a", "b", "c", "d"]


def some_labels(number: int) -> Labels:
    """Different in every row and in how many there are of each class; the third kind never has the last class."""
    rng = np.random.default_rng(100 + number)
    return rng.choice(4, size=ROWS, p=[[0.7, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.7], [0.2, 0.2, 0.6, 0.0]][number])


# Words that lead from any labels to one agreed observation


def word_for(law: Chances, outcomes: npt.ArrayLike) -> Words:
    """First words that settle a draw at these outcomes."""
    sure, _ = law._by_first_bits
    first = {int(outcome): int(np.argmax(sure == outcome)) for outcome in np.unique(outcomes)}
    assert all(sure[word] == outcome for outcome, word in first.items())
    return np.vectorize(first.__getitem__)(np.asarray(outcomes)).astype(np.uint16).ravel()


def krr_words(made: Any, y: Labels, agreed: npt.NDArray[Any]) -> Iterator[Words]:
    moved = agreed != y
    yield word_for(made.chances, moved.astype(int))
    yield np.where(moved, (agreed - y - 1) % made.n_classes, 0)


def entry_words(made: Any, y: Labels, agreed: npt.NDArray[Any]) -> Iterator[Words]:
    yield word_for(made.zero, agreed)
    yield word_for(made.one, agreed[np.arange(len(y)), y])


def subset_words(made: Any, y: Labels, agreed: npt.NDArray[Any]) -> Iterator[Words]:
    last = made.n_classes - 1
    inside = agreed[np.arange(len(y)), y]
    yield word_for(made.chances, (~inside).astype(int))
    for mask, others in ((~inside, made.size), (inside, made.size - 1)):
        drawn = np.tile(np.arange(last - others, last), (len(y), 1))  # where the set does not leave, any will do
        for row in np.flatnonzero(mask):
            # The last class stands in for the label among the others.
            label = y[row]
            wanted = {int(label) if one == last else int(one) for one in np.nonzero(agreed[row])[0] if one != label}
            early = iter(sorted(one for one in wanted if one < last - others))
            drawn[row] = [new if new in wanted else next(early) for new in range(last - others, last)]
        yield from drawn.T


def prior_words(made: Any, y: Labels, agreed: npt.NDArray[Any]) -> Iterator[Words]:
    k = int(made.sizes[0])
    rank, wanted = made._rank[0][y], made._rank[0][agreed]
    moved = (rank < k) & (rank != wanted)
    yield word_for(response(made._working_epsilon, k), moved.astype(int))
    yield np.where(moved, (wanted - rank - 1) % k, 0)
    yield wanted


def play(words: Iterator[Words], monkeypatch: Any) -> Iterator[Words]:
    """Let the operating system draw these words; whoever asks for more, or for fewer, fails."""

    def scripted(dtype: Any, size: int) -> Words:
        if not size:
            return np.empty(0, dtype=dtype)
        found = next(one for one in words if len(one))
        assert len(found) == size
        return found.astype(dtype)

    monkeypatch.setattr(chances, "system_words", scripted)
    return words


FOUR = ["--column", "y", "--classes", ",".join(NAMES), "--epsilon", "1"]
PRIOR = ["--prior", "0.4,0.35,0.24,0.01"]
KINDS: dict[str, tuple[list[str], Callable[..., Iterator[Words]]]] = {
    "krr": ([*FOUR, "--mechanism", "krr"], krr_words),
    "unary": ([*FOUR, "--mechanism", "unary"], entry_words),
    "laplace": ([*FOUR, "--mechanism", "laplace"], entry_words),
    "gaussian": ([*FOUR, "--mechanism", "gaussian"], entry_words),
    "subset": ([*FOUR, "--mechanism", "subset"], subset_words),
    "prior": ([*FOUR, *PRIOR], prior_words),
    "bins": (["--column", "y", "--low", "0", "--high", "4", "--epsilon", "3"], krr_words),
}


def agreed_on(made: Mechanism) -> npt.NDArray[Any]:
    """Outcomes that every label can lead to: places of classes, of values, or a mark for every class."""
    rng = np.random.default_rng(9)
    if isinstance(made, mechanisms.SubsetSelection):
        return np.argsort(rng.random((ROWS, 4)), axis=1) < made.size
    if isinstance(made, mechanisms.UnaryBits | mechanisms.Laplace | mechanisms.Gaussian):
        common = [
            k
            for k in range(len(made.values))
            if min((law._by_first_bits[0] == k).sum() for law in (made.zero, made.one)) > 0
        ]
        return rng.choice(common, size=(ROWS, 4))
    if isinstance(made, mechanisms.RRWithPrior):
        assert made.sizes.tolist() == [3]
        return made._order[0][rng.integers(0, 3, ROWS)]
    return rng.integers(0, made.n_classes, ROWS)


def table_of(y: Labels, form: str, in_bins: bool) -> str:
    features = {"x": np.arange(ROWS), "word": ["some, text"] * ROWS}
    cells = y + 0.5 if in_bins else np.array(NAMES)[y]
    table = pd.DataFrame(features | {"y": cells, "z": np.arange(ROWS) / 7})
    if form == "csv":
        table.to_csv("data.csv", index=False)
    elif form == "parquet":
        table.to_parquet("data.parquet")
    else:  # with notes about the labels in it
        table.astype({"y": "category"}).to_parquet("data.parquet")
    return "data.csv" if form == "csv" else "data.parquet"


def seen(arguments: list[str], capfd: Any, caplog: Any) -> Seen:
    return Seen(*heard_of(arguments, capfd, caplog), contents(Path("out")), [])


@pytest.fixture
def watch(tmp_path: Path, monkeypatch: Any, capfd: Any, caplog: Any) -> Callable[..., list[Seen]]:
    """A command run once for every kind of labels, each time in an equal folder of its own."""

    def runs(kind: str, *more: str, form: str = "csv") -> list[Seen]:
        keys.own_key()  # whose first use is told
        own_signer()
        options, words_for = KINDS[kind]
        found = []
        for number in range(3):
            place = tmp_path / f"try{number}"
            place.mkdir(exist_ok=True)
            monkeypatch.chdir(place)  # --out is the same word everywhere
            y = some_labels(number)
            data = table_of(y, form, kind == "bins")
            order = command.LabelsOrder(**_given(options), data=Path(data), column="y", out=Path("out"))
            made = order.recipe().mechanism
            places = made._classes.codes(y + 0.5) if kind == "bins" else y
            words = play(words_for(made, places, agreed_on(made)), monkeypatch)
            again = ["--again"] if Path("out").exists() else []
            found.append(seen(["labels", data, *options, *again, *more, "--out", "out"], capfd, caplog))
            assert not [one for one in words if len(one)], "not all words were drawn"
        return found

    return runs


def _given(options: list[str]) -> dict[str, Any]:
    pairs = {name.removeprefix("--"): value for name, value in zip(options[::2], options[1::2], strict=True)}
    del pairs["column"]
    return {name: float(value) if name in ("epsilon", "low", "high") else value for name, value in pairs.items()}


FORMS = [(kind, form) for kind in KINDS for form in ("csv", "parquet") if (kind, form) != ("gaussian", "parquet")]


@pytest.mark.parametrize(("kind", "form"), [*FORMS, ("krr", "categories"), ("unary", "categories")])
def test_everything_written_and_said_is_the_same_whatever_the_labels_were(kind: str, form: str, watch: Any) -> None:
    runs = watch(kind, form=form)
    assert runs[0].code == 0, runs[0].err
    assert not telling(runs)
    assert {"public/certificate.json", "public/certificate.txt", "public/page.html"} <= set(runs[0].files)
    assert "epsilon" in runs[0].out


@pytest.mark.parametrize("kind", ["krr", "unary"])
def test_so_it_is_for_programs_and_in_silence_and_again(kind: str, watch: Any) -> None:
    for more in (["--json"], ["--quiet"]):
        runs = watch(kind, *more)
        assert not telling(runs)
        assert runs[0].code == 0, runs[0].err
        assert bool(runs[0].out) == (more == ["--json"])
    assert "public-2/certificate.json" in runs[0].files


def test_a_refusal_does_not_say_whether_the_labels_are_those_of_before(watch: Any, capfd: Any, caplog: Any) -> None:
    watch("krr")
    found = []
    for number in (0, 1):
        table_of(some_labels(number), "csv", False)  # in the folder of the last run: other labels, then others again
        found.append(seen(["labels", "data.csv", *KINDS["krr"][0], "--out", "out"], capfd, caplog))
    assert found[0].code == 4
    assert not telling(found)


# The planted twins


def _counts(column: Any) -> str:
    """How many labels of the first class there are."""
    return str(int((column.codes(NAMES, None) == 0).sum()))


def _planted(name: str, monkeypatch: Any) -> None:
    files, privatise = command.public_files, command.secret_labels

    def in_files(order: Any, recipe: Any, column: Any, **more: Any) -> Any:
        found = files(order, recipe, column, **more)
        where = name.removeprefix("public/")
        if where == "labels.csv":
            return found | {where: found[where] + f"{_counts(column)}\n".encode()}
        return found | {where: f"{found.get(where, '')}<!-- {_counts(column)} -->"}

    def aloud(recipe: Any, column: Any) -> Any:
        {
            "out": lambda: print(_counts(column)),
            "err": lambda: print(_counts(column), file=sys.stderr),
            "log": lambda: logging.getLogger("leakcap").info("%s of them", _counts(column)),
            "warned": lambda: warnings.warn(_counts(column), stacklevel=1),
        }[name]()
        return privatise(recipe, column)

    def in_custody(folders: Any, runs: int, certificate: Any) -> None:
        record(folders, runs, certificate)
        (folders.custodian / "labels" / "note").write_text(_counts(LAST[0]))

    record = command.record
    if name.startswith("public/"):
        monkeypatch.setattr(command, "public_files", in_files)
    elif name.startswith("custodian/"):
        LAST.clear()
        monkeypatch.setattr(command, "secret_labels", lambda r, c: (LAST.insert(0, c), privatise(r, c))[1])
        monkeypatch.setattr(command, "record", in_custody)
    else:
        monkeypatch.setattr(command, "secret_labels", aloud)


LAST: list[Any] = []
PLANTED = ["public/labels.csv", "public/certificate.json", "public/page.html", "public/extra", "custodian/labels/note"]


@pytest.mark.parametrize("name", [*PLANTED, "out", "err", "log", "warned"])
def test_a_planted_class_count_is_caught(name: str, watch: Any, monkeypatch: Any) -> None:
    _planted(name, monkeypatch)
    assert name in telling(watch("krr"))


def test_notes_about_the_labels_in_a_parquet_file_would_be_seen(watch: Any, monkeypatch: Any) -> None:
    """The planted twin: categories leave as the file lists them. The third kind of labels has one less."""
    from leakcap.tables.parquet_labels import ParquetLabels

    written = ParquetLabels.written

    def careless(self: Any, cells: Any) -> bytes:
        plain = parquet.read_table(pa.BufferReader(written(self, cells)))
        text = pa.BufferOutputStream()
        parquet.write_table(plain.replace_schema_metadata(self.table.schema.metadata), text)
        return text.getvalue().to_pybytes()

    monkeypatch.setattr(ParquetLabels, "written", careless)
    assert "public/labels.parquet" in telling(watch("krr", form="categories"))
