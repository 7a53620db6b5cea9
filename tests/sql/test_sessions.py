"""Questions in SQL in a session: what is charged, what is answered, and to whom."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import leakcap as lc
from leakcap.errors import BudgetError, InputError
from leakcap.sessions.brought_cells import BroughtByCell
from leakcap.sessions.cell_rows import CellRows
from leakcap.sql import asking
from leakcap.sql.compile import compiled
from leakcap.sql.engine import WorkerEngine
from leakcap.sql.evaluate import cell_sums
from tests.sql.hospital import registered
from tests.sql.kept_engine import kept_engine
from tests.sql.plain import Plain

QUESTION = "select s.urgent, count(*) as n, sum(s.days) as days from stays s where s.days > 2 group by s.urgent"
DECLARED = {"people.sex": ["f", "m"], "people.town": ["A", "B", "C", None]}


@pytest.fixture(scope="module")
def catalog():
    return registered(keys=DECLARED)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        (QUESTION, 1),
        ("select w.name, count(*), sum(s.cost) from stays s, wards w where w.ward = s.ward group by w.name", 1),
        ("select count(distinct s.stay), sum(t.level) from stays s join tests t on t.stay = s.stay", 0),
    ],
)
def test_charges_are_those_of_everybodys_own_rows(catalog, text, columns):
    """Brute force: the analyst's text on one person's rows at a time."""
    release = compiled(text, catalog).releases[0]
    made = cell_sums(release, catalog, kept_engine(catalog.path), {})
    deviations = np.tile([3.0, 50.0], made.groups)
    sums = BroughtByCell(rows=made.rows, within=None, finish=np.ravel, public=False)
    some = np.arange(0, catalog.people, 3)  # of all people; each takes a plain database
    expected = np.zeros(catalog.people)
    for who in some:
        plain = Plain(catalog, np.arange(catalog.people) == who)
        found = plain.run(text).iloc[:, columns:].astype(float).fillna(0).to_numpy()
        plain.close()
        expected[who] = ((found / [3.0, 50.0]) ** 2).sum()
    np.testing.assert_allclose(sums.squares(deviations)[some], expected[some], rtol=1e-12, atol=1e-15)
    assert np.count_nonzero(expected) > len(some) // 2
    # The comparison sees a person who pays for one group alone.
    first = np.unique(made.units, return_index=True)[1]
    rows = CellRows.of_entries(
        catalog.people, made.groups, made.units[first], made.cells[first], made.values[first] * 0.999
    )
    one = replace(sums, rows=rows)
    assert not np.allclose(one.squares(deviations)[some], expected[some], rtol=1e-6)


def test_sums_are_exact_whoever_takes_part(catalog):
    release = compiled(QUESTION, catalog).releases[0]
    made = cell_sums(release, catalog, kept_engine(catalog.path), {})
    sums = BroughtByCell(rows=made.rows, within=None, finish=np.ravel, public=False)
    coins = np.random.default_rng(1).random(catalog.people) < 0.5
    total, grains, _ = sums.totals(np.ones(made.groups * 2), coins | True, coins, everybody=False)
    assert np.allclose(total * 2.0**-32, 2 * made.totals(coins).ravel(), atol=1e-6)
    assert grains == 2**28


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch):
    """A process for each question takes a second, and what is asked here is not how they are started."""
    monkeypatch.setattr(asking, "WorkerEngine", kept_engine)


def test_answers_lie_within_their_intervals(catalog):
    truth = Plain(catalog, np.ones(catalog.people, dtype=bool)).run(QUESTION).set_index("urgent").sort_index()
    inside = []
    for seed in range(24):
        found = lc.Session(catalog, cap=0.6, seed=seed).sql(QUESTION, share=0.9).frame.set_index("urgent").sort_index()
        for name in ("n", "days"):
            inside.append(((found[f"{name} low"] <= truth[name]) & (truth[name] <= found[f"{name} high"])).to_numpy())
    assert np.mean(inside) > 0.9  # 96 intervals of 95 %, of which some are wider than they need be


def test_the_same_question_again_costs_nothing_and_says_the_same(catalog, tmp_path):
    session = lc.Session(catalog, cap=0.6, ledger=f"sqlite:///{tmp_path}/ledger.db", name="hospital")
    first, again = (session.sql(QUESTION, share=0.1) for _ in range(2))
    assert again.again and again.share == 0 and not first.again and first.share == pytest.approx(0.1, rel=1e-6)
    pd.testing.assert_frame_equal(first.frame, again.frame)
    later = lc.Session(
        lc.sql.Catalog.load(catalog.path), cap=0.6, ledger=f"sqlite:///{tmp_path}/ledger.db", name="hospital"
    )
    pd.testing.assert_frame_equal(first.frame, later.sql(QUESTION, share=0.1).frame)
    assert len(later.history) == 1


def test_clocks_run_out(catalog):
    session = lc.Session(catalog, cap=0.6, seed=1)
    with pytest.raises(BudgetError, match="more than the whole clock"):
        session.sql(QUESTION, share=1.5)
    session.sql(QUESTION, share=0.9)
    assert session.spent.share > 0.1


def test_a_public_question_costs_nothing(catalog, monkeypatch):
    monkeypatch.setattr(asking, "WorkerEngine", WorkerEngine)  # as it is
    session = lc.Session(catalog, cap=0.6, seed=1)
    found = session.sql("select name, beds from wards where beds > 5 order by beds desc limit 2")
    assert list(found.frame["beds"]) == [40, 25] and found.share == 0 and session.spent.share == 0
    assert session.preview_sql("select count(*) from wards") is None


def test_a_condition_on_what_all_people_have_is_answered_first_and_charged(catalog):
    session = lc.Session(catalog, cap=0.6, seed=1)
    text = "select count(*) from people where age > (select avg(age) from people)"
    assert session.sql(text, share=0.2).share == pytest.approx(0.2, rel=1e-6)
    assert [round(one.share, 9) for one in session.history] == [0.1, 0.1]
    with pytest.raises(InputError, match="several steps"):
        session.sql(text, noise=3.0)


def test_noise_can_be_given(catalog):
    session = lc.Session(catalog, cap=0.6, seed=1)
    assert session.preview_sql("select count(*) from people", noise=20.0).noise == pytest.approx([20.0])
    assert session.sql("select count(*) from people", noise=20.0).share > 0


def test_means_of_too_few_are_not_shown(catalog):
    found = lc.Session(catalog, cap=0.6, seed=1).sql(
        "select avg(age) as age from people where income > 8999", share=0.01
    )
    assert found.frame["age"].isna().all() and found.frame["age low"].isna().all()


def test_under_a_pool_cap_groups_are_declared_and_nobodys_gaps_show(catalog):
    session = lc.Session(catalog, cap=lc.pool_membership(0.55), seed=1)
    found = session.sql("select town, count(*) from people group by town", share=0.5).frame
    assert len(found) == 4 and found["town"].isna().sum() == 1
    found = session.sql(
        "select sex, year(s.day), count(*) from people p, stays s where p.id = s.person group by 1, 2", share=0.1
    )
    assert len(found.frame) == 2 * (3 + 1)  # also of stays without a day, whether there are any or not
    undeclared = lc.Session(registered(), cap=lc.pool_membership(0.55), seed=1)
    with pytest.raises(InputError, match="can declare keys="):
        undeclared.sql("select town, count(*) from people group by town")


def test_without_a_bound_on_rows_analysts_are_refused_and_the_custodian_is_answered(catalog):
    free = registered(rows_per_unit=None)
    text = "select count(*) from stays"
    assert lc.Session(free, cap=0.6, seed=1).sql(text, share=0.3).share == pytest.approx(0.3, rel=1e-3)
    with pytest.raises(InputError, match="register with rows_per_unit"):
        lc.Session(free, cap=lc.pool_membership(0.55), seed=1).sql(text)


def test_rows_of_a_union_are_those_of_both_sides(catalog):
    for word, most in {"union all": 7, "union": 7, "except": 6, "intersect": 6}.items():
        text = f"select count(*) from (select person from stays {word} select id from people) q"
        assert compiled(text, catalog).releases[0].base.most == most, word


def test_sessions_say_what_sql_needs(catalog):
    with pytest.raises(InputError, match=r"lc\.sql\.register"):
        lc.Session(np.zeros((5, 1)), cap=0.6, seed=1).sql("select 1")
    with pytest.raises(InputError, match="said when registering"):
        lc.Session(catalog, cap=0.6, seed=1, unit="id")
    with pytest.raises(TypeError, match="shares"):
        lc.Session(catalog, cap=0.6, seed=1).sql(QUESTION, shares=0.1)


ROWS = pd.DataFrame({"id": np.arange(400), "ward": np.arange(400) % 2, "age": np.arange(400) % 90})
TEXT = "select w.name, avg(age) as age from people p join wards w on p.ward = w.ward group by w.name"


def _declared(names: str, most: int) -> lc.sql.Catalog:
    return lc.sql.register(
        {"people": ROWS, "wards": pd.DataFrame({"ward": [0, 1], "name": list(names)})},
        unit="people.id",
        links={"people.ward": "wards.ward"},
        bounds={"age": (0, most)},
        rows_per_unit=1,
        public=["wards"],
    )


def test_a_stored_answer_is_of_the_same_text_over_the_same_declarations(tmp_path, monkeypatch):
    """Another public table, other bounds, another literal, a comment that hides a condition: each is a new question."""
    monkeypatch.setattr(asking, "WorkerEngine", kept_engine)
    condition = "select count(*) as n from people --\n where age > 50"
    questions = [
        (("ab", 100), TEXT),
        (("ba", 100), TEXT),
        (("ab", 200), TEXT),
        (("ab", 100), "select count(*) from wards w, people p where p.ward = w.ward and w.name <> 'a b'"),
        (("ab", 100), "select count(*) from wards w, people p where p.ward = w.ward and w.name <> 'a  b'"),
        (("ab", 100), condition),
        (("ab", 100), condition.replace("\n", "")),
    ]

    def ask(declared, text):
        session = lc.Session(_declared(*declared), cap=0.6, ledger=f"sqlite:///{tmp_path / 'ledger.db'}", name="one")
        return session.sql(text, share=0.05)

    first = [ask(*one) for one in questions]
    assert [one.again for one in first] == [False] * len(questions)
    again = ask(*questions[-1])
    assert again.again
    pd.testing.assert_frame_equal(again.frame, first[-1].frame)
    assert ask(("ab", 100), TEXT.replace("select ", "select\n  ")).again
