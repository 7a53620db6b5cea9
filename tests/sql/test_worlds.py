"""SQL to a list of worlds: from one evaluation on the pool, in every world what plain DuckDB says of its people."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest

import leakcap as lc
from leakcap.custody.ledger.accounts import Secret
from leakcap.errors import InputError
from leakcap.sessions.cell_rows import CellRows
from leakcap.sessions.cohorts import Cohorts
from leakcap.sql import asking, holders, in_worlds
from leakcap.sql.compile import compiled
from leakcap.sql.engine import LocalEngine
from leakcap.sql.evaluate import CellSums, public_table
from leakcap.sql.in_worlds import InWorlds
from leakcap.sql.refusals import NotAnswered
from leakcap.worlds import Worlds, draw_worlds
from tests.sql import generated, values
from tests.sql.hospital import registered, tables
from tests.sql.kept_engine import kept_engine
from tests.sql.plain import Plain, rows_of, total
from tests.sql.test_right import KEYS
from tests.sql.tpch_queries import QUERIES

QUESTIONS, COHORTS, NEAR = 24, 12, 1e-12
LOOKED_AT = (0, 3, 5)  # worlds: of both halves of the list
ASKED = "select s.ward, count(*) as n, sum(s.cost) as cost, max(s.days) as longest, count(distinct s.day) as days "
ASKED += "from stays s group by s.ward"


class Listed:
    """A catalog with a list of worlds: our answers in them, and plain ones."""

    def __init__(
        self, catalog: lc.sql.Catalog, cohorts: int | None = None, looked_at: tuple[int, ...] = LOOKED_AT
    ) -> None:
        self.catalog, self.engine, self.looked_at = catalog, LocalEngine(catalog.path), looked_at
        names = catalog.session_data()[1]
        self.cohort_of = None if cohorts is None else Cohorts.of(names, Secret(bytes(32)), cohorts).of_unit
        self.worlds = draw_worlds(cohorts or catalog.people, 8, np.random.default_rng(1))
        masks = [self.worlds.mask(one) for one in looked_at]
        self.plain = [Plain(catalog, one if cohorts is None else one[self.cohort_of]) for one in masks]

    def answers(self, text: str) -> Iterator[tuple[Any, Plain]]:
        """The last table in each world that is looked at. Later releases follow from earlier ones."""
        program = compiled(text, self.catalog, worlds=True)
        first: InWorlds | None = None
        for at, plain in zip(self.looked_at, self.plain, strict=True):
            tables: dict[str, Any] = {}
            for release in program.releases:
                known = first
                if known is None or tables:
                    known = in_worlds.in_worlds(release, self.catalog, self.engine, tables, self.cohort_of)
                first = known if not tables else first
                tables[release.table] = public_table(known.made, known.table(self.worlds)[at])
            yield self.engine.run(program.last, tables).to_pandas(), plain

    def differences(self, text: str, keys: int, counted: bool = True) -> list[object]:
        """Rows that differ in some world. A group of nobody is 0 or the declared centre here, and no row there."""
        found: list[object] = []
        for frame, plain in self.answers(text):
            mine, other = rows_of(frame, keys), rows_of(plain.run(total(text)), keys)
            for key, row in other.items():
                ours = mine.get(key)
                if ours is None or any(_differ(a, b) for a, b in zip(ours, row, strict=True) if b is not None):
                    found.append((key, ours, row))
            found += [(key, row) for key, row in mine.items() if counted and key not in other and row[0]]
        return found


def _differ(ours: float | None, theirs: float) -> bool:
    return ours is None or abs(ours - theirs) > max(NEAR, NEAR * abs(theirs)) * 10


@pytest.fixture(scope="module")
def people() -> Listed:
    return Listed(registered())


@pytest.fixture(scope="module")
def cohorts() -> Listed:
    return Listed(registered(), COHORTS)


@pytest.fixture(scope="module")
def hospital() -> lc.sql.Catalog:
    """For sessions, each with a ledger of its own."""
    return registered()


@pytest.fixture
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process for each question takes half a second, and what is asked here is not how they are started."""
    monkeypatch.setattr(asking, "WorkerEngine", kept_engine)


