"""Rule 6 for private labels: with the observations held fixed, nothing that is written or said tells the labels.

Method: the operating system "draws" just the words that lead from the labels at hand to observations that were agreed
on beforehand. Runs with different labels are then compared in everything that can be seen of them: files (names,
modes, sizes, contents, the custodian's too), both streams, log lines, warnings and the exit code. Planted twins show
that each of these is looked at. Nothing here is statistical: there are no false alarms.
"""

from __future__ import annotations

import logging
import pickle
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
from leakcap.cli import label_recipe
from leakcap.cli import labels as command
from leakcap.labels import chances
from leakcap.labels.chances import Chances
from leakcap.labels.krr import KRR, response
from leakcap.labels.mechanism import Mechanism
from tests.leaks.test_command_line import Seen, _contents, heard_of, said, telling

Words = npt.NDArray[np.unsignedinteger[Any]]
Labels = npt.NDArray[np.int64]
ROWS = 40
NAMES = ["a", "b", "c", "d"]
MARK = "777123"


@pytest.fixture(autouse=True)
def _own_place(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)


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
    return Seen(*heard_of(arguments, capfd, caplog), _contents(Path("out")), [])


@pytest.fixture
def watch(tmp_path: Path, monkeypatch: Any, capfd: Any, caplog: Any) -> Callable[..., list[Seen]]:
    """A command run once for every kind of labels, each time in an equal folder of its own."""

    def runs(kind: str, *more: str, form: str = "csv") -> list[Seen]:
        options, words_for = KINDS[kind]
        found = []
        for number in range(3):
            place = tmp_path / f"try{number}"
            place.mkdir(exist_ok=True)
            monkeypatch.chdir(place)  # --out is the same word everywhere
            y = some_labels(number)
            data = table_of(y, form, kind == "bins")
            order = command.Order(**_given(options), data=Path(data), column="y", out=Path("out"))
            made = label_recipe.Recipe.of(order).mechanism
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
    files, privatise = command.public_files, label_recipe.Recipe.labels_of

    def in_files(order: Any, recipe: Any, column: Any, *more: Any) -> Any:
        found = files(order, recipe, column, *more)
        where = name.removeprefix("public/")
        if where == "labels.csv":
            return found | {where: found[where] + f"{_counts(column)}\n".encode()}
        return found | {where: f"{found.get(where, '')}<!-- {_counts(column)} -->"}

    def aloud(self: Any, column: Any) -> Any:
        {
            "out": lambda: print(_counts(column)),
            "err": lambda: print(_counts(column), file=sys.stderr),
            "log": lambda: logging.getLogger("leakcap").info("%s of them", _counts(column)),
            "warned": lambda: warnings.warn(_counts(column), stacklevel=1),
        }[name]()
        return privatise(self, column)

    def in_custody(folders: Any, runs: int, certificate: Any) -> None:
        record(folders, runs, certificate)
        (folders.custodian / "labels" / "note").write_text(_counts(LAST[0]))

    record = command.record
    if name.startswith("public/"):
        monkeypatch.setattr(command, "public_files", in_files)
    elif name.startswith("custodian/"):
        LAST.clear()
        monkeypatch.setattr(label_recipe.Recipe, "labels_of", lambda s, c: (LAST.insert(0, c), privatise(s, c))[1])
        monkeypatch.setattr(command, "record", in_custody)
    else:
        monkeypatch.setattr(label_recipe.Recipe, "labels_of", aloud)


LAST: list[Any] = []
PLANTED = ["public/labels.csv", "public/certificate.json", "public/page.html", "public/extra", "custodian/labels/note"]


@pytest.mark.parametrize("name", [*PLANTED, "out", "err", "log", "warned"])
def test_a_planted_class_count_is_caught(name: str, watch: Any, monkeypatch: Any) -> None:
    _planted(name, monkeypatch)
    assert name in telling(watch("krr"))


def test_notes_about_the_labels_in_a_parquet_file_would_be_seen(watch: Any, monkeypatch: Any) -> None:
    """The planted twin: categories leave as the file lists them. The third kind of labels has one less."""
    from leakcap.cli.label_column import _Arrow

    written = _Arrow.written

    def careless(self: Any, cells: Any) -> bytes:
        plain = parquet.read_table(pa.BufferReader(written(self, cells)))
        text = pa.BufferOutputStream()
        parquet.write_table(plain.replace_schema_metadata(self.table.schema.metadata), text)
        return text.getvalue().to_pybytes()

    monkeypatch.setattr(_Arrow, "written", careless)
    assert "public/labels.parquet" in telling(watch("krr", form="categories"))


