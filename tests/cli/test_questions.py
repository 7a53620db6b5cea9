"""From a file and options to a question: right rows, right labels, and messages that help without quoting a cell."""

from __future__ import annotations

import gzip
import os
import pickle
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leakcap as lc
from leakcap import datasets
from leakcap.cli import files
from leakcap.cli.questions import Question, ask

real = pytest.mark.skipif(not os.environ.get("LEAKCAP_DATA"), reason="LEAKCAP_DATA names no folder")

MARK = "7712345"  # every cell of the table below holds it, or is a marked word
PEOPLE = pd.DataFrame(
    {
        "who": [int(f"{MARK}00{i // 2:02d}") for i in range(24)],
        "age": [float(f"{MARK}.{i:02d}") for i in range(24)],
        "hours": np.arange(24) + int(MARK),
        "member": [i % 2 == 0 for i in range(24)],
        "town": [f"t{MARK}{'ab'[i // 12]}" for i in range(24)],
        "name": [f"n{MARK}x{i}" for i in range(24)],
        "born": [f"20{i // 12}1-0{1 + i % 9}-11" for i in range(24)],
    }
)


@pytest.fixture(params=["csv", "csv.gz", "tsv", "parquet"])
def people(request: Any, tmp_path: Path) -> Path:
    path = tmp_path / f"people.{request.param}"
    if request.param == "parquet":
        PEOPLE.to_parquet(path)
    else:
        PEOPLE.to_csv(path, index=False, sep="\t" if request.param == "tsv" else ",")
    return path


@pytest.fixture
def table(tmp_path: Path) -> Callable[..., Path]:
    def write(content: str | bytes | pd.DataFrame, name: str = "table.csv") -> Path:
        path = tmp_path / name
        if isinstance(content, pd.DataFrame):
            content.to_parquet(path)
        else:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def refused(words: str, call: Callable[[], Any], kind: type[Exception] = lc.InputError) -> str:
    """The message; neither it nor anything chained to it quotes a marked cell."""
    with pytest.raises(kind, match=words or None) as caught:
        call()
    error: BaseException | None = caught.value
    shown = "".join(traceback.format_exception(error))
    while error is not None:
        shown += str(error) + repr(error.args)
        error = error.__cause__ or error.__context__
    assert MARK not in shown
    assert "SECRET" not in shown
    return str(caught.value)


# What comes out


def test_a_mean_is_that_of_the_columns_in_their_order(people: Path) -> None:
    question = ask(people, "mean", ["hours", "age"])
    np.testing.assert_allclose(question.data, PEOPLE[["hours", "age"]].to_numpy(float))
    assert question.data.dtype == np.float64
    assert question.data.flags.c_contiguous
    np.testing.assert_allclose(question.fn(question.data), PEOPLE[["hours", "age"]].mean())
    assert question.names == ("hours", "age")
    assert question.title == "mean of hours, age"
    assert (question.unit, question.strata, question.public, question.notes) == (None, None, (), ())


def test_columns_may_come_in_one_word_with_commas(people: Path) -> None:
    assert ask(people, "median", ["hours, age"]).names == ("hours", "age")


@pytest.mark.parametrize(
    ("fn", "options", "names"),
    [
        ("median", {}, ("age", "hours")),
        ("quantile", {"q": (0.25, 0.999)}, ("age, 25 %", "hours, 25 %", "age, 99.9 %", "hours, 99.9 %")),
        ("covariance", {}, ("age, variance", "age × hours", "hours, variance")),  # noqa: RUF001
        (
            "histogram",
            {"bins": ["0,18.5,65", "0:3:1"]},
            ("age, under 18.5", "age, 18.5 or more", "hours, under 1", "hours, 1 to 2", "hours, 2 or more"),
        ),
    ],
)
def test_there_is_a_name_for_every_output(people: Path, fn: str, options: Any, names: tuple[str, ...]) -> None:
    question = ask(people, fn, ["age", "hours"], **options)
    assert question.names == names
    assert np.asarray(question.fn(question.data)).size == len(names)