def all_alike(listed: Listed, questions: Any) -> None:
    refused = 0
    for text, keys in questions:
        try:
            assert listed.differences(text, keys) == [], text
        except NotAnswered:
            refused += 1
    assert refused <= QUESTIONS // 8


def spreads(text: str) -> bool:
    """They lose digits, in worlds as in bits: tests/sql/test_right.py looks at them."""
    return any(word in text for word in ("var_", "stddev", "covar", "corr"))


@pytest.mark.parametrize("kind", ["values", "sums"])
def test_every_world_has_what_plain_duckdb_says_of_its_people(people: Listed, kind: str) -> None:
    made = map((values if kind == "values" else generated).question, range(QUESTIONS))
    all_alike(people, [one for one in made if not spreads(one[0])])


def test_worlds_of_cohorts_have_what_plain_duckdb_says_of_their_people(cohorts: Listed) -> None:
    all_alike(cohorts, map(values.question, range(QUESTIONS, QUESTIONS + 16)))
    assert len(np.unique(cohorts.cohort_of)) == COHORTS  # type: ignore[arg-type]


@pytest.mark.parametrize("fault", ["a mate elsewhere", "a neighbour's bit", "a value too many"])
def test_the_comparison_sees_another_number(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    listed = Listed(registered(), COHORTS if fault == "a mate elsewhere" else None)
    if fault == "a mate elsewhere":
        assert listed.cohort_of is not None
        listed.cohort_of = np.concatenate([[(listed.cohort_of[0] + 1) % COHORTS], listed.cohort_of[1:]])
    elif fault == "a neighbour's bit":
        honest = Worlds.columns
        monkeypatch.setattr(Worlds, "columns", lambda self, units, rows=None: honest(self, (units + 1) % self.n, rows))
    else:
        join = np.bitwise_or
        monkeypatch.setattr(
            holders.np, "bitwise_or", type("", (), {"reduceat": lambda *a, **k: ~join.reduceat(*a, **k)})
        )
    text = "select p.sex, count(*), sum(p.age), min(p.income), count(distinct p.town) from people p group by p.sex"
    assert listed.differences(text, 1)


def test_nobodys_extreme_is_the_middle_of_the_declared_range(people: Listed) -> None:
    text = "select max(s.days), min(s.cost), count(distinct s.day) from stays s where s.days > 100"
    for frame, _ in people.answers(text):
        assert frame.to_numpy().tolist() == [[30.0, 2500.0, 0.0]]


def test_numbers_that_are_the_same_in_all_worlds_do_not_differ_by_rounding() -> None:
    """A tenth for everybody, of whom every half has as many: its last digits would name the world."""
    listed = Listed(registered())
    release = compiled("select sum(p.age * 0 + 0.1), sum(p.age) from people p", listed.catalog).releases[0]
    known = in_worlds.in_worlds(release, listed.catalog, listed.engine, {})
    known.made.values[:, 0] = 0.1
    found = known.table(listed.worlds)[:, 0]
    assert np.ptp(found[:, 0]) == 0 < np.ptp(found[:, 1])
    assert np.ptp(in_worlds._of_entries(known.made, listed.worlds)[:, 0, 0]) > 0, "there was nothing to make equal"


@pytest.mark.parametrize("cohorts", [None, 1024])
def test_tpch_is_answered_as_in_the_world_itself(small_tpch: lc.sql.Catalog, cohorts: int | None) -> None:
    listed = Listed(small_tpch, cohorts, looked_at=(1, 6))
    for number in (1, 4, 7, 12, 13, 15, 22) if cohorts else (1, 5, 9, 12, 19, 21):
        assert listed.differences(QUERIES[number], KEYS.get(number, 0), counted=number != 15) == [], number
    text = (
        "select l_shipmode, max(l_extendedprice), min(l_quantity), count(distinct l_suppkey) from lineitem group by 1"
    )
    assert listed.differences(text.replace("select l_shipmode,", "select l_shipmode, count(*),"), 1) == []


@pytest.mark.usefixtures("_in_this_process")
@pytest.mark.parametrize("design", ["bits", "pool"])
def test_what_is_no_sum_is_refused_without_a_list_of_worlds(hospital: lc.sql.Catalog, design: str) -> None:
    cap = lc.pool_membership(0.6) if design == "pool" else 0.6
    session = lc.Session(hospital, cap=cap, seed=1)
    for asked in ("min(days)", "max(cost)", "count(distinct ward)"):
        with pytest.raises(InputError, match=r"design='worlds'"):
            session.sql(f"select {asked} from stays")
    assert session.history == ()


@pytest.fixture(scope="module")
def unbounded() -> lc.sql.Catalog:
    """With a column of no range."""
    given = tables()
    given["stays"]["free"] = 1.5
    return registered(given=given)


@pytest.mark.usefixtures("_in_this_process")
@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ("min(day)", "min is of numbers"),
        ("max(person)", "a key of people"),
        ("sum(distinct days)", "sum of DISTINCT values"),
        ("min(free)", "needs a range"),
    ],
)
def test_what_a_list_of_worlds_does_not_answer_is_refused_before_anything_is_drawn(
    unbounded: lc.sql.Catalog, asked: str, why: str
) -> None:
    session = lc.Session(unbounded, cap=0.6, design="worlds", worlds=16, seed=1)
    with pytest.raises(NotAnswered, match=why) as refused:
        session.sql(f"select {asked} from stays")
    assert "design='worlds'" not in str(refused.value) and session.history == ()


