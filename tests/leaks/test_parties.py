"""What a party shows, to others and on its own terminal, is the same whatever the rows, the opened sums held fixed."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import pickle
import sys
from contextlib import redirect_stderr, redirect_stdout
from functools import partial

import numpy as np
import pandas as pd
import pytest

from leakcap.cli import main, party
from leakcap.local import together
from leakcap.local.parties import entry, law, shares
from tests.parties import free_places, in_forks, small_question

OPENED = np.array([10**9, -(10**9), 4 * 10**10], dtype=object)
MARK = "0.777123"
FEW = [pd.DataFrame({"a": [0.5], "b": [5.0]})] * 3
MANY = [
    pd.DataFrame({"a": [float(MARK)] * rows, "b": np.linspace(-1e6, 1e6, rows), "name": [f"x{MARK}"] * rows})
    for rows in (7, 60, 300)
]


class Heard(logging.Handler):
    """Every record of every logger."""

    def __init__(self):
        super().__init__(0)
        self.records = []

    def emit(self, record):
        if record.name != "asyncio":  # which says what kind of loop it is
            self.records.append(record.getMessage())


def command(folder, number, join, options, planted=None):
    """One party's command: what is printed, logged and written, with the opened sums held fixed."""
    law._coins = lambda numbers: 64
    real = shares.Sharing.opened

    async def fixed(self, shared, what):
        await real(self, shared, what)
        return OPENED

    shares.Sharing.opened = fixed
    if planted is not None:
        planted()
    heard = Heard()
    logging.getLogger().addHandler(heard)
    logging.getLogger().setLevel(0)
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main(
                [
                    *("party", str(folder / f"rows{number}.csv"), "--question", str(folder / "q.json")),
                    *("--join", join, "--party", str(number + 1), "--out", str(folder / f"out{number}")),
                    *("--seconds", "20", *options),
                ]
            )
        except SystemExit as end:
            code = end.code or 0
    written = {path.name: path.read_bytes() for path in sorted((folder / f"out{number}").glob("*"))}
    places = out.getvalue().replace(str(folder), "FOLDER").replace("\n", "").replace(" ", "")
    return {"code": code, "out": places, "err": err.getvalue(), "log": heard.records, "files": written}


def shown(folder, tables, options=(), question=None, planted=None):
    folder.mkdir()
    (folder / "q.json").write_text((question or small_question()).to_json())
    for number, table in enumerate(tables):
        table.to_csv(folder / f"rows{number}.csv", index=False)
    join = ",".join(free_places(3))
    return in_forks([partial(command, folder, number, join, options, planted) for number in range(3)])


@pytest.mark.parametrize("options", [(), ("--json",)])
@pytest.mark.parametrize("question", [small_question(), small_question(design="bits", rows=400)], ids=["pool", "bits"])
def test_a_command_shows_the_same_whatever_the_rows(tmp_path, options, question):
    few, many = (shown(tmp_path / f"run{i}0", rows, options, question) for i, rows in enumerate((FEW, MANY)))
    for one, other in zip(few, many, strict=True):
        assert one["code"] == 0
        assert one["log"] == []
        assert set(one["files"]) == {"answer.json", "certificate.json", "certificate.txt", "transcript.json"}
        assert {**one, "out": one["out"].replace("run00", "run10")} == other
        assert MARK not in str(other)


def tells_rows():
    """A fault: the facts of an answer hold how many bytes the party's own sums took."""
    facts, whole = party._facts, party.together
    seen = []

    def planted(rows, *arguments, **more):
        seen.append(len(rows))
        return whole(rows, *arguments, **more)

    party.together = planted
    party._facts = lambda found, question: {**facts(found, question), "rows": seen[-1]}


def test_a_planted_number_of_rows_is_caught(tmp_path):
    few, many = (
        shown(tmp_path / f"run{i}0", rows, ("--json",), planted=tells_rows) for i, rows in enumerate((FEW, MANY))
    )
    assert few[2]["files"] != many[2]["files"]


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"a": [0.5, float(MARK)], "b": [1.0, None]}),
        pd.DataFrame({"a": ["0.5", f"x{MARK}"], "b": [1.0, 2.0]}),
        pd.DataFrame({"a": [float(MARK)]}),
    ],
)
def test_a_command_that_is_refused_quotes_nothing(tmp_path, table):
    (tmp_path / "q.json").write_text(small_question().to_json())
    table.to_csv(tmp_path / "rows0.csv", index=False)
    (found,) = in_forks([partial(command, tmp_path, 0, ",".join(free_places(3)), ())])
    assert found["code"] == 2
    assert "leakcap: " in found["err"]
    assert MARK not in str(found)
    assert found["files"] == {}


def answered(rows, join, number):
    law._coins = lambda numbers: 64
    found = together(rows, small_question(), join=join, party=number + 1, seconds=20)
    return pickle.dumps(found.certificate), pickle.dumps(found.transcript), len(pickle.dumps(found))


def test_an_answer_holds_nothing_but_itself():
    seen = []
    for tables in (FEW, MANY):
        join = free_places(3)
        rows = [table[["a", "b"]].to_numpy() for table in tables]
        seen.append(in_forks([partial(answered, own, join, number) for number, own in enumerate(rows)]))
    assert seen[0] == seen[1]


def test_importing_mpyc_changes_nothing_else():
    def imported():
        root = logging.getLogger()
        before = (list(sys.argv), dict(os.environ), list(root.handlers), root.level)
        out = io.StringIO()
        shares._mpyc.cache_clear()
        for name in [name for name in sys.modules if name.partition(".")[0] == "mpyc"]:
            del sys.modules[name]
        with redirect_stdout(out), redirect_stderr(out):
            sys.argv = ["leakcap", "party", "-M", "3", "--help", "-V"]
            shares._mpyc()
            told, sys.argv = sys.argv, before[0]
        after = (list(sys.argv), dict(os.environ), list(root.handlers), root.level)
        return before == after, told, out.getvalue()

    (found,) = in_forks([imported])
    assert found == (True, ["leakcap", "party", "-M", "3", "--help", "-V"], "")


def test_a_question_file_says_what_was_asked_and_no_more():
    assert set(json.loads(small_question().to_json())) == {
        *("alpha", "ask", "bounds", "cap", "columns", "design", "edges", "parties", "rows", "target", "threshold")
    }


def test_it_runs_where_a_loop_runs_already_and_only_once_at_a_time():
    """As in a notebook; and a process cannot be two parties."""

    async def inside(number, join):
        return answered(FEW[0][["a", "b"]].to_numpy(), join, number)

    def part(number, join):
        return asyncio.run(inside(number, join))

    join = free_places(3)
    assert all(isinstance(one, tuple) for one in in_forks([partial(part, number, join) for number in range(3)]))

    def twice():
        entry._one_at_a_time.acquire()
        return answered(FEW[0][["a", "b"]].to_numpy(), join, 0)

    assert "one party at a time" in str(in_forks([twice])[0])
