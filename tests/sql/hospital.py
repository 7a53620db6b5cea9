"""A small hospital: people, their stays and the tests of a stay; wards and drugs are public. Odd values included."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

import leakcap as lc

DATE = pd.ArrowDtype(pa.date32())
WARDS = ["north", "south", "o'east", "wëst"]
LINKS = {
    "stays.person": "people.id",
    "tests.stay": "stays.stay",
    "stays.ward": "wards.ward",
    "tests.drug": "drugs.drug",
}
BOUNDS = {
    "people.age": (0, 110),
    "people.income": (-1000.0, 9000.0),
    "stays.days": (0, 60),
    "stays.cost": (0.0, 5000.0),
    "stays.day": ("2020-01-01", "2022-12-31"),
    "tests.level": (-5.0, 5.0),
}
ROWS = {"people": 1, "stays": 6, "tests": 20}


def tables(seed: int = 0, people: int = 60) -> dict[str, pd.DataFrame]:
    """Rows of all tables. Some numbers are missing, 0, infinite or none; some people have no stays, some many."""
    rng = np.random.default_rng(seed)
    ids = rng.permutation(1000)[:people]
    income = rng.normal(2000, 1500, people)
    income[:3] = [np.nan, np.inf, 0.0]
    person = pd.DataFrame(
        {
            "id": ids,
            "sex": rng.choice(["f", "m"], people),
            "age": pd.array(rng.integers(0, 100, people), dtype="Int64"),
            "income": income,
            "town": rng.choice(["A", "B", "C", None], people),
        }
    )
    person.loc[5, "age"] = pd.NA
    # Without a declared range: whatever is made of these must not fail.
    person["since"] = pd.Series([-4000 * at if at % 9 == 2 else 10_000 + 13 * at for at in range(people)])
    person["since"] = as_dates(person["since"])
    person["paid"] = as_money([(-1) ** at * at * 12_345_678_901 for at in range(people)])
    count = rng.integers(0, 6, people)
    stays = int(count.sum())
    stay = pd.DataFrame(
        {
            "stay": rng.permutation(10_000)[:stays],
            "person": np.repeat(ids, count),
            "ward": rng.choice([0, 1, 2, 3], stays),
            "days": rng.integers(0, 30, stays),
            "cost": np.round(rng.gamma(2, 300, stays), 2),
            "day": pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 1000, stays), unit="D"),
            "urgent": rng.random(stays) < 0.4,
        }
    )
    stay["day"] = stay["day"].astype(DATE)
    stay.loc[0, "cost"] = np.nan
    tests = rng.integers(0, 4, stays)
    total = int(tests.sum())
    test = pd.DataFrame(
        {
            "stay": np.repeat(stay["stay"].to_numpy(), tests),
            "drug": rng.choice([10, 20, 30], total),
            "level": np.where(rng.random(total) < 0.1, np.nan, rng.normal(0, 2, total)),
        }
    )
    ward = pd.DataFrame({"ward": [0, 1, 2, 3], "name": WARDS, "beds": [10, 0, 25, 40]})
    drug = pd.DataFrame({"drug": [10, 20, 30], "label": ["x", "y", "z"], "price": [1.5, 0.0, 3.25]})
    return {"people": person, "stays": stay, "tests": test, "wards": ward, "drugs": drug}


def as_dates(days: pd.Series | np.ndarray) -> pd.Series:
    """Days since 1970 as dates; also such as other libraries have no room for."""
    return pd.Series(pd.arrays.ArrowExtensionArray(pa.array(np.asarray(days, dtype=np.int32)).cast(pa.date32())))


def as_money(cents: list[int]) -> pd.Series:
    made = pa.array([Decimal(one) / 100 for one in cents], pa.decimal128(18, 2))
    return pd.Series(pd.arrays.ArrowExtensionArray(made))


def registered(path: Path | None = None, given: dict[str, pd.DataFrame] | None = None, **more: Any) -> lc.sql.Catalog:
    settings: dict[str, Any] = {
        "unit": "people.id",
        "links": LINKS,
        "bounds": BOUNDS,
        "rows_per_unit": ROWS,
        "public": ["wards", "drugs"],
        "path": path,
    }
    return lc.sql.register(tables() if given is None else given, **{**settings, **more})