def test_yes_and_no_are_numbers(people: Path) -> None:
    question = ask(people, "mean", ["member"])
    assert question.fn(question.data) == 0.5
    shares = ask(people, "histogram", ["member"])
    assert shares.names == ("member = no", "member = yes")
    assert shares.public == ()


def test_a_question_can_be_planned_with_its_units_and_strata(table: Any) -> None:
    people = table(PEOPLE.to_csv(index=False))
    question = ask(people, "mean", ["age"], unit="who", strata=["town"])
    plan = lc.plan(
        question.fn,
        question.data,
        cap=lc.membership(0.7),
        unit=question.unit,
        strata=question.strata,
        worlds=16,
        draws=256,
        public=question.public,
    )
    assert plan.worlds.n == 12


def test_several_strata_are_one_label(people: Path) -> None:
    question = ask(people, "mean", ["age"], strata=["town,member"])
    assert question.strata is not None
    assert len(set(question.strata.tolist())) == 4


def test_labels_are_those_of_the_file(people: Path) -> None:
    question = ask(people, "mean", ["age"], unit="who", strata=["town"])
    assert question.unit is not None and question.strata is not None
    assert question.unit.tolist() == PEOPLE["who"].tolist()
    assert question.strata.tolist() == PEOPLE["town"].tolist()


def test_questions_travel_to_worker_processes(people: Path) -> None:
    for fn, options in (("mean", {}), ("quantile", {"q": (0.1, 0.2)}), ("histogram", {"bins": ["0:4:1"]})):
        question = ask(people, fn, ["age"], **options)
        again = pickle.loads(pickle.dumps(question.fn))
        np.testing.assert_array_equal(again(question.data), question.fn(question.data))


def test_a_question_does_not_show_its_rows(people: Path) -> None:
    assert MARK not in repr(ask(people, "mean", ["age"], unit="who", strata=["town"]))


# Whose rows they are


LONG = 2**62 + 1  # a float would make one person of it and its neighbour


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("gap", [False, True])
def test_long_ids_are_not_rounded(table: Any, ending: str, gap: bool) -> None:
    """A gap in a column of whole numbers turns it into floats, in pandas."""
    ids = [LONG, LONG + 1, LONG, LONG + 1, None if gap else LONG + 2]
    frame = pd.DataFrame({"who": pd.array(ids, dtype="Int64"), "x": np.arange(5.0)})
    path = table(frame if ending == "parquet" else frame.to_csv(index=False), f"t.{ending}")
    question = ask(path, "mean", ["x"], unit="who", missing="drop")
    assert question.unit is not None
    assert list(map(int, question.unit)) == [one for one in ids if one is not None]


@pytest.mark.parametrize(
    ("cells", "people_in_it"),
    [
        ("1,01,1.0,2,2.0", 2),  # numbers written in several ways
        ("a,b,a ,b,c", 3),  # text, with a blank behind
        ("1,1,x,x,", 2),
        ("123456789012345678901,123456789012345678902,123456789012345678901,1,1", 3),  # beyond 64 bits
    ],
)
def test_one_person_is_one_label(table: Any, cells: str, people_in_it: int) -> None:
    path = table("who,x\n" + "".join(f"{cell},{i}\n" for i, cell in enumerate(cells.split(","))))
    question = ask(path, "mean", ["x"], unit="who", missing="drop")
    assert question.unit is not None
    assert len(set(question.unit.tolist())) == people_in_it


def test_a_unit_for_every_row_is_noted_not_refused(people: Path) -> None:
    (note,) = ask(people, "mean", ["age"], unit="name").notes
    assert "every row is a unit of its own" in note


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("did you mean 'who'", {"unit": "whoo"}),
        ("leave it out of --columns", {"unit": "age"}),
        ("unit and stratum at once", {"unit": "who", "strata": ["who"]}),
        ("changes between the rows of one 'who', for 12 of them", {"unit": "who", "strata": ["member"]}),
        ("no column 'wher'", {"strata": ["wher"]}),
    ],
)
def test_labels_that_cannot_be_used_are_refused(people: Path, words: str, options: Any) -> None:
    refused(words, lambda: ask(people, "mean", ["age"], **options))


