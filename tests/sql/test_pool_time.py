"""Under a pool cap: whether a question ever ends hangs on the question, and never on who is in the pool."""

from collections.abc import Callable
from typing import Any

import pytest

import leakcap as lc
from leakcap.sql import asking
from leakcap.sql.compile import _Compiler, compiled
from leakcap.sql.engine import EngineLimits, WorkerEngine
from leakcap.sql.refusals import NotAnswered
from tests.sql.harmless import HARMLESS
from tests.sql.hospital import registered
from tests.sql.neighbours import written

DECLARED = {"people.sex": ["f", "m"], "people.town": ["A", "B", "C", None]}
WARDS = ", ".join(f"wards w{at}" for at in range(19))
BEDS = " + ".join(f"w{at}.beds" for at in range(19))
SOMEBODY, NOBODY = "age > 20", "age > 200"
LOOSE = {
    "from": "select count(*) from people p, wards a, wards b where {c} and a.beds + b.beds = p.age",
    "on no key": "select count(*) from stays s join wards w on s.days = w.beds",
    "twice of one person": "select count(*) from stays s, stays t where s.person = t.person and s.days < t.days",
    "left join": "select count(*) from people p left join wards w on w.beds > p.age where {c}",
    "from, inside": "select count(*) from (select p.id from people p, wards a, wards b where {c}) q",
    "with": (
        "with q as (select a.beds from wards a, wards b) select count(*) from people where age in (select beds from q)"
    ),
    "exists": (
        "select count(*) from people p where {c} and exists (select 1 from wards a, wards b where a.beds = p.age)"
    ),
    "exists of nobody": "select count(*) from people p where {c} and exists (select 1 from wards a, wards b)",
    "not exists": (
        "select count(*) from people p where not exists (select 1 from wards a, wards b where a.beds = p.age)"
    ),
    "exists by comparison": (
        "select count(*) from people p where {c} and exists (select 1 from wards w where w.beds > p.age)"
    ),
    "semi join": "select count(*) from people p semi join wards w on w.beds > p.age where {c}",
    "right join": "select count(*) from wards w right join people p on w.beds > p.age where {c}",
    "exists in exists": (
        "select count(*) from stays s where exists (select 1 from stays t where t.person = s.person "
        "and t.days > s.days and exists (select 1 from stays u where u.person = s.person and u.days > s.days + t.days))"
    ),
    "in": f"select count(*) from people where {{c}} and age in (select {BEDS} from {WARDS})",
    "in, of people": (
        "select count(*) from people where id in (select s.person from stays s, stays t where s.person = t.person)"
    ),
    "a number": "select count(*) from people where {c} and age > (select count(*) from wards a, wards b)",
    "a number about the row": (
        "select count(*) from people p where {c} and age > (select count(*) from wards a, wards b where a.beds = p.age)"
    ),
    "in a union": (
        "select count(*) from (select id from people union all select p.id from people p, wards w where {c}) q"
    ),
    "in what is added up": "select sum(case when age in (select a.beds from wards a, wards b) then 1 end) from people",
    "in a filter": "select count(*) filter (age in (select a.beds from wards a, wards b)) from people",
    "in a key": "select sex, age > (select count(*) from wards a, wards b), count(*) from people group by 1, 2",
    "beside a release": "select count(*) from people having count(*) > (select count(*) from wards a, wards b)",
}
KEYED = [
    "select w.name, count(*) from stays s join wards w on w.ward = s.ward group by w.name",
    "select count(*) from stays s left join wards w on w.ward = s.ward and w.beds > s.days",
    "select count(*) from people p join stays s on s.person = p.id join wards w on w.ward = s.ward where beds > age",
    "select count(*) from people p where exists (select 1 from stays s where s.person = p.id)",
    "select count(*) from people p where exists (select 1 from stays s where s.person = p.id and s.days > p.age)",
    "select count(*) from stays s where exists (select 1 from wards w where w.ward = s.ward and w.beds > s.days)",
    "select count(*) from people p where not exists (select 1 from wards w where w.beds = p.age)",
    "select count(*) from people p semi join wards w on w.beds = p.age",
    "select count(*) from people where age in (select beds from wards)",
    "select count(*) from people where age > (select avg(age) from people)",
    "select count(*) from people p, (select avg(age) as a from people) q where p.age > q.a",
    "select count(*) from people p, (select max(beds) as m from wards) q where p.age > q.m",
    "select sum(q.n) from people p join (select person, count(*) as n from stays group by person) q on q.person = p.id",
    "select count(*) from wards a, wards b where a.beds > b.beds",  # of nobody: its time is anybody's to know
]


