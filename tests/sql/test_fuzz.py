"""Random questions: none breaks anything, and none that is answered tells of other people's rows."""

from __future__ import annotations

import importlib
import inspect
import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pytest

from leakcap.sql import expressions
from leakcap.sql.compile import compiled
from tests.sql.fuzz import ANSWERED, REFUSED, Fuzz
from tests.sql.hostile import REFUSED as REFUSED_KINDS
from tests.sql.neighbours import Pools

QUESTIONS, MANY, MOST = 60, 20_000, 150  # 100,000 are asked by `python -m benchmarks.sql_fuzz`
HANGS = 300  # seconds, for all of them together: they take some hundredths each


@pytest.fixture(scope="module")
def fuzz(tmp_path_factory: pytest.TempPathFactory) -> Fuzz:
    return Fuzz.built(tmp_path_factory.mktemp("pools"))


@pytest.fixture
def watched(request: pytest.FixtureRequest) -> Iterator[None]:
    def ring(*_: object) -> None:
        raise AssertionError("a question hangs")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(HANGS * (20 if "slow" in request.keywords else 1))
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("watched")
def test_no_question_breaks_anything_or_tells_of_others(fuzz: Fuzz) -> None:
    assert [(said, fuzz.posed(one)[0]) for one, said in fuzz.asked(range(QUESTIONS))] == []
    assert min(fuzz.seen[REFUSED], 4 * fuzz.seen[ANSWERED]) > QUESTIONS / 4


@pytest.mark.slow
@pytest.mark.usefixtures("watched")
def test_no_question_of_many_breaks_anything_or_tells_of_others(fuzz: Fuzz) -> None:
    assert [(said, fuzz.posed(one)[0]) for one, said in fuzz.asked(range(MANY))] == []


@dataclass(frozen=True)
class Fault:
    """Lines of the compiler that are exchanged, in which function or method, and what is seen of it."""

    module: str
    name: str
    changes: tuple[tuple[str, str], ...]
    about: str  # only questions with this in them are asked: others would cost more, and find it as well
    seen: str
    plans: bool = False
    plain: tuple[str, ...] = ()  # questions that are asked first


