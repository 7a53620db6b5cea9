"""No value leaves the range that the compiler knows of it, and none is missing where it says that none is.

Noise is made for what somebody may bring at most, and groups are listed from ranges: with a range that is too narrow
people would bring more than is declared, and rows would be in no group.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import leakcap as lc
from leakcap.sql import domains, kinds, moments, reading
from leakcap.sql.compile import compiled
from leakcap.sql.engine import EngineLimits, LocalEngine
from leakcap.sql.evaluate import cell_sums
from leakcap.sql.refusals import NotAnswered
from tests.sql.grammar import FORMS, HOSPITAL, Grammar, SourceTable, Vocabulary
from tests.sql.hospital import as_dates, registered

Asked: TypeAlias = tuple[lc.sql.Catalog, LocalEngine]
ROWS, EXPRESSIONS = 400, 400
REFUSED = "refused"
COLUMNS = {
    "who": "k data.who",
    "a": "n",
    "b": "n",
    "x": "n",
    "y": "n",
    "m": "n",
    "d": "d",
    "e": "d",
    "u": "d",
    "t": "t",
    "w": "b",
}
BOUNDS = {
    "a": (-7, 9),
    "b": (2, 60),
    "x": (-1.5, 2.25),
    "y": (0.5, 0.75),
    "m": (-2.5, 9.99),
    "d": ("2020-01-01", "2022-01-01"),
    "e": ("1887-11-12", "1887-11-22"),
    "u": ("2021-03-04 10:00:00", "2021-03-04 16:00:00"),
}


def measured() -> pd.DataFrame:
    """Values from end to end of narrow ranges, nothing missing."""
    rng = np.random.default_rng(0)

    def whole(low: int, high: int) -> np.ndarray:
        return rng.permutation([low, high, *rng.integers(low, high + 1, ROWS - 2)])

    def real(low: float, high: float) -> np.ndarray:
        return rng.permutation([low, high, *rng.uniform(low, high, ROWS - 2)])

    cents = pa.array([Decimal(int(one)) / 100 for one in whole(-250, 999)], pa.decimal128(18, 2))
    return pd.DataFrame(
        {
            "who": range(ROWS),
            "a": whole(-7, 9),
            "b": whole(2, 60),
            "x": real(-1.5, 2.25),
            "y": real(0.5, 0.75),
            "m": pd.Series(pd.arrays.ArrowExtensionArray(cents)),
            "d": as_dates(whole(18262, 18993)),
            "e": as_dates(whole(-30_000, -29_990)),
            "u": np.datetime64("2021-03-04T10:00:00", "s") + whole(0, 6 * 3600).astype("timedelta64[s]"),
            "t": rng.choice(["A", "f", "xx", ""], ROWS),
            "w": rng.integers(0, 2, ROWS).astype(bool),
        }
    )


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    place = tmp_path_factory.mktemp("measured") / "measured"
    catalog = lc.sql.register({"data": measured()}, unit="who", rows_per_unit=1, bounds=BOUNDS, path=place)
    return catalog, LocalEngine(catalog.path, EngineLimits(threads=1, memory="1GB"))


def beyond(asked: Asked, text: str) -> str:
    """What is wrong with what is known of the number that a question adds up; `REFUSED` where it does not."""
    catalog, engine = asked
    try:
        release = compiled(text, catalog).releases[0]
    except NotAnswered:
        return REFUSED
    (of,) = release.sums[0].of
    assert of.range is not None
    (low, high), value = of.range, of.safe
    seen = engine.run(
        f"SELECT min({value})::DOUBLE AS a, max({value})::DOUBLE AS b, count(*) - count({value}) AS gaps FROM "
        f"({release.base.sql})",
        {},
    ).to_pylist()[0]
    if seen["gaps"] and not of.null:
        return f"{seen['gaps']} are missing: {text}"
    room = 1e-12 * max(abs(low), abs(high), 1.0)
    inside = seen["a"] is None or low - room <= seen["a"] <= seen["b"] <= high + room
    return "" if inside else f"{seen['a']} to {seen['b']} are not in {low} to {high}: {text}"


def texts() -> Iterator[str]:
    scope, words = [SourceTable("data", COLUMNS, "data")], Vocabulary({"data": COLUMNS}, [])
    for seed in range(EXPRESSIONS):
        grammar = Grammar(np.random.default_rng([seed, 5]), words, 0.0)
        kind = "n" if seed % 5 else "d"
        made = grammar.filled(grammar.one(FORMS[kind]), scope, int(grammar.rng.integers(1, 4)))
        number = made if kind == "n" else f"cast({made} as date) - date '2021-01-01'"
        if "select" not in number:
            yield f"select sum({number}) from data"


def test_no_value_leaves_its_range(asked: Asked) -> None:
    said = [beyond(asked, text) for text in texts()]
    assert [one for one in said if one not in ("", REFUSED)] == []
    assert said.count("") > EXPRESSIONS / 3


ENDS = {  # with the fault that is planted
    "date_diff('month', e, u)": "periods",
    "date_diff('quarter', date '1600-01-01', d)": "periods",
    "cast(y as decimal(9, 0))": "decimals",
    "cast(m as decimal(6, 1))": "decimals",
    "cast(u as date) - date '2021-01-01'": "days",
    "cast(u + interval '7' hour as date) - e": "days",
    "cast(u + interval '1' hour + interval '7' hour as date) - date '2021-03-04'": "days",
    "999999999999999999 * b": "room",
    "least(greatest(999999999999999999 * b, a), 1999999999999999999)": "room",
}


@pytest.mark.parametrize("one", ENDS)
def test_a_range_without_room_for_its_values_is_seen(asked: Asked, one: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"select sum({one}) from data"
    assert beyond(asked, text) == ""
    if ENDS[one] == "periods":
        monkeypatch.setattr(moments, "PERIODS", {"month": 28.0, "quarter": 90.0})
    elif ENDS[one] == "decimals":
        monkeypatch.setattr(reading, "_on_grid", lambda given, _: given)
    elif ENDS[one] == "days":
        monkeypatch.setattr(reading, "_from_midnight", lambda given: given)
    else:
        monkeypatch.setattr(kinds, "may_lack_room", lambda _: False)
    assert beyond(asked, text) not in ("", REFUSED)


@pytest.mark.parametrize("unit", ["month", "quarter", "year"])
def test_no_two_dates_are_further_apart_in_periods_than_their_days_say(unit: str) -> None:
    """Of all days in 400 years: after these the calendar begins again."""
    days = np.arange("2000-01-01", "2400-01-02", dtype="datetime64[D]")
    started = days.astype("datetime64[M]").astype(int) // {"month": 1, "quarter": 3, "year": 12}[unit]
    ahead = started - np.arange(len(days)) / moments.PERIODS[unit]
    assert len(days) == 400 * moments.YEAR + 1
    assert ahead[-1] == pytest.approx(ahead[0], abs=1e-6)
    assert 1 < ahead.max() - ahead.min() < 2  # so that between two days there are at most so many more, or fewer


def test_a_date_beside_a_time_is_a_time(asked: Asked) -> None:
    """As a date it would fail in the engine."""
    for made in ("case when w then e else u end", "coalesce(e, u)"):
        with pytest.raises(NotAnswered, match="dates go with intervals, days or dates"):
            compiled(f"select sum({made} + 1 - date '2021-01-01') from data", asked[0])
        assert beyond(asked, f"select sum(cast({made} as date) - date '2021-01-01') from data") == ""


GROUPED = 100  # questions at random
JOINED = "people p left join (select person, {} f from stays) d on d.person = p.id"
UNMATCHED = [
    f"select d.f, count(*) from {JOINED.format(one)} group by 1"
    for one in ("floor(days / 10) * 10", "days > 5", "case when days > 5 then 'a' else 'b' end", "year(day)", "ward")
]


@pytest.fixture(scope="module")
def hospital(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    catalog = registered(tmp_path_factory.mktemp("hospital") / "hospital")
    return catalog, LocalEngine(catalog.path, EngineLimits(threads=1, memory="1GB"))


def in_no_group(hospital: Asked, text: str) -> int | None:
    """Rows of a question that no group of its list has; None where nothing is grouped."""
    catalog, engine = hospital
    try:
        release = compiled(text, catalog).releases[-1]
        keys = cell_sums(release, catalog, engine, {}).keys
    except (NotAnswered, IndexError):
        return None
    pairs = zip(release.keys, release.key_names, strict=True)
    match = " AND ".join(f"{one.safe} IS NOT DISTINCT FROM keys.{name}" for one, name in pairs) or "TRUE"
    text = f"SELECT count(*) AS n FROM ({release.base.sql}) WHERE NOT EXISTS (SELECT 1 FROM keys WHERE {match})"
    return int(engine.run(text, {"keys": keys}).to_pylist()[0]["n"])


def test_every_row_is_in_a_group_of_its_list(hospital: Asked) -> None:
    seeds = [np.random.default_rng([at, 9]) for at in range(GROUPED)]
    asked = [Grammar(one, HOSPITAL, 0.0, astray=0.0, deepest=2).whole() for one in seeds]
    asked = [one for one in asked if " group by" in one and "(select" not in one]
    found = {one: in_no_group(hospital, one) for one in [*UNMATCHED, *asked]}
    assert {one: rows for one, rows in found.items() if rows} == {}
    assert sum(rows == 0 for rows in found.values()) > GROUPED / 10


@pytest.mark.parametrize("text", UNMATCHED)
def test_rows_without_a_partner_would_be_missed(hospital: Asked, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: what a query inside LEFT JOIN makes is never missing."""
    monkeypatch.setattr(domains, "_or_missing", lambda _, made: made)
    assert in_no_group(hospital, text)