# Mechanisms keep nothing, and draw alike whatever the labels are


MADE: dict[str, Callable[[], Mechanism]] = {
    "KRR": lambda: mechanisms.KRR(1.0, 5),
    "KRR of names": lambda: mechanisms.KRR(1.0, classes=[0, 1, 2, 3, 4]),
    "UnaryBits": lambda: mechanisms.UnaryBits(1.0, 5),
    "UnaryBits, optimised": lambda: mechanisms.UnaryBits(1.0, 5, optimised=True),
    "Laplace": lambda: mechanisms.Laplace(1.0, 5),
    "Gaussian": lambda: mechanisms.Gaussian(1.0, 5),
    "SubsetSelection": lambda: mechanisms.SubsetSelection(1.0, 5),
    "SubsetSelection of 3": lambda: mechanisms.SubsetSelection(1.0, 5, size=3),
    "RRWithPrior": lambda: mechanisms.RRWithPrior(1.0, [0.4, 0.3, 0.28, 0.01, 0.01]),
    "RRWithPrior by rows": lambda: mechanisms.RRWithPrior(1.0, np.random.default_rng(1).dirichlet(np.ones(5), 2000)),
    "RROnBins": lambda: mechanisms.RROnBins(3.0, 0, 4),
}
LABELS = [np.zeros(2000, dtype=int), np.full(2000, 4), np.random.default_rng(2).integers(0, 5, 2000)]


def remembered(made: Mechanism, y: Labels) -> bytes:
    made.privatize(y)
    return pickle.dumps((made, vars(made)))


@pytest.mark.parametrize("name", MADE)
def test_a_mechanism_remembers_nothing_of_the_labels(name: str) -> None:
    assert len({remembered(MADE[name](), y) for y in LABELS}) == 1


class Remembering(KRR):
    """The planted twin: it keeps a figure of the labels it saw last."""

    def _observe(self, codes: Labels) -> npt.NDArray[Any]:
        self.last_ = int(codes.sum())
        return super()._observe(codes)


def test_a_mechanism_that_remembers_would_be_caught() -> None:
    assert len({remembered(Remembering(1.0, 5), y) for y in LABELS}) == 3


def asked_for(made: Mechanism, y: Labels, monkeypatch: Any) -> list[tuple[str, int]]:
    """Which words a mechanism asks the operating system for, where that gives the same words every time."""
    calls: list[tuple[str, int]] = []
    rng = np.random.default_rng(7)

    def recording(dtype: Any, size: int) -> Words:
        calls.append((np.dtype(dtype).name, size))
        return np.frombuffer(rng.bytes(size * np.dtype(dtype).itemsize), dtype=dtype)

    monkeypatch.setattr(chances, "system_words", recording)
    made.privatize(y)
    return calls


@pytest.mark.parametrize("name", MADE)
def test_the_words_drawn_do_not_depend_on_the_labels(name: str, monkeypatch: Any) -> None:
    made = MADE[name]()
    calls = [asked_for(made, y, monkeypatch) for y in LABELS]
    assert calls[0] == calls[1] == calls[2]
    assert sum(size for _, size in calls[0]) >= 2000


def patterns(made: Mechanism, monkeypatch: Any) -> set[tuple[tuple[str, int], ...]]:
    """The requests of 300 calls for one label, each with other words; those that settle rare draws left out."""
    rng, calls = np.random.default_rng(11), list[tuple[str, int]]()

    def recording(dtype: Any, size: int) -> Words:
        if np.dtype(dtype) != np.uint64:
            calls.append((np.dtype(dtype).name, size))
        return np.frombuffer(rng.bytes(size * np.dtype(dtype).itemsize), dtype=dtype)

    monkeypatch.setattr(chances, "system_words", recording)
    found = set()
    for _ in range(300):
        calls.clear()
        made.privatize([1])
        found.add(tuple(calls))
    return found