FAULTS = {
    "people meet other people": Fault(
        "joins", "_refuse_strangers", (("if len(people) < 2", "if len(people) < 9"),), r"join|, ", "something else"
    ),
    "queries inside are about anybody": Fault(
        "inner_queries",
        "InnerQueries._refuse_outsiders",
        (("if not made.private", "if True"),),
        r"exists \(select",
        "something else",
    ),
    "keys are among anybody's": Fault(
        "inner_queries",
        "InnerQueries._in_query",
        (("if made.private and (not", "if False and (not"),),
        r" in \(select",
        "something else",
    ),
    "a query about the row is about anybody": Fault(
        "inner_queries",
        "InnerQueries._correlated",
        (("if made.private and not any(", "if False and not any("),),
        r"[(> ]\(select (?!1 )",
        "something else",
    ),
    "some rows are picked": Fault(
        "select_list",
        "SelectList.ordered",
        (
            ("if made.private:", "if False:"),
            ("for one in made.columns)} FROM", "for one in made.columns)}{made.hidden} FROM"),
        ),
        r"limit",
        "something else",
    ),
    "rows are told apart from those of others": Fault(
        "select_list",
        "SelectList.distinct",
        (
            ("if made.private and not any(", "if False and not any("),
            ("{names}{made.hidden}", "{names}, min({made.unit}) AS {made.unit}"),
            ("FROM ({made.sql})", "FROM ({made.sql}) GROUP BY {names}"),
        ),
        r"select distinct",
        "something else",
    ),
    "windows look at everybody": Fault(
        "windows",
        "WindowFunctions.window",
        (("            _refuse_others(over, whole, node)", "            pass"),),
        r"over \(",
        "something else",
        plain=("select count(*) from (select sum(age) over (order by age) as s from people) q where s > 900",),
    ),
    "a division by 0 is an error": Fault(
        "expressions",
        "_divided",
        (("{below} <> 0 THEN {below} END", "{below} <> 0 THEN {below} ELSE error('0')::BIGINT END"),),
        r"\d // \(",
        "the engine fails",
        plain=("select count(*) from stays where 7 // (days - days) = 1",),
    ),
    "a cast is an error": Fault(
        "expressions",
        "_cast",
        (("TRY_CAST", "CAST"),),
        r"try_cast\(",
        "the engine fails",
        plain=("select count(*) from people where try_cast(town as bigint) > 0",),
    ),
    "what may overflow does": Fault(
        "expressions",
        "_with_room",
        (("TRY_CAST", "CAST"),),
        r"99999|1e300|- \(|pow",
        "the engine fails",
        plain=("select count(*) from people where age * 999999999999999999 > 5",),
    ),
    "something is tried": Fault(
        "expressions",
        "_abs",
        (
            ('return _with_room(f"abs({of.safe}', 'return _with_room(f"TRY(abs({of.safe}'),
            ('::HUGEINT)") if', '::HUGEINT))") if'),
        ),
        r"abs",
        "work is done again",
        plain=("select count(*) from stays where abs(ward) > 1",),
    ),
    "dates are moved too far": Fault(
        "kinds",
        "_moved",
        (("wild=found is None or max(map(abs, found)) > FURTHEST", "wild=False"),),
        r"since",
        "the engine fails",
        plain=("select count(*) from people where since + 30000000 + 30000000 + 30000000 + interval 1 day is null",),
    ),
    "days are too many": Fault(
        "expressions",
        "_near",
        (("BETWEEN -{FURTHEST} AND {FURTHEST} THEN", "IS NOT NULL THEN"),),
        r"since \+ cast",
        "the engine fails",
        plain=("select count(*) from people where year(since + age * 19500000) > 5",),
    ),
    "decimals have too few digits": Fault(
        "expressions",
        "_needs_a_look",
        (("> WIDEST", "> 10 * WIDEST"),),
        r"paid",
        "the engine fails",
        plain=("select count(*) from people where paid * paid * paid * 1.5 > 5",),
    ),
    "rows are not bounded": Fault(
        "joins",
        "_most_rows",
        (("most, unique = None, frozenset()", "unique = frozenset()"),),
        r"join|, ",
        "more than is declared",
        plain=("select count(*) from stays a, stays b where a.person = b.person",),
    ),
    "ranges are too narrow": Fault(
        "kinds",
        "combined",
        (("span((a + c, b + d))", "span((a, b))"),),
        r"\+ ",
        "more than is declared",
        plain=("select sum(age + 100) from people",),
    ),
    "gaps are looked up": Fault(
        "relations",
        "scan",
        (("(one.gaps or (hidden_pool and table.private))", "one.gaps"),),
        r"group by",
        "plan",
        plans=True,
        plain=("select sex, count(*) from people group by sex",),
    ),
    "values are looked up": Fault(
        "relations",
        "scan",
        (("None if hidden_pool and table.private and not one.declared else one.levels", "one.levels"),),
        r"group by",
        "the plan is another",
        plans=True,
        plain=("select town, count(*) from people group by town",),
    ),
    "keys are compared with numbers": Fault(
        "kinds",
        "made",
        (("if keys != {None} and args and", "if False and"),),
        r"\bid (%|<|\+) ",
        "renamed: somebody brings something else",
    ),
}


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch) -> Any:
    def planted(fault: Fault) -> None:
        module = importlib.import_module(f"leakcap.sql.{fault.module}")
        source = inspect.getsource(module)
        for old, new in fault.changes:
            assert old in source, old
            source = source.replace(old, new)
        changed = {**vars(module)}
        exec(compile(source, f"planted {fault.name}", "exec"), changed)
        owner, _, method = fault.name.rpartition(".")
        if owner:
            monkeypatch.setattr(getattr(module, owner), method, getattr(changed[owner], method))
            return
        old = getattr(module, fault.name)
        old_code = old.__code__
        old.__code__ = changed[fault.name].__code__
        monkeypatch.setattr(module, "_planted", old_code, raising=False)
        undo.append((old, old_code))

    undo: list[tuple[Any, Any]] = []
    yield planted
    for function, code in undo:
        function.__code__ = code


@pytest.mark.usefixtures("watched")
@pytest.mark.parametrize("kind", FAULTS)
def test_a_planted_fault_is_found(fuzz: Fuzz, kind: str, plant: Any) -> None:
    fault = FAULTS[kind]
    plant(fault)
    assert any(fault.seen in said for said in said_of(fuzz, fault))


def said_of(fuzz: Fuzz, fault: Fault) -> Iterator[str]:
    """Of hostile questions, which may be answered now, and then of random ones."""
    hostile = [one for kind in REFUSED_KINDS.values() for one in kind if len(one) < 300]
    for text in [*fault.plain, *hostile]:
        if text in fault.plain or re.search(fault.about, text):
            for other in fuzz.hospital.others:
                yield fuzz.hospital.outcome(text, other, plans=fault.plans)
    asked = (one for one in range(QUESTIONS, MANY) if re.search(fault.about, fuzz.posed(one)[0]))
    for one in islice(asked, MOST):
        yield fuzz.outcome(one, plans=fault.plans)


@pytest.fixture(scope="module")
def timed(tmp_path_factory: pytest.TempPathFactory) -> Pools:
    return Pools.built(tmp_path_factory.mktemp("timed"), times=True, ways=())


@pytest.mark.usefixtures("watched")
@pytest.mark.parametrize("planted", [False, True], ids=["honest", "planted"])
def test_work_that_is_done_again_for_somebody_more_is_seen_by_its_time(
    timed: Pools, monkeypatch: pytest.MonkeyPatch, planted: bool
) -> None:
    """The planted fault: what may fail is tried, and again at every level."""
    if planted:
        monkeypatch.setattr(expressions, "_with_room", lambda made: f"TRY(({made})::BIGINT)")
    deep = "(days * 999999999999999999)"
    for _ in range(12):
        deep = f"coalesce({deep} * 10, 999999999999999999)"
    asked = f"select count(*) from stays where days < 30 or {deep} > 5"
    assert bool(timed.longer(compiled(asked, timed.base.catalog))) == planted
