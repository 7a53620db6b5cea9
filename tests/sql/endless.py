"""Questions that have no end, or would have none once written out; and those that ask for too many numbers."""

from __future__ import annotations


def nested(inner: str, before: str, after: str, times: int) -> str:
    return before * times + inner + after * times


def doubled(times: int) -> str:
    """Queries each of which uses the one before twice."""
    named = ["q0 as (select id from people)"]
    named += [f"q{at + 1} as (select a.id from q{at} a, q{at} b where a.id = b.id)" for at in range(times)]
    return f"with {', '.join(named)} select count(*) from q{times}"


def inside_out(times: int) -> str:
    """Queries about a number in FROM of queries about a number."""
    text = "select avg(beds) as b from wards"
    for _ in range(times):
        text = f"select avg(b) from ({text}) z where b > 0"
        text = f"select avg(b) as b from (select beds as b from wards where beds > ({text})) y"
    return text


def sums_of_sums(times: int) -> str:
    """Each column is the sum of two that are the one before."""
    text = "select age % 7 as x from people"
    for _ in range(times):
        text = f"select x + x as x from ({text}) q"
    return f"select x, count(*) from ({text}) q group by x"


ENDLESS: dict[str, list[str]] = {
    "work without end": [
        "select repeat('x', 1000000000) from wards",
        "select count(*) from people where length(repeat(town, 1000000000)) > 3",
        "select count(*) from people where lpad(town, 1000000000, 'x') = ''",
        "select count(*) from people where rpad(town, 1000000000, 'x') = ''",
        "select count(*) from people where length(bar(age, 0, 1, 1000000000)) > 3",
        "select count(*) from people where list_sum(range(1000000000000)) > age",
        "select count(*) from range(1000000000000)",
        "with recursive q as (select 1 as n union all select n + 1 from q) select count(*) from q",
        "with recursive q(n) as (select 1 union all select n from q) select max(n) from q, people",
        "with recursive q as (select id from people) select count(*) from q",
        "with q as (select * from q) select count(*) from q",
        "with a as (select * from b), b as (select * from a) select count(*) from a",
        "select count(*) from people where " + " or ".join(f"age = {at}" for at in range(3000)),
        "select count(*) from people where " + " and ".join(f"age <> {at}" for at in range(3000)),
        "select sum(" + " + ".join(["age"] * 3000) + ") from people",
        "select sum(" + " * ".join(["age"] * 3000) + ") from people",
        "select count(*) from people where town = " + " || ".join(["'a'"] * 3000),
        "select sum(coalesce(" + ", ".join(["age"] * 3000) + ")) from people",
        "select sum(greatest(" + ", ".join(["age"] * 3000) + ")) from people",
        "select sum(case " + " ".join(f"when age = {at} then {at}" for at in range(1500)) + " end) from people",
        "select " + ", ".join(f"sum(age + {at})" for at in range(3000)) + " from people",
        "select count(*) from people where age in (" + ", ".join(map(str, range(20_000))) + ")",
        "select count(*) from " + ", ".join(f"wards w{at}" for at in range(3000)) + ", people",
        " union all ".join(["select count(*) from people"] * 1500),
        "select count(*) from people where " + nested("age > 3", "(", ")", 500),
        "select count(*) from people where " + nested("age > 3", "(", ")", 20_000),
        "select count(*) from people where " + nested("age > 3", "not ", "", 3000),
        "select sum(" + nested("age", "- ", "", 3000) + ") from people",
        "select sum(" + nested("age", "abs(", ")", 400) + ") from people",
        "select sum(" + nested("age", "cast(", " as bigint)", 400) + ") from people",
        "select count(*) from people where " + nested("age", "sqrt(", ")", 40) + " > 1",
        "select count(*) from people where " + nested("age", "nullif(", ", 1)", 60) + " > 1",
        "select count(*) from people where " + nested("age", "(1 / ", ")", 30) + " > 1",
        "select count(*) from people where " + nested("age", "(", " between 0 and 1)", 60),
        "select count(*) from people where " + nested("age > 1", "case when ", " then true else false end", 300),
        "select count(*) from " + nested("people", "(select * from ", ") q", 200),
        "select count(*) from people where " + nested("age > 1", "age > (select count(*) from people where ", ")", 200),
        "select count(*) from people p where " + nested("true", "exists (select 1 from wards where ", ")", 200),
        doubled(30),
        inside_out(12),
        inside_out(60),
        sums_of_sums(25),
        "select count(*) from " + "(" * 3000 + "people" + ")" * 3000,
        "(" * 3000 + "select count(*) from people" + ")" * 3000,
        "select " + "[" * 2000 + "1" + "]" * 2000 + " from people",
        "select cast(age as " + "struct(a " * 300 + "int" + ")" * 300 + ") from people",
        "select count(*) from people where sex = '" + "x" * 60_000 + "'",
        "x" * 49_000,
        "'" * 49_001,
        "(" * 49_000,
        "select " * 6000,
        "-" * 30_000 + "\n",
        "select count(*) from people -- " + "x" * 60_000,
    ],
    "too many numbers": [
        "select days, day, count(*), sum(cost) from stays group by days, day",
        "select s.day, t.drug, p.age, count(*) from people p, stays s, tests t "
        "where p.id = s.person and s.stay = t.stay group by s.day, t.drug, p.age",
        "select a.age, b.age, c.age, count(*) from people a, people b, people c where a.id = b.id and b.id = c.id "
        "group by a.age, b.age, c.age",
        "select day, " + ", ".join(f"sum(days + {at})" for at in range(100)) + " from stays group by day",
        "select age, days, "
        + ", ".join(f"count(*) filter (where age > {at})" for at in range(50))
        + " from people, stays "
        "where id = person group by age, days",
    ],
}
