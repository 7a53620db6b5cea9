"""Any classifier by its votes: what is learnt, what is refused, and what a teacher may do."""

from __future__ import annotations

import pickle
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.tree import DecisionTreeClassifier

import leakcap as lc
from leakcap.estimators import Distilled, Private
from leakcap.estimators.block_average import BlockAverage
from leakcap.estimators.distilled_model import DistilledModel, shrunk
from leakcap.estimators.public_basis import public_basis
from leakcap.estimators.taught_blocks import TaughtBlocks, as_votes
from leakcap.worlds import Units
from tests.later import others_later
from tests.refusals import refusal

X, Y = make_blobs(4300, centers=3, random_state=0)
OWN, PUBLIC = slice(0, 4000), X[4000:]
TREE, LINE = DecisionTreeClassifier(random_state=0), LogisticRegression()
CAP: dict[str, Any] = {"cap": lc.membership(0.6), "random_state": 0}
POOL: dict[str, Any] = {"cap": lc.pool_membership(0.6), "random_state": 0, "classes": [0, 1, 2]}
pytestmark = pytest.mark.filterwarnings("ignore::leakcap.errors.SimulationWarning")


def learnt(**settings: Any) -> Distilled:
    given = {"teacher": TREE, "student": LINE, "queries": PUBLIC, **CAP} | settings
    return Distilled(given.pop("teacher"), given.pop("student"), **given).fit(X[OWN], Y[OWN])


@cache
def learnt_once(pool: bool = False) -> Distilled:
    """For tests that only look at it."""
    return learnt(**POOL if pool else CAP)


SETTINGS: list[dict[str, Any]] = [CAP, POOL, {"student": RidgeClassifier()}, {"votes": "classes", "blocks": 80}]


@pytest.mark.parametrize("settings", others_later(SETTINGS, CAP, SETTINGS[-1]))
def test_a_student_learns_what_teachers_know(settings: dict[str, Any]) -> None:
    model = learnt_once() if settings is CAP else learnt(**settings)
    assert model.score(PUBLIC, Y[4000:]) > 0.85
    assert model.predict_proba(PUBLIC).sum(axis=1) == pytest.approx(1)
    assert model.classes_.tolist() == [0, 1, 2] and model.votes_.shape == (300, 3)
    assert model.certificate_.kind == "simulation"


def test_teachers_that_know_nothing_teach_nothing() -> None:
    """The twin: with classes dealt out by chance no student is right by more than chance."""
    model = Distilled(TREE, LINE, queries=PUBLIC, **CAP).fit(X[OWN], np.random.default_rng(0).permutation(Y[OWN]))
    assert model.score(PUBLIC, Y[4000:]) < 0.6


@pytest.mark.parametrize("pool", [False, True])
def test_the_certificate_says_that_rows_asked_about_are_taken_to_be_public(pool: bool) -> None:
    cert = learnt_once(pool).certificate_
    assert "Rows that teachers were asked about are public: none of them was taken from these data." in cert.assumptions
    assert "Rows that teachers were asked about are public" in " ".join(str(cert).split())
    assert type(cert).from_json(cert.to_json()) == cert


def test_certificates_without_teachers_say_nothing_of_them() -> None:
    """The twin; a column may be called like the estimator."""
    session = lc.Session(pd.DataFrame({'"estimator": "Distilled"': X[OWN, 0]}), cap=0.6, seed=0)
    session.mean('"estimator": "Distilled"', bounds=(-20, 20), share=0.1)
    assert not [words for words in session.certificate.assumptions if "teacher" in words.lower()]


def test_it_is_saved_and_copied_without_the_pool() -> None:
    model = learnt_once()
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(PUBLIC), model.predict(PUBLIC))
    assert len(pickle.dumps(model)) < X[OWN].nbytes
    assert clone(Distilled(TREE, LINE, queries=PUBLIC, blocks=7)).blocks == 7