@pytest.fixture(scope="module")
def catalog() -> lc.sql.Catalog:
    return registered(keys=DECLARED)


def never(*_: Any, **__: Any) -> Any:
    raise AssertionError("the engine was started")


class Never:
    """No engine: what is refused has not run."""

    run = never

    def __init__(self, *_: Any) -> None:
        self.close: Callable[[], None] = lambda: None


@pytest.mark.parametrize("kind", LOOSE)
def test_what_is_not_matched_on_a_key_is_refused_before_anything_runs(
    catalog: lc.sql.Catalog, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "WorkerEngine", Never)
    session = lc.Session(catalog, cap=lc.pool_membership(0.55), seed=1)
    said = set()
    for condition in (SOMEBODY, NOBODY):
        with pytest.raises(NotAnswered, match="under a pool cap") as caught:
            session.sql(LOOSE[kind].format(c=condition), share=0.1)
        said.add(str(caught.value))
    assert len(said) == 1 and not session.history


@pytest.mark.parametrize("text", KEYED)
def test_what_is_matched_on_keys_is_answered(catalog: lc.sql.Catalog, text: str) -> None:
    program = compiled(text, catalog, hidden_pool=True)
    assert all(one.base.most is not None for one in program.releases)


@pytest.mark.parametrize("cap", [lc.membership(0.6), lc.pool_membership(0.55)], ids=["bits", "pool cap"])
def test_rows_without_a_bound_are_refused_before_anything_runs_or_is_charged(
    catalog: lc.sql.Catalog, cap: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "WorkerEngine", Never)
    session = lc.Session(catalog, cap=cap, seed=1, analyst="ann")
    second = (
        "select count(*) from stays s, stays t where s.person = t.person and s.days > (select avg(age) from people)"
    )
    with pytest.raises(NotAnswered, match="join"):
        session.sql(second, share=0.1)
    assert not session.history


class Warm(WorkerEngine):
    """Two seconds for the question alone: on a busy machine the process takes as long to start."""

    def __init__(self, path: Any) -> None:
        super().__init__(path, EngineLimits(60.0, "300MB", 1))
        self.run("SELECT 1", {})
        self.left = 2.0


@pytest.mark.parametrize("planted", [False, True], ids=["honest", "planted"])
def test_a_question_that_never_ends_for_somebody_alone_is_told_from_one_that_does(
    catalog: lc.sql.Catalog, monkeypatch: pytest.MonkeyPatch, planted: bool
) -> None:
    """The planted fault: what is not matched is not written down."""
    if planted:
        monkeypatch.setattr(_Compiler, "loose", property(lambda _: [], lambda *_: None), raising=False)
    monkeypatch.setattr(asking, "WorkerEngine", Warm)
    said = []
    for condition in (SOMEBODY, NOBODY):
        try:
            lc.Session(catalog, cap=lc.pool_membership(0.55), seed=1).sql(LOOSE["in"].format(c=condition), share=0.1)
            said.append("answered")
        except lc.errors.LeakcapError as error:
            said.append(str(error))
    assert (said[0] != said[1]) == planted


@pytest.mark.parametrize("kind", HARMLESS)
def test_nothing_is_tried_so_that_nobodys_row_is_done_again(catalog: lc.sql.Catalog, kind: str) -> None:
    """DuckDB tries all rows near one that fails again: 18 levels of it took 9 seconds for one person."""
    for text in HARMLESS[kind]:
        program = compiled(text, catalog)
        assert not any("TRY(" in sql for sql in (*written(program), program.last)), text