def test_rows_without_a_label_are_refused_or_dropped(table: Any) -> None:
    path = table(f"who,x,town\nSECRET1,{MARK},a\n,{MARK},b\nSECRET2,{MARK},\n")
    refused("1 of 3 rows have no label in who", lambda: ask(path, "mean", ["x"], unit="who"))
    refused("1 of 3 rows have no label in town", lambda: ask(path, "mean", ["x"], strata=["town"]))
    assert ask(path, "mean", ["x"], unit="who", missing="drop").data.shape == (2, 1)


def test_a_single_unit_is_refused(table: Any) -> None:
    refused("same unit", lambda: ask(table(f"who,x\n{MARK},1\n{MARK},2\n"), "mean", ["x"], unit="who"))


# Missing values


GAPS = "a,b,empty\n1,2,\n3,,\n,4,\n5,6,\n"


def test_missing_values_are_refused_with_the_two_ways_out(table: Any) -> None:
    said = refused("2 of 4 rows have a missing value in a, b", lambda: ask(table(GAPS), "mean", ["a", "b"]))
    assert "--missing drop (row by row, before worlds are drawn)" in said
    assert "function of your own" in said


def test_dropping_looks_at_the_chosen_columns_only(table: Any) -> None:
    question = ask(table(GAPS), "mean", ["a"], missing="drop")
    assert question.data.tolist() == [[1], [3], [5]]
    assert question.notes == ("1 of 4 rows with missing values were left out",)
    assert question.public == ("Rows with a missing value in a were left out.",)


def test_columns_without_values_and_tables_without_rows_are_refused(table: Any) -> None:
    refused("'empty' is empty from top to bottom", lambda: ask(table(GAPS), "mean", ["a", "empty"], missing="drop"))
    refused("nothing is left", lambda: ask(table("a,b\n1,\n,2\n"), "mean", ["a", "b"], missing="drop"))


# Columns of the wrong kind


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (["SECRET1", "SECRET2"], "--fn histogram"),
        (['"1,234"', '"77,123,451"'], "thousands"),
        (['"1,5"', '"7712345,25"'], "decimal comma"),
        (["7712345", "?"], r"marks such as \?"),
        (["7712345", "-"], "marks such as"),
        (["7712345%", "3%"], "per cent"),
        (["$7712345", "3"], "currency"),
        (["7712345", "4", "SECRET"], "67% of its cells are numbers"),
        (["2020-01-31", "2021-12-01"], "dates or times"),
        (["31/01/2020", "1/2/2021"], "dates or times"),
        (["7712345", "inf"], "infinite"),
    ],
)
def test_columns_that_are_no_numbers_get_the_likely_cause(table: Any, cells: list[str], words: str) -> None:
    path = table("x,y\n" + "".join(f"{cell},1\n" for cell in cells))
    refused(words, lambda: ask(path, "mean", ["y", "x"]))


def test_kinds_of_parquet_columns_are_told_apart(table: Any) -> None:
    frame = pd.DataFrame(
        {
            "x": [1.5, 2.5],
            "when": pd.to_datetime(["2020-01-01", "2021-01-01"]),
            "long": pd.to_timedelta([1, 2], unit="D"),
            "list": [[int(MARK)], [2]],
            "group": pd.Categorical(["u", "v"]),
            "flag": [True, None],
            "level": pd.Categorical([3, 4]),
        }
    )
    path = table(frame, "kinds.parquet")
    said = refused("such as --columns", lambda: ask(path, "mean"))
    assert "It can use: x (number), flag (yes/no), level (number)." in said
    assert "when (date), long (date), list (other), group (text)" in said
    for name in ("when", "long"):
        refused("dates or times", lambda name=name: ask(path, "mean", [name]))
    refused("neither numbers nor text", lambda: ask(path, "mean", ["list"]))
    refused("cannot say whose", lambda: ask(path, "mean", ["x"], unit="list"))
    refused("cannot make strata", lambda: ask(path, "mean", ["x"], strata=["list"]))
    assert ask(path, "mean", ["level", "flag"], missing="drop").data.tolist() == [[3, 1]]