def test_a_session_fits_it_for_a_share_and_answers_again_for_nothing() -> None:
    table = pd.DataFrame(X[OWN], columns=["east", "north"]).assign(kind=Y[OWN])
    public = pd.DataFrame(PUBLIC[:, ::-1], columns=["north", "east"])  # columns in another order
    session = lc.Session(table, cap=0.6, seed=0)
    model = Distilled(TREE, LINE, queries=public)
    made = session.fit(model, target="kind", share=0.8)
    spent = session.spent.share
    assert 0.75 < spent <= 0.8 + 1e-9
    assert made.score(table[["east", "north"]], Y[OWN]) > 0.8
    assert np.array_equal(session.fit(model, target="kind", share=0.8).votes_, made.votes_)
    assert session.spent.share == spent


def test_a_session_takes_no_other_fit_for_one_that_it_has_answered() -> None:
    """Otherwise it would hand out the votes of other teachers, about other rows."""
    plain = Distilled(TREE, LINE, queries=PUBLIC)
    others = {
        "teacher": LINE,
        "student": TREE,
        "queries": PUBLIC[1:],
        "blocks": 7,
        "votes": "classes",
        "classes": [0, 1],
    }
    told = [clone(plain).set_params(**{name: one}).told_in_session() for name, one in others.items()]
    assert clone(plain).told_in_session() == plain.told_in_session() and plain.told_in_session() not in told


def test_a_class_that_few_or_no_teachers_have_seen() -> None:
    """One that nobody has is declared all the same: the student knows of it, and does not name it."""
    model = learnt(**POOL | {"classes": [0, 1, 2, 3]})
    assert model.classes_.tolist() == [0, 1, 2, 3]
    assert (model.predict(PUBLIC) != 3).all()
    assert model.score(PUBLIC, Y[4000:]) > 0.85


class Failing(DecisionTreeClassifier):
    """Fails on every second block, by what its rows are."""

    def fit(self, X: Any, y: Any) -> Any:
        if int(1e6 * abs(X[0, 0])) % 2 and len(X) < 60:
            raise ValueError(f"the first is {X[0, 0]}")
        return super().fit(X, y)


def test_a_teacher_that_fails_has_no_vote_and_nobody_hears_of_it(recwarn: Any) -> None:
    model = learnt(teacher=Failing())
    assert model.score(PUBLIC, Y[4000:]) > 0.8
    assert not [one for one in recwarn if "first" in str(one.message)]


def taught(**settings: Any) -> TaughtBlocks:
    rows = np.arange(12)
    given: dict[str, Any] = {
        "teacher": TREE,
        "features": X[rows],
        "codes": Y[rows],
        "units": Units(12, 12),
        "of_unit": rows % 4,
        "blocks": 5,  # of which the last has nobody
        "asked": PUBLIC[:30],
        "basis": np.eye(30),
        "classes": 3,
        "whole_votes": True,
        "seed": 0,
    }
    return TaughtBlocks(**given | settings)


def test_votes_are_those_of_a_model_of_each_block() -> None:
    found = taught().vectors(np.ones(12, dtype=bool)).reshape(5, 30, 3) + 1 / 3
    for block in range(4):
        own = np.arange(block, 12, 4)
        alone = len(set(Y[own])) == 1
        named = np.full(30, Y[own][0]) if alone else clone(TREE).fit(X[own], Y[own]).predict(PUBLIC[:30])
        assert found[block] == pytest.approx(np.eye(3)[named])
    assert found[4] == pytest.approx(1 / 3)


def test_who_does_not_take_part_and_rows_of_no_class_are_not_taught() -> None:
    mask, codes = np.arange(12) % 3 > 0, np.where(np.arange(12) == 4, -1, Y[:12])
    left = np.flatnonzero(mask & (codes >= 0))
    part = taught(features=X[left], codes=Y[left], units=Units(len(left), len(left)), of_unit=left % 4)
    found = taught(codes=codes).vectors(mask)
    assert np.array_equal(found, part.vectors(np.ones(len(left), dtype=bool)))


def test_shares_of_a_vote() -> None:
    scores = np.array([[2.0, 0.0, 0.0], [0.2, 0.2, 0.0], [np.nan, 1.0, -4.0], [0.0, 0.0, 0.0]])
    assert as_votes(scores) == pytest.approx(np.array([[1, 0, 0], [0.5, 0.5, 0], [0, 1, 0], [1 / 3, 1 / 3, 1 / 3]]))


