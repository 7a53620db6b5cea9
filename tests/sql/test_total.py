"""Expressions are total: row by row they give what plain DuckDB gives, and NULL where it fails or gives no number.

Every wanted difference is in the list, and nothing else differs.
"""

from __future__ import annotations

import math
import shutil
from datetime import date

import duckdb
import numpy as np
import pandas as pd
import pytest

import leakcap as lc
from leakcap.sql.compile import compiled
from leakcap.sql.engine import LocalEngine
from tests.sql.plain import Plain

ROWS = pd.DataFrame(
    {
        "who": range(14),
        "a": pd.array(
            [0, 1, -1, 7, 63, 64, -64, 3_000_000_000, 9_200_000_000_000_000_000, 2020, 13, None, 2**63 - 1, 5_000_000],
            "Int64",
        ),
        "b": pd.array([0, 0, 0, 3, 2, -1, 5, 64, 63, 1, None, 7, 2, -1], "Int64"),
        "x": [0.0, -0.0, -1.5, 1e200, 4.0, 709.0, 710.0, 1e-320, -1e200, 2.5, 0.25, None, 3.0, -3.0],
        "t": [
            "12",
            "x",
            "",
            "nan",
            "inf",
            "1e400",
            "2020-02-30",
            "2020-02-29",
            "true",
            "-7",
            "1.5",
            None,
            "5000000-01-01",
            "-infinity",
        ],
        "d": [
            date(2020, 2, 29),
            date(1, 1, 1),
            date(9999, 12, 31),
            *[date(2021, 1, at) for at in range(1, 9)],
            None,
            date(2000, 2, 29),
            date(1999, 12, 31),
        ],
    }
)
FAILS, NO_NUMBER, INFINITE = "fails", "is no number", "is infinite"
# What plain DuckDB does somewhere in place of a value, where ours is NULL.
DIFFERENT: dict[str, set[str]] = {
    "a / b": {NO_NUMBER, INFINITE},
    "x / b": {NO_NUMBER, INFINITE},
    "x / x": {NO_NUMBER},
    "1 / x": {INFINITE},
    "a // b": {FAILS},
    "a % b": {FAILS},
    "a * a": {FAILS},
    "a + 9200000000000000000 - 1": {
        "1.84e+19 in place of what fails",
        "1.8423372036854776e+19 in place of what fails",
    },  # with more than 18 digits it is a float
    "a * 999999999999999999": {FAILS},
    "-a - 999999999999999999 * 9": {FAILS},
    "x * 1e110": {INFINITE},
    "x * x": {INFINITE},
    "x + x": set(),
    "abs(a) + a": {FAILS},
    "sqrt(x)": {NO_NUMBER},
    "ln(x)": {NO_NUMBER, INFINITE},
    "log10(x)": {NO_NUMBER, INFINITE},
    "log2(a)": {NO_NUMBER, INFINITE},
    "exp(x)": {INFINITE},
    "pow(x, 0.5)": {NO_NUMBER},
    "pow(x, b)": {INFINITE},
    "pow(0, a)": {INFINITE},
    "cbrt(x)": set(),
    "sin(x)": set(),
    "round(x, 2)": set(),
    "round(x, -2)": set(),
    "floor(x)": set(),
    "trunc(x)": set(),
    "sign(x)": set(),
    "a << b": {FAILS},
    "a >> b": set(),
    "a & b": set(),
    "a | b": set(),
    "cast(t as bigint)": {FAILS},
    "cast(t as double)": {FAILS, NO_NUMBER, INFINITE},
    "cast(x as bigint)": {FAILS},
    # Whole numbers have 64 bits here.
    "cast(a as int)": {
        "3000000000.0 in place of what fails",
        "9.2e+18 in place of what fails",
        "9.223372036854776e+18 in place of what fails",
    },
    "cast(a as decimal(3, 1))": {FAILS},
    "cast(x as decimal(38, 10))": {FAILS},
    "try_cast(t as bigint)": set(),
    "length(t)": set(),
    # 0 and -0 are equal, and either may stand for both in a group of them.
    "length(cast(x as varchar))": {"3.0 in place of 4.0"},
    "t like '_%_'": set(),
    "t like '%__%__'": set(),
    "t like '%0_-%'": set(),
    "t like '%2%-%29'": set(),
    "t like '2%_29%'": set(),
    "t like '%_%'": set(),
    "t like '_'": set(),
    "t ilike 'N_%'": set(),
    "t ilike '%I%F%'": set(),
    "t not ilike '_A%'": set(),
    "length(replace(t, '2', '22222'))": set(),
    "length(substring(t, -3, 2))": set(),
    "year(d)": set(),
    "date_part('week', d)": set(),
    "date_diff('day', d, date '2020-01-01')": set(),
    "date_diff('month', date '2020-01-01', d)": set(),
    "d - date '2020-01-01'": set(),
    "greatest(sqrt(x), ln(x))": {NO_NUMBER},
    # What is made of NULL is made of it here too.
    "coalesce(x / b, 1)": {"1.0 in place of what is infinite", "1.0 in place of what is no number"},
    "case when x / b > 1 then 1 else 0 end": {"0.0 in place of 1.0"},
    # Dates reach from the year -99,999 to 99,999 here, so that nothing that is made of them fails.
    "year(cast(t as date))": {FAILS, "None in place of 5000000.0"},
    "year(d + cast(a as int))": {FAILS},
    "year(d + interval '9000' year)": set(),
    "year(date_trunc('year', d))": set(),
    "year(last_day(d))": set(),
    "year(make_date(a, 1, 1))": {FAILS, "None in place of 5000000.0"},
    "month(make_date(2021, b, 31))": {FAILS},
    "day(make_date(a, 2, 29))": {FAILS, "None in place of 29.0"},
    "day(make_date(2020, 2, a))": {FAILS},
    # A date that has no place among times: who compares it with one would see the engine fail.
    "cast(cast(t as date) > timestamp '2020-01-01 00:00:00' as bigint)": {
        *(FAILS, "None in place of 0.0", "None in place of 1.0"),
    },
    "cast(d + cast(a as int) < timestamp '2020-01-01 00:00:00' as bigint)": {FAILS},
    "date_part('week', d - cast(a as int))": {FAILS},
    "year(d - cast(a as int))": {FAILS},
    "year(cast(t as timestamp) + interval '90000' year)": {FAILS},
    "year(date_trunc('week', cast(t as date)))": {FAILS},
    "year(d - interval '90000' year)": set(),
    "length(strftime(cast(t as date), '%Y'))": {
        FAILS,
        "None in place of 7.0",
        "None in place of 8.0",
        "None in place of 9.0",
    },
    "date_diff('hour', cast(t as date), d)": {FAILS, "None in place of -43811566944.0"},
    "month(last_day(cast(t as date)))": {FAILS, "None in place of 1.0"},
    # Whole numbers and decimals: the least and the largest of all.
    "-(0 - a - 1)": {FAILS},
    "abs(0 - a - 1)": {FAILS},
    "(0 - a - 1) // b": {FAILS},
    "(0 - a - 1) % b": {FAILS},
    "greatest(a, 0) << least(greatest(b, 0), 60)": {FAILS},
    "abs(b) << abs(b)": {FAILS},
    "a >> abs(b)": set(),
    "(a + 0.5) * (a + 0.5)": {FAILS},
    "-(a + 0.5)": set(),
    "abs(b - 0.25)": set(),
    "(a + 0.5) * (a + 0.5) * (a + 0.5)": {FAILS},
    "(a * 1000000000000000.5) + (a * 1000000000000000.5)": set(),
    "(a * 1.000000001) * (a * 1.000000001)": {FAILS},
}