def test_without_columns_the_message_lists_what_there_is(people: Path) -> None:
    said = refused("such as --columns", lambda: ask(people, "mean", unit="who"))
    assert "It can use: age (number), hours (number), member (yes/no)." in said
    assert "It cannot use: town (text), name (text), born (date)" in said.replace("born (text)", "born (date)")
    assert "town (text)" in refused("It can use", lambda: ask(people, "histogram"))


def test_a_wide_file_is_not_listed_to_the_end(table: Any) -> None:
    path = table(",".join(f"c{i}" for i in range(3000)) + "\n" + ",".join("1" for _ in range(3000)) + "\n")
    said = refused("no column 'd'", lambda: ask(path, "mean", ["d"]))
    assert said.endswith("and 2,976 more")
    assert ask(path, "mean", ["c2999"]).names == ("c2999",)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (["agee"], "did you mean 'age'"),
        (["AGE"], "did you mean 'age'"),
        (["zzz"], "The columns are: who, age"),
        (["age", "age"], "named twice"),
    ],
)
def test_unknown_columns_get_the_likely_one(people: Path, columns: list[str], words: str) -> None:
    refused(words, lambda: ask(people, "mean", columns))


# Histograms


def test_categories_of_the_pool_are_said_to_be_public(people: Path) -> None:
    question = ask(people, "histogram", ["town"])
    assert question.names == (f"town = t{MARK}a", f"town = t{MARK}b")
    assert question.public == ("The categories of town were read from the whole pool.",)
    assert question.fn(question.data).tolist() == [0.5, 0.5]
    assert question.notes == ()


def test_rare_categories_are_noted(table: Any) -> None:
    path = table("t\n" + "often\n" * 30 + "seldom\n" * 3)
    (note,) = ask(path, "histogram", ["t"]).notes
    assert "1 of the categories of t have fewer than 10 rows" in note
    assert "seldom" not in note


def test_columns_of_names_are_not_published_as_categories(people: Path) -> None:
    refused("names or ids", lambda: ask(people, "histogram", ["name"]))


def test_levels_are_what_was_asked_for(table: Any) -> None:
    path = table('sex,town\n0,"a, b"\n1,c\n2, c\n1,d\n')
    question = ask(path, "histogram", ["sex", "town"], levels=["sex=1,0", 'town="a, b",c,e'])
    assert question.names == ("sex = 1", "sex = 0", "town = a, b", "town = c", "town = e")
    assert question.fn(question.data).tolist() == [0.5, 0.25, 0.25, 0.5, 0]
    assert question.public == ()
    assert question.notes == (
        "1 rows of sex are at none of the levels given, and count in none",
        "no row of town is at 'e': is it spelt as in the file?",
        "1 rows of town are at none of the levels given, and count in none",
    )


def test_bins_may_be_given_by_column_or_once_for_all(table: Any) -> None:
    path = table("a,b,t\n1,10,u\n2,20,u\n")
    assert len(ask(path, "histogram", ["a", "b", "t"], bins=["0:30:10"], levels=["t=u"]).names or ()) == 7
    by_name = ask(path, "histogram", ["a", "b"], bins=["b=0,15,30", "a=0:0.3:0.1"])
    assert by_name.names == ("a, under 0.1", "a, 0.1 to 0.2", "a, 0.2 or more", "b, under 15", "b, 15 or more")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "would publish the smallest and the largest value"),
        ({"bins": ["0,18"]}, "at least three"),
        ({"bins": ["18,0,65"]}, "each above the one before"),
        ({"bins": ["0:100"]}, "start:stop:step"),
        ({"bins": ["0:100:30"]}, "whole number of times"),
        ({"bins": ["0:100:0"]}, "above 0"),
        ({"bins": ["0:1e9:1"]}, "to 10,000"),
        ({"bins": ["low,high,top"]}, "such as --bins"),
        ({"bins": ["nan,1,2"]}, "each above"),
        ({"bins": ["0,1,2", "0,1,2"]}, "2 --bins for 1 columns"),
        ({"bins": ["hours=0,1,2"]}, "add it to --columns"),
        ({"levels": ["age"]}, "column=level"),
        ({"levels": ["age="]}, "column=level"),
        ({"levels": ["age=1,1"]}, "twice"),
        ({"levels": ["age=old"]}, "must be numbers"),
        ({"levels": ["age=1"], "bins": ["0,1,2"]}, "no such column is left"),
        ({"levels": ["age=1"], "bins": ["age=0,1,2"]}, "asked for by category"),
    ],
    ids=str,
)
def test_bins_and_levels_that_make_no_sense_are_refused(people: Path, options: Any, words: str) -> None:
    refused(words, lambda: ask(people, "histogram", ["age"], **options))