HUGE = ("1e300", "(1e300 * 1)", "(-1e300 * 1)", "(x * 1e299)", "(a * 1e300)", "9223372036854775807", "(x / 1e-300)")
OF_HUGE = (
    "pow({}, 2)",
    "pow({}, 3)",
    "pow({}, 0.5)",
    "cast({} as decimal(38, 30))",
    "cast({} as decimal(10, 2))",
    "cast({} as bigint)",
    "round({}, 2)",
    "floor({})",
    "exp({})",
    "{} * {}",
    "{} - {}",
    "{} / 1e-300",
    "{} % 7",
    "{} // 1",
    "abs({})",
    "sqrt({})",
    "cast({} as varchar)",
    "greatest({}, 1)",
    "width_bucket({}, 0, 1, 4)",
)


@pytest.mark.parametrize("form", OF_HUGE)
@pytest.mark.parametrize("number", HUGE)
def test_ranges_that_grow_beyond_all_numbers_are_refused_or_read(asked: Asked, form: str, number: str) -> None:
    """In words of ours: powers and roundings of what is too large are errors where products of it are not."""
    catalog, _ = asked
    expression = form.replace("{}", number)
    for text in (f"select sum({expression}) from data", f"select count(*) from data where {expression} > 0"):
        try:
            compiled(text, catalog)
        except NotAnswered:
            continue
