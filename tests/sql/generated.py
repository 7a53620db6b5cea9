"""Questions by the hundred: joins, conditions, queries inside, groups and aggregates, put together at random."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

# What there is: tables of people's rows with aliases, and what may be said about them.
FROMS = {
    "people p": ["p"],
    "stays s": ["s"],
    "tests t": ["t"],
    "people p, stays s where p.id = s.person": ["p", "s"],
    "people p join stays s on p.id = s.person": ["p", "s"],
    "people p left join stays s on p.id = s.person": ["p", "s?"],
    "stays s join wards w on s.ward = w.ward": ["s", "w"],
    "stays s left join wards w on s.ward = w.ward and w.beds > 5": ["s", "w?"],
    "people p, stays s, tests t where p.id = s.person and s.stay = t.stay": ["p", "s", "t"],
    "stays s join tests t on t.stay = s.stay join drugs d on d.drug = t.drug": ["s", "t", "d"],
    "people p, stays s, wards w where p.id = s.person and s.ward = w.ward": ["p", "s", "w"],
    "people p join stays s on p.id = s.person left join wards w on s.ward = w.ward and w.beds > 5": ["p", "s", "w?"],
    "people p, stays s left join wards w on s.ward = w.ward where p.id = s.person": ["p", "s", "w?"],
    "people p left join stays s on p.id = s.person left join tests t on t.stay = s.stay": ["p", "s?", "t?"],
    "people p right join stays s on p.id = s.person": ["p?", "s"],
    "wards w right join stays s on s.ward = w.ward and w.beds > 5": ["w?", "s"],
    "stays s join wards w using (ward)": ["s", "w"],
    "stays s join tests t using (stay) left join drugs d using (drug)": ["s", "t", "d?"],
    "people p semi join stays s on p.id = s.person and s.urgent": ["p"],
    "stays s anti join tests t on t.stay = s.stay and t.level > 0": ["s"],
    "people p, stays s semi join tests t on s.stay = t.stay where p.id = s.person": ["p", "s"],
}
NUMBERS = {
    "p": ["p.age", "p.income", "p.income / 2", "abs(p.income)", "p.age * p.age", "coalesce(p.age, 50)"],
    "s": [
        *("s.days", "s.cost", "s.cost * s.days", "s.days - 3", "case when s.urgent then s.cost else 0 end"),
        *("sign(s.days - 3)", "round(s.cost, -2)", "trunc(s.cost / 7)", "date_diff('week', date '2020-01-01', s.day)"),
    ],
    "t": ["t.level", "t.level * t.level", "-t.level"],
    "w": ["w.beds", "w.beds + 1"],
    "d": ["d.price", "d.price * 2"],
}
CONDITIONS = {
    "p": [
        "p.age > 40",
        "p.sex = 'f'",
        "p.town in ('A', 'B')",
        "p.town is not null",
        "p.income between 0 and 3000",
        "not (p.age < 20 or p.age > 90)",
        "p.id in (select person from stays where days > 10)",
        "exists (select 1 from stays x where x.person = p.id and x.urgent)",
        "not exists (select 1 from stays x where x.person = p.id)",
        "p.income > (select avg(beds) from wards)",
        "p.id = any(select person from stays where urgent)",
        "p.age is distinct from 40",
        "p.town is not distinct from 'A'",
        "starts_with(p.town, 'A') or contains(p.sex, 'm')",
        "p.age & 1 = 1 or p.age << 2 > 300",
        "p.income > 0 and log10(p.income) > 3",
        "p.id in (select person from stays group by person having count(*) > 2)",
        "(p.town || p.age) like 'B%'",
    ],
    "s": [
        "s.days >= 5",
        "s.urgent",
        "not s.urgent",
        "s.day < date '2021-06-01'",
        "year(s.day) = 2021",
        "s.cost / s.days > 40",
        "s.ward in (select ward from wards where beds > 0)",
        "s.person not in (select id from people where age < 30)",
        "s.day + interval '30' day > date '2021-01-01'",
        "s.cost > (select sum(t.level) from tests t where t.stay = s.stay)",
        "dayname(s.day) in ('Monday', 'Friday')",
        "strftime(s.day, '%m') < '07'",
        "last_day(s.day) = date '2021-02-28' or dayofyear(s.day) > 100",
        "date_diff('month', s.day, date '2022-01-01') > 12",
    ],
    "t": ["t.level > 0", "t.level is null", "t.drug <> 20", "floor(t.level) = 1", "sqrt(t.level) < 1.2"],
    "w": ["w.beds > 0", "w.name like '%st'", "100 / w.beds > 4", "w.name not like 'n%'"],
    "d": ["d.price > 1", "d.label <> 'z'"],
}
KEYS = {
    "p": [
        "p.sex",
        "p.town",
        "p.age // 20",
        "p.age > 50",
        "floor(p.income / 1000)",
        "floor(p.age / 10) * 10",
        "case when p.income > 2000 then 'rich' when p.income > 0 then 'poor' end",
    ],
    "s": [
        "s.urgent",
        "year(s.day)",
        "s.ward",
        "s.days % 3",
        "extract(month from s.day)",
        "date_trunc('quarter', s.day)",
        "dayname(s.day)",
        "strftime(s.day, '%Y-%m')",
        "isodow(s.day)",
        "date_part('quarter', s.day)",
        "ceil(s.cost / 500)",
        "round(s.cost, -3)",
        "s.days",
    ],
    "t": ["t.drug", "t.level > 0"],
    "w": ["w.name", "w.beds", "w.beds > 20", "upper(w.name)"],
    "d": ["d.label", "d.price"],
}
AGGREGATES = [
    "sum({})",
    "avg({})",
    "count({})",
    "var_pop({})",
    "stddev_samp({})",
    "sum({}) filter (where {c})",
    "var_samp({})",
    "mean({})",
    "count_if({c})",
    "avg({}) filter (where {c})",
]
# Columns beside each stay, of the stays of its person.
WINDOWS = [
    "rank() over (partition by s.person order by s.ward)",
    "dense_rank() over (partition by s.person order by s.day desc)",
    "lag(s.days) over (partition by s.person order by s.day, s.stay)",
    "lead(s.days, 2, 0) over (partition by s.person order by s.cost, s.stay)",
    "sum(s.days) over (partition by s.person)",
    "sum(s.cost) over (partition by s.person order by s.day)",
    "avg(s.cost) over (partition by s.person order by s.day, s.stay rows between 2 preceding and current row)",
    "max(s.days) over (partition by s.person order by s.stay rows between 1 preceding and 1 following)",
    "count(*) over (partition by s.person, s.ward)",
    "first_value(s.ward) over (partition by s.person order by s.day, s.stay)",
    "ntile(2) over (partition by s.person order by s.stay)",
    "s.days - min(s.days) over (partition by s.person)",
]
NUMBERED = "row_number() over (partition by s.person order by s.day, s.stay)"
SET_WORDS = ["union all", "union", "intersect", "except"]
PAIRS = ["covar_pop({}, {})", "corr({}, {})", "covar_samp({}, {})"]
IDENTITIES = {"p": "p.id", "s": "s.stay", "t": "t.stay"}


def question(seed: int) -> tuple[str, int]:
    """A question that can be answered, and how many of its columns are keys; count(*) is the first of the others."""
    rng = np.random.default_rng(seed)

    def one(listed: list[str]) -> str:
        return str(listed[rng.integers(len(listed))])

    if rng.random() < 0.15:
        return _of_one_person(one, rng)
    source = one(list(FROMS))
    aliases = FROMS[source]
    sure = [alias.rstrip("?") for alias in aliases]
    base, _, condition = source.partition(" where ")
    conditions = [condition] if condition else []
    for _ in range(rng.integers(0, 3)):
        alias = one(sure)
        conditions.append(one(CONDITIONS[alias]))
    # One key of a table at a time: two of a person's own might need a list for each pair that is very long.
    keys = [one(KEYS[alias]) for alias in sure if rng.random() < 0.5][:2]
    values = ["count(*)"]
    for _ in range(rng.integers(1, 4)):
        if rng.random() < 0.15:
            values.append(one(PAIRS).format(one(NUMBERS[one(sure)]), one(NUMBERS[one(sure)])))
            continue
        alias = one(sure)
        values.append(one(AGGREGATES).format(one(NUMBERS[alias]), c=one(CONDITIONS[alias][:3])))
    owned = [alias for alias in sure if alias in IDENTITIES]
    if rng.random() < 0.3 and owned:
        values.append(f"count(distinct {IDENTITIES[one(owned)]})")
    where = f" where {' and '.join(conditions)}" if conditions else ""
    inner = rng.random()
    if inner < 0.25 and keys:  # the same by way of a query in FROM
        names = [f"k{at}" for at in range(len(keys))]
        listed = ", ".join([*(f"{key} as {name}" for key, name in zip(keys, names, strict=True)), "1 as one"])
        text = f"select {', '.join(names)}, count(*), sum(one) from (select {listed} from {base}{where}) as q"
        return f"{text} group by {', '.join(names)}", len(keys)
    if inner < 0.4 and owned:  # what each person or stay has, then counted
        alias = next((each for each in aliases if each in IDENTITIES), owned[0])
        number = one(NUMBERS[alias][:2])
        key = IDENTITIES[alias]
        listed = f"{key} as who, count(*) as n, max({number}) as most"
        text = f"with q as (select {listed} from {base}{where} group by {key})"
        return f"{text} select n, count(*), sum(most), avg(most) from q group by n", 1
    by = f" group by {', '.join(keys)}" if keys else ""
    return f"select {', '.join([*keys, *values])} from {base}{where}{by}", len(keys)


def _of_one_person(one: Callable[[list[str]], str], rng: np.random.Generator) -> tuple[str, int]:
    """Windows over somebody's stays, the first few of them, and sets of people."""
    where = f" where {one(CONDITIONS['s'])}" if rng.random() < 0.5 else ""
    kind = rng.integers(3)
    if kind == 0:
        listed = f"{NUMBERED} as k, {one(WINDOWS)} as v, {one(KEYS['s'][:4])} as g from stays s{where}"
        name = "k" if rng.random() < 0.5 else "g"
        return f"select {name}, count(*), sum(v) from (select {listed}) q where k <= 3 group by {name}", 1
    if kind == 1:
        inner = f"select * from stays s{where} qualify {NUMBERED} = 1"
        return f"select s.ward, count(*), sum(s.days), mean(s.cost) from ({inner}) s group by s.ward", 1
    first = f"select p.id from people p where {one(CONDITIONS['p'])}"
    return f"select count(*) from ({first} {one(SET_WORDS)} select s.person from stays s{where}) q", 0