@pytest.mark.parametrize(
    ("fn", "options", "words"),
    [
        ("meen", {}, "did you mean mean"),
        ("kmeans", {}, "module:function"),
        ("quantile", {"q": (0.0,)}, "strictly between"),
        ("quantile", {"q": (1.0,)}, "strictly between"),
        ("quantile", {"q": ()}, "one or several"),
        ("quantile", {"q": (0.5, 0.5)}, "different"),
        ("mean", {"q": (0.25,)}, "quantile only"),
        ("mean", {"bins": ["0,1,2"]}, "histogram only"),
        ("mean", {"levels": ["age=1"]}, "histogram only"),
        ("mean", {"missing": "ignore"}, "'refuse', 'drop'"),
    ],
)
def test_options_that_would_be_ignored_are_refused(people: Path, fn: str, options: Any, words: str) -> None:
    refused(words, lambda: ask(people, fn, ["age"], **options))


# Files that cannot be read


FILES: dict[str, tuple[str, str | bytes, str]] = {
    "empty": ("t.csv", "", "is empty"),
    "blank": ("t.csv", "\n\n", "is empty"),
    "an empty Parquet file": ("t.parquet", b"", "is empty"),
    "header only": ("t.csv", "a,b\n", "no rows"),
    "an unknown ending": ("t.xlsx", "a", "must end in .csv"),
    "a spreadsheet": ("t.csv", b"PK\x03\x04SECRET", "save the sheet as CSV"),
    "Parquet in disguise": ("t.csv", b"PAR1SECRET", "let its name end in .parquet"),
    "gzip in disguise": ("t.csv", gzip.compress(b"a\nSECRET\n"), "let its name end in .gz"),
    "no gzip": ("t.csv.gz", "a,b\nSECRET,1\n", "cannot be unpacked"),
    "cut off": ("t.csv.gz", gzip.compress(os.urandom(9999).hex().encode())[:5000], "cannot be unpacked"),
    "no Parquet": ("t.parquet", "SECRET,1\n" * 99, "cannot be read as Parquet"),
    "another encoding": ("t.csv", "a,b\nSECRET,é\n".encode("latin-1"), "UTF-8"),
    "binary": ("t.csv", bytes(range(128, 256)) * 9, "UTF-8"),
    "an open quotation mark": ("t.csv", 'a,b\n1,"SECRET\n2,3\n', "quotation mark"),
    "one long line": ("t.csv", "a,b\n1,2\n3,4,SECRET\n", "1 line.* more fields than the 2 names"),
    "long lines": ("t.csv", "a,b\n1,2,SECRET\n3,4,SECRET\n", "2 line.* more fields"),
    "columns of one name": ("t.csv", "a,b,a\n1,2,3\n", "several columns of the same name: a"),
    "no header": ("t.csv", f"{MARK},SECRET,1\n{MARK},x,2\n", "first line looks like data"),
    "no header, numbers twice": ("t.csv", f"{MARK},SECRET,{MARK}\n1,x,2\n", "first line of t.csv looks like data"),
}


@pytest.mark.parametrize("name", FILES)
def test_files_that_cannot_be_read_are_told_apart(name: str, table: Any) -> None:
    ending, content, words = FILES[name]
    path = table(content, ending)
    refused(words, lambda: ask(path, "mean", ["a"]))
    refused("", lambda: ask(path, "mean"))


def test_files_that_are_not_there_are_told_apart(tmp_path: Path) -> None:
    refused("there is no file", lambda: ask(tmp_path / "no.csv", "mean", ["a"]))
    refused("is a folder", lambda: ask(tmp_path, "mean", ["a"]))
    refused("cannot be opened|no file", lambda: ask(tmp_path / ("x" * 300 + ".csv"), "mean", ["a"]))


