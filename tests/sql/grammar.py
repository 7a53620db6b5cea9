"""Questions at random, over any tables of people: most nearly right, some wild, some broken letter by letter."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tests.sql import words

HOLE = re.compile(r"(?<!\{)\{([a-z])\}(?!\})")
TOKEN = re.compile(r"'[^']*'|\"[^\"]*\"|\w+|\s+|[^\w\s]")
FORMS = {"n": words.NUMBERS, "b": words.TRUTHS, "t": words.TEXTS, "d": words.DATES}
DEEPEST = 3
MARKS = words.MARKS.split()
Columns = Mapping[str, str]  # kinds by name: n, b, t, d, or the key that it is, as "k people.id"


@dataclass(frozen=True)
class Vocabulary:
    """Tables with their columns, and which columns of two tables are equal in rows that belong together."""

    tables: Mapping[str, Columns]
    matches: Sequence[tuple[str, str]]  # "stays.ward", "wards.ward"

    def key_pairs(self, left: Columns, right: Columns) -> list[tuple[str, str]]:
        """Columns of two sources that are the same key of people."""
        return [(a, b) for a, x in left.items() for b, y in right.items() if x == y and x.startswith("k")]


@dataclass
class SourceTable:
    """What stands in FROM under a name."""

    alias: str
    columns: Columns
    table: str | None = None  # of which it is the whole


HOSPITAL = Vocabulary(
    {
        "people": {"id": "k people.id", "sex": "t", "age": "n", "income": "n", "town": "t", "since": "d", "paid": "n"},
        "stays": {
            "stay": "k stays.stay",
            "person": "k people.id",
            "ward": "n",
            "days": "n",
            "cost": "n",
            "day": "d",
            "urgent": "b",
        },
        "tests": {"stay": "k stays.stay", "drug": "n", "level": "n"},
        "wards": {"ward": "n", "name": "t", "beds": "n"},
        "drugs": {"drug": "n", "label": "t", "price": "n"},
    },
    [("stays.ward", "wards.ward"), ("tests.drug", "drugs.drug")],
)
TPCH = Vocabulary(
    {
        "customer": {
            "c_custkey": "k customer.c_custkey",
            "c_nationkey": "n",
            "c_acctbal": "n",
            "c_mktsegment": "t",
        },
        "orders": {
            "o_orderkey": "k orders.o_orderkey",
            "o_custkey": "k customer.c_custkey",
            "o_orderstatus": "t",
            "o_totalprice": "n",
            "o_orderdate": "d",
            "o_orderpriority": "t",
        },
        "lineitem": {
            "l_orderkey": "k orders.o_orderkey",
            "l_suppkey": "n",
            "l_quantity": "n",
            "l_extendedprice": "n",
            "l_discount": "n",
            "l_returnflag": "t",
            "l_shipdate": "d",
        },
        "supplier": {"s_suppkey": "n", "s_nationkey": "n", "s_acctbal": "n"},
        "nation": {"n_nationkey": "n", "n_name": "t"},
    },
    [
        ("lineitem.l_suppkey", "supplier.s_suppkey"),
        ("customer.c_nationkey", "nation.n_nationkey"),
        ("supplier.s_nationkey", "nation.n_nationkey"),
    ],
)


@dataclass
class Grammar:
    """One question at a time. `wild` is how often something stands where it should not, `astray` how often rows are
    put together, or picked, that do not belong together."""

    rng: np.random.Generator
    vocabulary: Vocabulary
    wild: float
    astray: float = 0.1
    deepest: int = DEEPEST
    named: dict[str, Columns] = field(default_factory=dict)  # by WITH
    made: int = 0

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def one(self, listed: Sequence[str]) -> str:
        return str(listed[int(self.rng.integers(len(listed)))])

    def fresh(self, letter: str) -> str:
        self.made += 1
        return f"{letter}{self.made}"

    # Expressions

    def expression(self, kind: str, scope: Sequence[SourceTable], depth: int) -> str:
        """Of a kind, in terms of columns that are in scope."""
        if self.chance(self.wild) and kind in words.WILD:
            return self.filled(self.one(words.WILD[kind]), scope, depth - 1)
        if kind == "k" or kind not in FORMS or depth <= 0 or self.chance(0.45):
            return self.leaf(kind, scope)
        return self.filled(self.one(FORMS[kind]), scope, depth - 1)

    def leaf(self, kind: str, scope: Sequence[SourceTable]) -> str:
        found = [f"{one.alias}.{name}" for one in scope for name, what in one.columns.items() if what[0] == kind]
        if kind == "b" and self.chance(0.8 if not found else 0.3):
            return f"{self.leaf('n', scope)} {self.one(['>', '<', '='])} {self.one(words.LITERALS['i'])}"
        if not found or (kind != "k" and self.chance(0.1)):
            return self.one(words.LITERALS.get(kind, words.LITERALS["i"]))
        return self.one(found)

    def filled(self, form: str, scope: Sequence[SourceTable], depth: int) -> str:
        return HOLE.sub(lambda found: self.hole(found[1], scope, depth), form).replace("{{", "{").replace("}}", "}")

    def hole(self, letter: str, scope: Sequence[SourceTable], depth: int) -> str:
        if letter == "i":
            return self.one(words.LITERALS["i"])
        if letter == "c":
            found = [f"{one.alias}.{name}" for one in scope for name in one.columns]
            return self.one(found) if found else "id"
        if letter == "s":
            return self.one([*self.vocabulary.tables, *self.named])
        if letter == "q":
            return f"({self.about_row(scope, depth)})"
        if letter == "r":
            return self.about_row(scope, depth, exists=True)
        if letter == "l":
            return self.listed(scope, depth)
        return self.expression(letter, scope, depth)

    def about_row(self, scope: Sequence[SourceTable], depth: int, *, exists: bool = False) -> str:
        """A query inside an expression, mostly about the same person."""
        inner = self.source(depth - 1)
        pairs = [(a, b) for one in scope for a, b in self._pairs(one, inner)]
        conditions = [f"{a} = {b}" for a, b in pairs[:1]] if pairs and not self.chance(self.astray + self.wild) else []
        if not conditions and self.chance(0.5):
            kind = self.one(["n", "k"])
            conditions = [f"{self.leaf(kind, [inner])} = {self.leaf(kind, scope)}"]
        if self.chance(0.5) or (not conditions and self.chance(0.5)):
            conditions.append(self.expression("b", [inner] if self.chance(0.8) else [inner, *scope], depth - 1))
        what = "1" if exists else self.filled(self.one(words.SUMS + words.OWN), [inner], depth - 1)
        return f"select {what} from {self._text(inner)}" + (f" where {' and '.join(conditions)}" if conditions else "")

    def listed(self, scope: Sequence[SourceTable], depth: int) -> str:
        """A query of keys."""
        inner = self.source(depth - 1)
        keys = [name for name, kind in inner.columns.items() if kind[0] == "k"] or list(inner.columns)
        where = f" where {self.expression('b', [inner], depth - 1)}" if self.chance(0.6) else ""
        return f"select {inner.alias}.{self.one(keys)} from {self._text(inner)}{where}"

    # FROM

    def source(self, depth: int) -> SourceTable:
        """A table, a query of WITH, or one in brackets."""
        alias = self.fresh("a")
        if self.named and self.chance(0.3):
            name = self.one(list(self.named))
            return SourceTable(alias, self.named[name], name)
        if depth > 1 and self.chance(0.2):
            text, columns = self.rows(depth - 1)
            return SourceTable(alias, columns, f"({text})")
        known = self.vocabulary.tables
        people = [name for name, columns in known.items() if any(kind[0] == "k" for kind in columns.values())]
        name = self.one(people if self.chance(0.6) else list(known))
        return SourceTable(alias, self.vocabulary.tables[name], name)

    def _text(self, one: SourceTable) -> str:
        return f"{one.table} as {one.alias}"

    def _pairs(self, left: SourceTable, right: SourceTable) -> list[tuple[str, str]]:
        """Columns that should be equal for rows to belong together."""
        found = self.vocabulary.key_pairs(left.columns, right.columns)
        for a, b in self.vocabulary.matches:
            for x, y in ((a, b), (b, a)):
                (here, first), (there, second) = x.split("."), y.split(".")
                if (left.table, right.table) == (here, there):
                    found.append((first, second))
        return [(f"{left.alias}.{a}", f"{right.alias}.{b}") for a, b in found]

    def from_tables(self, depth: int) -> tuple[str, list[SourceTable], list[str]]:
        """FROM, what is in it, and conditions that WHERE still has to hold."""
        scope, conditions = [self.source(depth)], []
        text = self._text(scope[0])
        while len(scope) < 4 and self.chance(0.45):
            new = self.source(depth)
            pairs = [pair for one in scope for pair in self._pairs(one, new)]
            if pairs and not self.chance(self.astray + self.wild):
                match = f"{pairs[0][0]} = {pairs[0][1]}"
            else:
                match = self.expression("b", [*scope, new] if self.chance(0.5) else [new], 1)
            if self.chance(self.wild):
                text += " " + self.filled(self.one(words.WILD["j"]), scope, 1)
            elif self.chance(0.4):
                text += f", {self._text(new)}"
                conditions += [match] if not self.chance(self.astray / 2 + self.wild) else []
            else:
                more = f" and {self.expression('b', [*scope, new], 1)}" if self.chance(0.2) else ""
                text += f" {self.one(['join', 'join', 'left join'])} {self._text(new)} on {match}{more}"
            scope.append(new)
        return text, scope, conditions

    def _where(self, scope: Sequence[SourceTable], conditions: list[str], depth: int) -> str:
        while len(conditions) < 4 and self.chance(0.5):
            conditions.append(self.expression("b", scope, depth))
        return f" where {' and '.join(conditions)}" if conditions else ""

    # Whole queries

    def rows(self, depth: int) -> tuple[str, Columns]:
        """A query that is made for another."""
        text, scope, conditions = self.from_tables(depth - 1)
        where = self._where(scope, conditions, depth - 1)
        columns: dict[str, str] = {}
        listed = []
        keys = [(f"{one.alias}.{name}", kind) for one in scope for name, kind in one.columns.items() if kind[0] == "k"]
        grouped = bool(keys) and self.chance(0.4)
        if keys and not self.chance(self.astray / 2):
            which, kind = keys[int(self.rng.integers(len(keys)))]
            name = self.fresh("v")
            listed.append(f"{which} as {name}")
            columns[name] = kind
        if grouped and not listed and self.chance(0.5):
            grouped = False
        by = [one.split(" as ")[0] for one in listed]
        for _ in range(int(self.rng.integers(1, 4))):
            name, kind = self.fresh("v"), self.one(["n", "n", "b", "t", "d"])
            if grouped and self.chance(0.8):
                columns[name] = "n"
                listed.append(f"{self.filled(self.one(words.SUMS + words.OWN), scope, depth - 1)} as {name}")
                continue
            value = self.expression(kind, scope, depth - 1)
            columns[name] = kind
            listed.append(f"{value} as {name}")
            by.append(value)
        tail = f" group by {', '.join(by)}" if grouped and by else ""
        if self.chance(self.astray / 3):
            tail += self.one([" limit 1", " order by 1 limit 3", " order by 1 desc limit 2"])
        tail += self.filled(self.one(words.WILD["z"]), scope, 1) if self.chance(self.wild) else ""
        start = "select distinct" if not grouped and self.chance(0.1) else "select"
        return f"{start} {', '.join(listed)} from {text}{where}{tail}", columns

    def whole(self) -> str:
        """A question."""
        before = ""
        if self.chance(0.3):
            parts = []
            for _ in range(int(self.rng.integers(1, 3))):
                name = self.fresh("q")
                text, columns = self.rows(self.deepest - 1)
                parts.append(f"{name} as ({text})")
                self.named[name] = columns
            before = f"with {', '.join(parts)} "
        text, scope, conditions = self.from_tables(self.deepest - 1)
        where = self._where(scope, conditions, self.deepest)
        keys = [self.expression(self.one(["b", "n", "t", "d"]), scope, 2) for _ in range(int(self.rng.integers(0, 3)))]
        values = [self.filled(self.one(words.SUMS), scope, 2) for _ in range(int(self.rng.integers(1, 3)))]
        if self.chance(self.wild):
            values.append(self.filled(self.one(words.WILD["a"]), scope, 2))
        tail = f" group by {', '.join(map(str, range(1, len(keys) + 1)))}" if keys else ""
        tail += f" having {values[0]} > {self.one(words.LITERALS['i'])}" if self.chance(0.1) else ""
        tail += self.filled(self.one(words.WILD["z"]), scope, 1) if self.chance(self.wild) else ""
        return f"{before}select {', '.join([*keys, *values])} from {text}{where}{tail}"


def question(seed: int, vocabulary: Vocabulary = HOSPITAL) -> str:
    """Of ten, two nearly right, four short with one thing or two astray, two wild, and two with words changed."""
    rng = np.random.default_rng([seed, 23])
    kind = seed % 10
    if 2 <= kind < 6:
        return Grammar(rng, vocabulary, 0.0, astray=0.4, deepest=2).whole()
    text = Grammar(rng, vocabulary, 0.02 if kind < 2 else 0.15 if kind < 8 else 0.01).whole()
    return text if kind < 8 else broken(text, rng)


def broken(text: str, rng: np.random.Generator) -> str:
    """Some words left out, doubled, put elsewhere, or exchanged for others."""
    tokens = TOKEN.findall(text)
    for _ in range(int(rng.integers(1, 4))):
        at, to = (int(rng.integers(len(tokens))) for _ in range(2))
        way = int(rng.integers(4))
        if way == 0 and len(tokens) > 5:
            del tokens[at]
        elif way == 1:
            tokens.insert(to, tokens[at])
        elif way == 2:
            tokens[at], tokens[to] = tokens[to], tokens[at]
        else:
            tokens[at] = f" {MARKS[int(rng.integers(len(MARKS)))]} "
    return "".join(tokens)
