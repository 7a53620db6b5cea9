"""Groups, counts, bounds and pool caps on the command line: answers, names, and refusals that say what to do."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.unit.cli.running import leakcap

RNG = np.random.default_rng(5)
VISITS = pd.DataFrame(
    {
        "who": np.arange(600) // 3,
        "ward": np.resize(list("AAB"), 600),
        "floor": np.resize([1, 2], 600),
        "sick": np.resize([True, False, False], 600),
        "cost": RNG.uniform(0, 100, 600).round(1),
        "days": RNG.integers(0, 10, 600),
    }
)
POOL, COINS = ["--cap", "pool=0.9"], ["--cap", "membership=0.9", "--design", "bits"]
WIDE = ["--bounds", "0,100"]


@pytest.fixture(autouse=True)
def visits(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    VISITS.to_csv("visits.csv", index=False)


def released(*options: str) -> int:
    return leakcap("release", "visits.csv", *options, "--out", "out")


def answers() -> dict[str, tuple[float, float, float]]:
    rows = json.loads(Path("out/public/answer.json").read_text())["answer"]
    return {row["output"]: (row["low_95"], row["released"], row["high_95"]) for row in rows}


ASKED: dict[str, tuple[list[str], dict[str, float]]] = {
    "count": (["--fn", "count"], {"rows": 600}),
    "count by group": (
        ["--fn", "count", "--by", "ward=A,B,C", "--by", "floor=1"],
        {"ward = A, floor = 1": 200, "ward = B, floor = 1": 100, "ward = C, floor = 1": 0},
    ),
    "sum": (["--fn", "sum", "--columns", "days", "--bounds", "days=0,14"], {"days": VISITS.days.sum()}),
    "share": (["--fn", "share", "--columns", "sick"], {"sick": 1 / 3}),
    "share by group": (
        ["--fn", "share", "--columns", "sick", "--by", "ward=A,B"],
        {"sick, ward = A": 0.5, "sick, ward = B": 0.0},
    ),
    "mean by group": (
        ["--fn", "mean", "--columns", "cost,days", "--by", "ward=B", "--bounds", "0,100", "--bounds", "days=0,14"],
        {"cost, ward = B": VISITS.cost[VISITS.ward == "B"].mean(), "days, ward = B": VISITS.days[2::3].mean()},
    ),
    "people": (
        ["--fn", "count", "--unit", "who", "--rows-per-unit", "2", "--by", "ward=A,B"],
        {"ward = A": 400, "ward = B": 0},  # of each person's rows the first two
    ),
    "median": (
        ["--fn", "median", "--columns", "cost,days", "--grid", "0:100:1", "--grid", "days=0:10:5"],
        {"cost": VISITS.cost.median(), "days": 300 / (VISITS.days < 5).sum() * 5},
    ),
    "quantiles": (
        ["--fn", "quantile", "--columns", "cost", "--grid", "0:100:1", "--q", "0.25", "--q", "0.75"],
        {"cost, 25 %": VISITS.cost.quantile(0.25), "cost, 75 %": VISITS.cost.quantile(0.75)},
    ),
    "histogram": (
        ["--fn", "histogram", "--columns", "ward,days", "--levels", "ward=A,B", "--bins", "0,5,10,20"],
        {"ward = A": 2 / 3, "ward = B": 1 / 3, "days, 10 or more": 0.0},
    ),
}


@pytest.mark.parametrize("kind", ASKED)
def test_a_pool_cap_answers_about_everybody_with_error_bars(kind: str, capsys: Any) -> None:
    options, wanted = ASKED[kind]
    assert released(*options, *POOL) == 0, capsys.readouterr().err
    found = answers()
    assert set(wanted) <= set(found)
    for name, whole in wanted.items():
        low, value, high = found[name]
        # Noise is a fraction of a person at this cap: five times the distance of the 95 % ends is never reached.
        assert abs(value - whole) <= 2.5 * (high - low) + 0.01
    record = json.loads(Path("out/public/certificate.json").read_text())
    assert record["kind"] == record["mode"] == "pool"
    assert record["units"] == 0
    told = capsys.readouterr().out
    assert "guess whether a given person is in the data" in told
    assert "Cap kept" in told


@pytest.mark.parametrize("kind", ["count", "sum", "share by group"])
def test_without_a_pool_cap_they_are_released_on_the_scale_of_the_whole_pool(kind: str, capsys: Any) -> None:
    options, wanted = ASKED[kind]
    plain = [word for word in options if word not in ("--bounds", "days=0,14")]
    assert released(*plain, *COINS) == 0, capsys.readouterr().err
    for name, (low, value, high) in answers().items():
        assert abs(value - wanted[name]) <= 2.5 * (high - low)
    assert json.loads(Path("out/public/certificate.json").read_text())["units"] == 600


REFUSED: dict[str, tuple[list[str], str]] = {
    "no bounds": (["--fn", "mean", "--columns", "cost"], "--bounds 0,100 for all columns"),
    "no bounds of a group's sum": (["--fn", "sum", "--columns", "cost", "--by", "ward=A"], "--bounds 0,100"),
    "bounds of one column only": (
        ["--fn", "mean", "--columns", "cost,days", "--bounds", "cost=0,100"],
        "no bounds for column 'days'",
    ),
    "bounds of another column": (["--fn", "mean", "--columns", "cost", "--bounds", "price=0,1"], "'price'"),
    "bounds that are no numbers": (["--fn", "mean", "--columns", "cost", "--bounds", "0-9"], "must be two numbers"),
    "bounds the wrong way round": (["--fn", "mean", "--columns", "cost", "--bounds", "9,0"], "low below high"),
    "bounds of a count": (["--fn", "count", *WIDE], "leave them out"),
    "bounds of a share": (["--fn", "share", "--columns", "sick", *WIDE], "leave them out"),
    "a median": (["--fn", "median", "--columns", "cost"], "--grid 0:100:5 for all columns"),
    "a grid of another column": (["--fn", "median", "--columns", "cost", "--grid", "age=0:9:1"], "'age'"),
    "a grid of one column": (["--fn", "median", "--columns", "cost,days", "--grid", "cost=0:9:1"], "for column 'days'"),
    "a grid that falls": (["--fn", "quantile", "--columns", "cost", "--grid", "0,9,5"], "each above the one before"),
    "a grid for a mean": (["--fn", "mean", "--columns", "cost", "--grid", "0:9:1", *WIDE], "--grid is for"),
    "a median by group": (["--fn", "median", "--columns", "cost", "--by", "ward=A,B"], "--by is for mean, sum"),
    "a count of columns": (["--fn", "count", "--columns", "cost"], "leave out --columns"),
    "groups of the pool": (["--fn", "count", "--by", "ward"], "--by ward=this,that"),
    "groups of numbers": (["--fn", "count", "--by", "floor"], "--by floor=this,that"),
    "categories of the pool": (["--fn", "histogram", "--columns", "ward"], "--levels ward=this,that"),
    "people with any number of rows": (["--fn", "count", "--unit", "who"], "needs --rows-per-unit"),
    "no row of a person": (["--fn", "count", "--unit", "who", "--rows-per-unit", "0"], "at least 1"),
    "strata": (["--fn", "count", "--strata", "ward"], "leave out strata"),
    "worlds": (["--fn", "count", "--worlds", "64"], "leave out worlds"),
    "another cap": (["--fn", "count", "--cap", "membership=0.6"], "stands alone"),
    "a cap that says nothing": (["--fn", "count", "--cap", "pool=0.5"], "coin|0\\.5"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_pool_cap_cannot_do_is_refused_in_our_words_and_writes_nothing(name: str, capsys: Any) -> None:
    options, words = REFUSED[name]
    assert released(*options, *POOL) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert re.search(words, said), said
    assert "Traceback" not in said
    assert not Path("out/public").exists()


def test_bounds_are_for_a_pool_cap(capsys: Any) -> None:
    assert released("--fn", "mean", "--columns", "cost", *WIDE, *COINS) == 2
    assert "bounds are for a pool cap" in " ".join(capsys.readouterr().err.split())


def test_the_page_says_the_promise_first_and_names_the_data_set(capsys: Any) -> None:
    assert released("--fn", "count", *POOL, "--data-set", "Visits of 2025") == 0
    page = " ".join(Path("out/public/certificate.html").read_text().split())
    assert "Nobody can guess with more than 90.00 % success" in page
    assert "whether a given person is in this data set at all" in page
    assert "Visits of 2025" in page
    assert '"units"' not in capsys.readouterr().out


OWN = """
import functools, warnings
import leakcap as lc