def test_files_that_may_not_be_read_are_told_apart(table: Any, monkeypatch: Any) -> None:
    def denied(*_: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    path = table("a\n1\n")
    monkeypatch.setattr(files, "_first_bytes", denied)
    refused("may not be read by you", lambda: ask(path, "mean", ["a"]))


def test_an_unquoted_comma_in_any_column_is_found(table: Any) -> None:
    """pandas itself would read the shifted cells without a word when only some columns are wanted."""
    path = table("a,note,b\n1,fine,2\n3,well, SECRET,4\n")
    refused("more fields", lambda: ask(path, "mean", ["a"]))
    assert ask(table('a,note,b\n1,fine,2\n3,"well, yes",4\n'), "mean", ["a", "b"]).data.tolist() == [[1, 2], [3, 4]]
    assert ask(table("a,b,\n1,2,\n3,4,\n"), "mean", ["a", "b"]).data.tolist() == [[1, 2], [3, 4]]


def test_semicolons_byte_order_marks_and_blanks_are_read(table: Any) -> None:
    path = table("\ufeffage; x\n1;2.5\n3;4.5\n")
    assert ask(path, "mean", ["age", "x"]).data.tolist() == [[1, 2.5], [3, 4.5]]


def test_an_index_that_pandas_wrote_is_a_column_if_it_has_a_name(table: Any) -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "id": [5, 7, 6]})
    assert ask(table(frame.set_index("id"), "t.parquet"), "mean", ["id", "x"]).data.tolist() == [[5, 1], [7, 2], [6, 3]]
    nameless = table(frame.set_axis([3, 9, 4]), "u.parquet")
    assert "index" not in refused("no column 'y'", lambda: ask(nameless, "mean", ["y"]))


def test_missing_pandas_or_pyarrow_names_the_extra(people: Path, monkeypatch: Any) -> None:
    absent = "pyarrow" if people.suffix == ".parquet" else "pandas"
    for name in [one for one in sys.modules if one.partition(".")[0] == absent]:
        monkeypatch.setitem(sys.modules, name, None)
    refused(r"leakcap\[tables\]", lambda: ask(people, "mean", ["age"]), lc.errors.MissingExtra)


def test_only_the_needed_columns_of_a_parquet_file_are_read(table: Any, monkeypatch: Any) -> None:
    path, read, asked = table(PEOPLE, "t.parquet"), files._arrow_table, []

    def watched(path: Path, columns: list[str]) -> Any:
        asked.append(columns)
        return read(path, columns)

    monkeypatch.setattr(files, "_arrow_table", watched)
    ask(path, "mean", ["age"], unit="who")
    assert asked == [["who", "age"]]


# Functions of one's own