def test_a_session_answers_once_and_goes_on_elsewhere(tmp_path: Path, own_key: Path) -> None:
    catalog = registered(tmp_path / "tables")
    opened = {"cap": 0.6, "design": "worlds", "worlds": 64, "ledger": f"sqlite:///{tmp_path}/ledger.db", "name": "h"}
    session = lc.Session(catalog, **opened)
    seen = session.preview_sql(ASKED, share=0.1)
    answer = session.sql(ASKED, share=0.1)
    assert seen is not None and seen.fits and not answer.again and answer.whole and 0 < answer.share <= 0.1
    assert list(answer.frame.columns[:4]) == ["ward", "n", "n low", "n high"] and len(answer.frame) == 4
    assert (answer.frame["longest high"] <= 60).all() and (answer.frame["longest low"] >= 0).all()
    later = lc.Session(lc.sql.Catalog.load(catalog.path), **opened).sql(ASKED, share=0.1)
    assert later.again and later.share == 0 and later.frame.equals(answer.frame)
    assert len(session.history) == 1 and "sql" in session.history[0].question
    blanks = [f"select count(*) from people where town = 'A{' ' * more}B'" for more in (1, 2)]
    assert [session.sql(one, noise=20.0).again for one in blanks] == [False, False]  # blanks in a text are letters
    with pytest.raises(InputError, match="another secret"):
        lc.Session(catalog, **{**opened, "design": "bits", "worlds": None})


@pytest.mark.usefixtures("_in_this_process")
def test_noise_is_what_was_asked_for_and_sums_are_of_everybody(hospital: lc.sql.Catalog) -> None:
    frames = [
        lc.Session(hospital, cap=0.9, design="worlds", worlds=32, seed=seed).sql(
            "select count(*) as n, max(days) as longest from stays", noise=60.0
        )
        for seed in range(20)
    ]
    true = Plain(hospital, np.ones(hospital.people, dtype=bool)).run("select count(*) as n, max(days) as m from stays")
    found = np.array([one.frame["n"][0] for one in frames])
    error = found.std() / np.sqrt(len(found))
    assert abs(found.mean() - true["n"][0]) < 4 * error and found.mean() > 0.8 * true["n"][0]  # not of a half
    assert 40 < found.std() < 100


@pytest.mark.usefixtures("_in_this_process")
def test_a_condition_on_what_all_people_have_is_answered_first_and_charged(hospital: lc.sql.Catalog) -> None:
    session = lc.Session(hospital, cap=0.6, design="worlds", worlds=32, seed=1)
    found = session.sql("select count(*) from people where age > (select max(age) / 2 from people)", share=0.2)
    assert len(session.history) == 2 and found.share > 0