def brings(rows):
    print("printed", rows.cost.iloc[0])
    warnings.warn("warned")
    return [float((rows.cost > 50).any()), float(rows.days.sum())]

def share(sums):
    print("finished")
    return {"dear": sums[0], "days": sums[1]}

asked = lc.additive(brings, share)
broken = lc.additive(lambda rows: int(f"of {rows.cost.iloc[0]}"))
days = functools.partial(lc.stats.quantile, q=[0.5], grid=range(11))
groups = lc.stats.group_by({"ward": ["A", "B"]}, "mean", of="cost")

median = lc.blocks(lambda rows: print("printed") or rows.cost.median(), blocks=5, bounds=(0, 100))
tiny = lc.blocks(lambda rows: rows.cost.median(), blocks=500, bounds=(0, 100))
misspelt = lc.blocks(lambda rows: int(f"of {rows.cost.iloc[0]}"), blocks=5, bounds=(0, 100))

def plain(rows):
    return rows.cost.mean()
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: Any) -> None:
    name = "own_additive"
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, name, raising=False)
    Path(f"{name}.py").write_text(OWN)


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize("promise", [POOL, COINS], ids=["pool", "bits"])
def test_an_additive_function_of_ones_own_is_a_sum_over_people(promise: list[str], capfd: Any) -> None:
    unit = ["--unit", "who", *(["--rows-per-unit", "3"] if promise is POOL else [])]
    bounds = ["--bounds", "0,1", "--bounds", "0,30"] if promise is POOL else []
    assert released("--fn", "own_additive:asked", *unit, *bounds, *promise) == 0
    said = capfd.readouterr()
    assert not re.search("printed|warned|finished", said.out + said.err)
    found = answers()
    dear = VISITS.cost.gt(50).groupby(VISITS.who).any().sum()
    for name, whole in (("dear", dear), ("days", VISITS.days.sum())):
        low, value, high = found[name]
        assert abs(value - whole) <= 2.5 * (high - low)
        assert value != whole


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize("promise", [POOL, COINS], ids=["pool", "bits"])
def test_blocks_of_ones_own_take_any_function(promise: list[str], capfd: Any) -> None:
    assert released("--fn", "own_additive:median", "--unit", "who", *promise) == 0
    said = capfd.readouterr()
    assert "printed" not in said.out + said.err
    (name,) = answers()
    low, value, high = answers()[name]
    assert abs(value - VISITS.cost.median()) <= 2.5 * (high - low)