@pytest.fixture
def module(tmp_path: Path, monkeypatch: Any) -> Callable[[str, str], None]:
    """Writes modules into the current folder, and forgets them afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def write(name: str, code: str) -> None:
        monkeypatch.delitem(sys.modules, name, raising=False)
        (tmp_path / f"{name}.py").write_text(code)

    return write


def test_a_function_of_ones_own_gets_the_table_without_the_unit(people: Path, module: Any) -> None:
    module(
        "own_a",
        "def f(table):\n    return table['age'].mean()\nclass Box:\n    @staticmethod\n    def g(t): return 1.0\n",
    )
    question = ask(people, "own_a:f", unit="who")
    assert list(question.data.columns) == [name for name in PEOPLE if name != "who"]
    assert question.fn(question.data) == pytest.approx(PEOPLE["age"].mean())
    assert (question.names, question.title) == (None, "own_a:f")
    assert list(ask(people, "own_a:Box.g", ["town", "age"]).data.columns) == ["town", "age"]


def test_a_function_of_ones_own_sees_missing_values_unless_they_are_dropped(table: Any, module: Any) -> None:
    module("own_b", "def f(table):\n    return float(len(table))\n")
    path = table(GAPS)
    assert ask(path, "own_b:f", ["a", "b"]).data["a"].isna().sum() == 1
    assert len(ask(path, "own_b:f", ["a", "b"], missing="drop").data) == 2


@pytest.mark.slow
def test_a_function_of_ones_own_runs_in_worker_processes(table: Any, module: Any, tmp_path: Path) -> None:
    people = table(PEOPLE, "people.parquet")
    module("own_c", "def f(table):\n    return table[['age']].mean()\n")
    code = (
        "import leakcap as lc; from pathlib import Path; from leakcap.cli.questions import ask\n"
        f"q = ask(Path({str(people)!r}), 'own_c:f', ['age'])\n"
        "if __name__ == '__main__':\n"
        "    p = lc.plan(q.fn, q.data, cap=lc.membership(.7), worlds=16, draws=256, backend='processes', workers=2)\n"
        "    print(p.worlds.m)\n"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.stdout.strip() == "16", done.stderr


MODULES: dict[str, tuple[str, str, str]] = {
    "no such function": ("def f(t): ...\n", "{}:g", "Its functions are: f"),
    "no function": ("value = 3\n", "{}:value", "of type int, not a function"),
    "fails": ("x = 1\ny = {}['SECRET']\n", "{}:f", "KeyError in line 2 of"),
    "fails further down": ("import json\njson.loads('SECRET')\n", "{}:f", "JSONDecodeError in line 2 of"),
    "does not parse": ("def f(:  # SECRET\n", "{}:f", "SyntaxError in line 1 of"),
    "ends": ("raise SystemExit('SECRET')\n", "{}:f", "SystemExit in line 1"),
    "needs another": ("import no_such_package\n", "{}:f", "needs no_such_package, which is not installed"),
    "named as a file": ("def f(t): ...\n", "{}.py:f", "without .py"),
    "without a function": ("def f(t): ...\n", "{}:", "no module:function"),
    "not a name": ("def f(t): ...\n", "{}:f()", "no module:function"),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules_that_cannot_be_used_are_told_apart(name: str, people: Path, module: Any) -> None:
    code, fn, words = MODULES[name]
    own = f"own_{list(MODULES).index(name)}"
    module(own, code)
    refused(words, lambda: ask(people, fn.format(own)))


def test_a_module_that_is_not_there_is_told(people: Path, module: Any) -> None:
    refused("no module absent_one.*holds absent_one.py", lambda: ask(people, "absent_one:f"))


# Public data


@real
def test_adult_means_and_shares() -> None:
    path = datasets.data_path("adult.csv.gz")
    frame = datasets.adult()
    question = ask(path, "mean", ["age", "hours_per_week"], strata=["sex", "income"])
    np.testing.assert_allclose(question.fn(question.data), frame[["age", "hours_per_week"]].mean())
    shares: Question = ask(path, "histogram", ["age", "education"], bins=["0:100:20"])
    assert shares.names is not None and len(shares.names) == 5 + 16
    np.testing.assert_allclose(
        shares.fn(shares.data)[5:], frame["education"].value_counts(normalize=True).sort_index(), rtol=1e-12
    )
    refused("--fn histogram", lambda: ask(path, "mean", ["age", "workclass"]))


@real
def test_diabetes_stays_belong_to_patients() -> None:
    path = datasets.data_path("diabetes130.parquet")
    question = ask(path, "mean", ["time_in_hospital"], unit="patient_nbr")
    assert question.unit is not None
    assert question.unit.dtype == np.int64
    assert len(np.unique(question.unit)) == 71_518
    refused(
        "'race' changes .* for 249 of them",
        lambda: ask(path, "mean", ["time_in_hospital"], unit="patient_nbr", strata=["race"]),
    )
    refused("'age' is text", lambda: ask(path, "mean", ["age"]))


@real
def test_heart_disease_has_six_gaps() -> None:
    path = datasets.data_path("heart_disease_cleveland.csv.gz")
    refused("6 of 303 rows have a missing value in ca, thal", lambda: ask(path, "mean", ["age", "ca", "thal"]))
    question = ask(path, "median", ["age", "ca", "thal"], missing="drop")
    assert question.notes == ("6 of 303 rows with missing values were left out",)
    np.testing.assert_allclose(
        question.fn(question.data), datasets.heart_disease().dropna()[["age", "ca", "thal"]].median()
    )