@pytest.fixture(scope="module")
def odd() -> lc.sql.Catalog:
    return lc.sql.register({"odd": ROWS}, unit="odd.who", rows_per_unit=1)


@pytest.fixture(scope="module")
def plain(odd: lc.sql.Catalog) -> Plain:
    return Plain(
        lc.sql.Catalog.load(shutil.copy(odd.path, odd.path.with_name("plain.duckdb"))), np.ones(len(ROWS), dtype=bool)
    )


@pytest.fixture(scope="module")
def engine(odd: lc.sql.Catalog) -> LocalEngine:
    return LocalEngine(odd.path)


def plainly(plain: Plain, expression: str) -> list[float | str | None]:
    """Row by row, as plain DuckDB has it."""
    found: list[float | str | None] = []
    for who in range(len(ROWS)):
        try:
            value = plain.file.execute(f"select {expression} from odd where who = {who}").fetchall()[0][0]
        except duckdb.Error:
            value = FAILS
        if isinstance(value, float) and not math.isfinite(value):
            value = NO_NUMBER if math.isnan(value) else INFINITE
        found.append(value if value is None or isinstance(value, str) else float(value))
    return found


def ours(catalog: lc.sql.Catalog, engine: LocalEngine, expression: str) -> list[float | None]:
    """Row by row, as our SQL has it: each is somebody's only one."""
    release = compiled(f"select count(v) from (select {expression} as v from odd) q", catalog).releases[0]
    base, value = release.base, release.aggregates[0].args[0]
    rows = engine.run(f"SELECT {base.unit} AS who, {value.safe} AS v FROM ({base.sql})", {})
    found = dict(zip(rows.column("who").to_pylist(), rows.column("v").to_pylist(), strict=True))
    return [None if found[who] is None else float(found[who]) for who in range(len(ROWS))]


def differences(theirs: list[float | str | None], mine: list[float | None]) -> set[str]:
    found = set()
    for other, own in zip(theirs, mine, strict=True):
        if isinstance(other, str):
            found.add(other if own is None else f"{own} in place of what {other}")
        elif other is None or own is None:
            found |= set() if other is own else {f"{own} in place of {other}"}
        elif abs(own - other) > 1e-12 * max(1.0, abs(other)):
            found.add(f"{own} in place of {other}")
    return found


@pytest.mark.parametrize("expression", DIFFERENT)
def test_rows_have_what_plain_duckdb_gives_or_null(
    odd: lc.sql.Catalog, plain: Plain, engine: LocalEngine, expression: str
) -> None:
    assert differences(plainly(plain, expression), ours(odd, engine, expression)) == DIFFERENT[expression]


def test_a_difference_that_is_not_wanted_is_seen() -> None:
    assert differences([1.0, FAILS, None], [1.0 + 1e-9, 0.0, 0.0]) == {
        "1.000000001 in place of 1.0",
        "0.0 in place of what fails",
        "0.0 in place of None",
    }