@pytest.mark.usefixtures("own")
def test_warnings_of_ours_are_sentences(capfd: Any) -> None:
    assert released("--fn", "own_additive:tiny", *POOL, "-q") == 0
    said = capfd.readouterr().err
    assert "warning: the function has no usable answer" in " ".join(said.split())
    assert "Warning:" not in said
    assert ".py" not in said


@pytest.mark.usefixtures("own")
def test_statistics_of_ours_with_something_bound_to_them_are_sums_too() -> None:
    assert released("--fn", "own_additive:days", "--columns", "days", *POOL) == 0
    by_name = ["--fn", "own_additive:groups", *POOL, "--bounds", "cost=0,100", "--out", "by-name", "--alone"]
    assert leakcap("release", "visits.csv", *by_name) == 0


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--fn", "own_additive:asked"], "needs the bounds of what one person brings"),
        (["--fn", "own_additive:asked", "--bounds", "0,1", "--bounds", "a=0,1"], "all by name or all by their order"),
        (["--fn", "own_additive:plain", "--bounds", "0,1"], "add up what every person brings"),
        (["--fn", "own_additive:broken", "--bounds", "0,1"], "contributions of your function raised ValueError"),
        (["--fn", "own_additive:misspelt"], "fn of your function raised ValueError"),
    ],
)
def test_functions_of_ones_own_are_refused_in_our_words(options: list[str], words: str, capfd: Any) -> None:
    assert released(*options, *POOL) in (2, 3)
    said = " ".join(capfd.readouterr().err.split())
    assert re.search(words, said)
    assert "of " + str(VISITS.cost[0]) not in said