@pytest.mark.usefixtures("_in_this_process")
@pytest.mark.parametrize("asked", [{"noise": 1e12}, {"noise": 1e17}, {"noise": 1e300}, {"share": 1e-300}])
def test_endless_noise_does_not_hand_out_the_middle_of_the_pool(
    hospital: lc.sql.Catalog, asked: dict[str, Any]
) -> None:
    """Nothing would be drawn, and what is not drawn is exact: the mean of all worlds, for nothing."""
    session = lc.Session(hospital, cap=0.6, design="worlds", worlds=32, seed=1)
    for text in ("select count(*) as n from stays", "select ward, count(*) as n, sum(cost) from stays group by ward"):
        with pytest.raises(InputError, match=r"noise is too large|share is too small"):
            session.sql(text, **asked)
    assert session.history == ()
    true = Plain(hospital, np.ones(hospital.people, dtype=bool)).run("select count(*) as n from stays")["n"][0]
    assert abs(session.sql("select count(*) as n from stays", noise=1e8).frame["n"][0] - true) > 1e3


@pytest.mark.usefixtures("_in_this_process")
@pytest.mark.parametrize("design", ["bits", "worlds"])
@pytest.mark.parametrize("share", ["0.1", True, float("nan"), -1])
def test_a_share_is_a_number_above_0(hospital: lc.sql.Catalog, share: Any, design: str) -> None:
    session = lc.Session(hospital, cap=0.6, seed=1, design=design, **({"worlds": 16} if design == "worlds" else {}))
    with pytest.raises(InputError, match="share must be"):
        session.sql("select count(*) from stays", share=share)


@pytest.mark.usefixtures("_in_this_process")
def test_too_many_numbers_are_refused_with_what_would_work(hospital: lc.sql.Catalog) -> None:
    session = lc.Session(hospital, cap=0.6, design="worlds", worlds=16, seed=1)
    with pytest.raises(NotAnswered, match=r"at most 1,000 numbers.*design='bits'"):
        session.sql("select day, count(*) from stays group by day")
    assert session.history == ()


@pytest.mark.usefixtures("_in_this_process")
def test_analysts_ask_and_see_no_prices(hospital: lc.sql.Catalog) -> None:
    session = lc.Session(hospital, cap=0.6, design="worlds", worlds=16, seed=1, analyst="ann")
    assert session.sql("select count(*) from stays", share=0.2).share > 0
    with pytest.raises(InputError, match="Ask the custodian"):
        session.preview_sql("select count(*) from stays")


def test_many_groups_of_cohorts_have_the_same_sums(cohorts: Listed, monkeypatch: pytest.MonkeyPatch) -> None:
    release = compiled("select s.day, count(*), sum(s.cost) from stays s group by s.day", cohorts.catalog).releases[0]
    known = in_worlds.in_worlds(release, cohorts.catalog, cohorts.engine, {}, cohorts.cohort_of)
    dense = known.table(cohorts.worlds)
    monkeypatch.setattr(in_worlds, "LARGE", 1)
    few = in_worlds._of_few
    called: list[int] = []
    monkeypatch.setattr(in_worlds, "_of_few", lambda *given: called.append(1) or few(*given))
    np.testing.assert_allclose(known.table(cohorts.worlds), dense, rtol=1e-12)
    assert called and dense.any()


@pytest.mark.parametrize("entries", [2, 2**14, 2**14 + 1, 40_000])
def test_what_threads_share_is_what_everybody_brings(entries: int) -> None:
    """Each takes a part, whoever's rows it ends in; worlds without partners are added up one by one."""
    rng, people, groups = np.random.default_rng(entries), 4_000, 10
    units, cells = np.divmod(rng.permutation(people * groups)[:entries].astype(np.int32), groups)
    values = rng.integers(1, 100, (entries, 2)).astype(float)  # whole: sums are exact in any order
    rows = CellRows.of_entries(people, groups, units, cells, values)
    made = CellSums(release=None, domain=None, keys=pyarrow.table({"key": range(groups)}), rows=rows)  # type: ignore[arg-type]
    drawn = draw_worlds(people, 8, rng)
    for worlds in (drawn, replace(drawn, packed=drawn.packed[[0, 3, 5]], paired=False)):
        found = in_worlds._of_entries(made, worlds)
        for at in range(worlds.m):
            inside, plain = worlds.mask(at)[units], np.zeros((groups, 2))
            np.add.at(plain, cells[inside], values[inside])
            assert found[at].tolist() == plain.tolist()