@pytest.mark.parametrize("name", MADE)
def test_the_words_drawn_do_not_depend_on_what_leaves(name: str, monkeypatch: Any) -> None:
    """Whoever times a call must not learn whether the label was kept."""
    made = MADE[name]()
    if "rows" not in name:  # that one has a prior for many labels
        assert len(patterns(made, monkeypatch)) == 1


def test_a_mechanism_that_spares_kept_labels_would_be_caught(monkeypatch: Any) -> None:
    class Sparing(KRR):
        def _observe(self, codes: Labels) -> npt.NDArray[Any]:
            moved = np.flatnonzero(self.chances.draw(len(codes)))
            found = codes.copy()
            found[moved] = (codes[moved] + 1 + chances.below(self.n_classes - 1, len(moved))) % self.n_classes
            return found

    assert len(patterns(Sparing(1.0, 5), monkeypatch)) == 2


def test_a_mechanism_that_draws_by_label_would_be_caught(monkeypatch: Any) -> None:
    """The planted twin: a label of the first class is left alone, so nothing is drawn for it."""

    class Sparing(KRR):
        def _observe(self, codes: Labels) -> npt.NDArray[Any]:
            found = codes.copy()
            found[codes > 0] = super()._observe(codes[codes > 0]) if (codes > 0).any() else 0
            return found

    calls = [asked_for(Sparing(1.0, 5), y, monkeypatch) for y in LABELS]
    assert len({str(one) for one in calls}) == 3


# Errors hold no data


FAILING = {
    "labels outside the classes": ["--classes", "a,b"],
    "text for numbers": ["--low", "0", "--high", "1"],
    "a class left out": ["--classes", "a,c"],
}


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("name", FAILING)
def test_errors_quote_no_label(name: str, form: str, capfd: Any, caplog: Any) -> None:
    table = pd.DataFrame({"y": ["a", f"x{MARK}", "b", None], "x": [int(MARK)] * 4})
    getattr(table, f"to_{form}")(f"data.{form}", index=False)
    options = ["--column", "y", "--epsilon", "1", *FAILING[name], "--out", "out"]
    code, words = said(["labels", f"data.{form}", *options], capfd, caplog)
    assert code == 2, words
    assert MARK not in words
    assert not Path("out").exists()


@pytest.mark.parametrize("kind", ["int64", "float64", "bool"])
def test_errors_quote_no_number(kind: str, capfd: Any, caplog: Any) -> None:
    cells = np.array([0, 1, 0], dtype=kind) if kind == "bool" else np.array([0, 1, int(MARK)], dtype=kind)
    parquet.write_table(pa.table({"y": cells}), "data.parquet")
    for classes in ("0,1", "a,b", "0,7"):
        options = ["--column", "y", "--epsilon", "1", "--classes", classes, "--out", f"out{kind}{classes}"]
        code, words = said(["labels", "data.parquet", *options], capfd, caplog)
        assert code == (0 if kind == "bool" and classes == "0,1" else 2), words
        assert MARK not in words.replace(f"out{kind}", "")


@pytest.mark.parametrize("place", ["leakcap.cli.label_runs.write_private", "leakcap.cli.labels.label_page"])
def test_an_unexpected_error_is_told_by_kind_and_place_alone(
    place: str, capfd: Any, caplog: Any, monkeypatch: Any
) -> None:
    def defect(*_: Any, **__: Any) -> Any:
        raise RuntimeError(f"inside {MARK}")

    monkeypatch.setattr(place, defect)
    Path("data.csv").write_text("y\na\nb\n")
    options = ["--column", "y", "--epsilon", "1", "--classes", "a,b", "--out", "out"]
    code, words = said(["labels", "data.csv", *options], capfd, caplog)
    assert code == 70
    assert MARK not in words
    assert not Path("out/public").exists()


def test_a_careless_error_would_be_seen(capfd: Any, caplog: Any, monkeypatch: Any) -> None:
    """The planted twin: an error that names the label it met."""
    from leakcap.cli.label_column import LabelColumn
    from leakcap.errors import InputError

    def careless(self: Any, *_: Any) -> Any:
        raise InputError(f"no class {self.table['y'].iloc[1]}")

    monkeypatch.setattr(LabelColumn, "codes", careless)
    Path("data.csv").write_text(f"y\na\nx{MARK}\n")
    options = ["--column", "y", "--epsilon", "1", "--classes", "a,b", "--out", "out"]
    assert MARK in said(["labels", "data.csv", *options], capfd, caplog)[1]
