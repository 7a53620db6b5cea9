"""Questions about the least and the largest, and about how many different values there are, put together at random."""

from __future__ import annotations

import numpy as np

from tests.sql.generated import CONDITIONS, FROMS, KEYS, NUMBERS

TEXTS = {
    "p": ["p.sex", "p.town", "p.age // 10"],
    "s": ["s.ward", "s.day", "s.urgent", "year(s.day)", "s.days % 7"],
    "t": ["t.drug", "t.level > 0", "round(t.level, 1)"],
    "w": ["w.name", "w.beds"],
    "d": ["d.label"],
}
VALUES = [
    "min({})",
    "max({})",
    "count(distinct {})",
    "max({}) filter (where {c})",
    "count(distinct {}) filter (where {c})",
]
SUMS = ["count(*)", "sum({})", "avg({})"]


def question(seed: int) -> tuple[str, int]:
    """A question for a list of worlds, and how many of its columns are keys; count(*) is the first of the others."""
    rng = np.random.default_rng(seed)

    def one(listed: list[str]) -> str:
        return str(listed[rng.integers(len(listed))])

    source = one(list(FROMS))
    sure = [alias for alias in FROMS[source] if not alias.endswith("?")]
    base, _, condition = source.partition(" where ")
    conditions = [condition] if condition else []
    conditions += [one(CONDITIONS[one(sure)]) for _ in range(rng.integers(0, 2))]
    keys = [one(KEYS[alias]) for alias in sure if rng.random() < 0.5][:2]
    asked = ["count(*)"]
    for _ in range(rng.integers(1, 4)):
        form, alias = one(VALUES + SUMS), one(sure)
        some = TEXTS[alias] + NUMBERS[alias] if "distinct" in form else NUMBERS[alias]
        asked.append(form.format(one(some), c=one(CONDITIONS[alias][:3])))
    where = f" where {' and '.join(conditions)}" if conditions else ""
    by = f" group by {', '.join(keys)}" if keys else ""
    return f"select {', '.join([*keys, *asked])} from {base}{where}{by}", len(keys)