def test_directions_are_orthonormal_and_the_first_is_the_same_for_all_rows() -> None:
    basis = public_basis(PUBLIC, 12)
    assert basis.T @ basis == pytest.approx(np.eye(12), abs=1e-9)
    assert np.ptp(basis[:, 0]) < 1e-12
    assert public_basis(np.ones((20, 2)), 12).shape[1] <= 12  # rows with nothing to tell them apart


def test_probabilities_of_a_cell_follow_the_people_in_it() -> None:
    votes = np.eye(2)[(PUBLIC[:, 0] > 0).astype(int)]
    made = DistilledModel.of(DecisionTreeClassifier(max_depth=2), PUBLIC, votes, classes=np.array(["a", "b"]))
    cell, _ = made.places(PUBLIC)
    counts = np.bincount(cell, minlength=made.cells)[:, None] * np.array([[0.9, 0.1]])  # whatever the student says
    made.put_right(100 * counts, PUBLIC, 1e-3)
    assert made.predict_proba(PUBLIC) == pytest.approx(np.tile([0.9, 0.1], (300, 1)), abs=1e-3)
    made.put_right(100 * counts, PUBLIC, 1e9)  # nothing stands out of such noise
    assert not made.shifts_.any()
    assert shrunk(np.array([4.0, 0.5]), 1.0).tolist() == [0.75, 0.0]


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "no public rows": ({"queries": None}, "public rows"),
    "labels among the public rows": ({"queries": np.column_stack([PUBLIC, Y[4000:]])}, "leave out labels"),
    "too few columns": ({"queries": PUBLIC[:, :1]}, "some are missing"),
    "missing numbers": ({"queries": np.where(PUBLIC > 3, np.nan, PUBLIC)}, "NaN"),
    "text": ({"queries": [["a", "b"]] * 20}, "numbers"),
    "too few public rows": ({"queries": PUBLIC[:3]}, "10 public rows"),
    "fewer people than blocks": ({"blocks": 4001}, "fewer people"),
    "one block": ({"blocks": 1}, "blocks"),
    "more blocks than anybody has": ({**POOL, "blocks": 10**6}, "10,000 at most"),
    "a generator for a seed": ({"random_state": np.random.default_rng(0)}, "give it a number"),
    "too small a cap": ({"cap": lc.membership(0.501), "blocks": 20}, "too small"),
    "no cap": ({"cap": None}, "what may leak"),
    "scores of a teacher without any": ({"teacher": RidgeClassifier(), "votes": "scores"}, "predict_proba"),
    "votes of another kind": ({"votes": "loud"}, "votes"),
    "no teacher": ({"teacher": None}, "teacher"),
    "a class in place of a model": ({"student": LogisticRegression}, "student"),
    "a private teacher": ({"teacher": Private(LINE, cap=lc.membership(0.6))}, "private already"),
    "no classes under a pool cap": ({"cap": lc.pool_membership(0.6)}, "classes"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_told_before_anybody_is_asked(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(self: Any, share: float) -> Any:
        raise AssertionError("teachers were asked")

    monkeypatch.setattr(BlockAverage, "asked", asked)
    settings, words = MISTAKES[mistake]
    refusal(lambda: learnt(**settings), words, private=(str(X[0, 0]), str(PUBLIC[0, 0])))


def test_missing_numbers_of_people_are_refused() -> None:
    rows = X[OWN].copy()
    rows[7, 0] = np.nan
    refusal(lambda: Distilled(TREE, LINE, queries=PUBLIC, **CAP).fit(rows, Y[OWN]), "NaN", private=(str(rows[7, 1]),))


def test_refusals_of_trees_point_here() -> None:
    cap = lc.membership(0.6)
    refusal(lambda: Private(GradientBoostingClassifier(), cap=cap).fit(X[OWN], Y[OWN]), "Distilled")


@pytest.mark.parametrize("names", [["east", "south"], ["east", "north", "kind"], ["east"]])
def test_columns_of_public_rows_are_those_of_the_table(names: list[str]) -> None:
    table = pd.DataFrame(X[OWN], columns=["east", "north"])
    public = pd.DataFrame(np.column_stack([PUBLIC, Y[4000:]])[:, : len(names)], columns=names)
    refusal(lambda: Distilled(TREE, LINE, queries=public, **CAP).fit(table, Y[OWN]), "column")
