"""Teachers vote, a student learns from noised votes, and settings that make no sense are refused in our own words."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_blobs
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier

import leakcap as lc
from leakcap.errors import InputError
from leakcap.labels.learning import teachers
from leakcap.labels.learning.teachers import votes_of
from leakcap.labels.learning.votes import NoisedVotes
from leakcap.labels.statistics.sums import SumsMechanism
from leakcap.simulate.teaching import own_randomness

X, y = make_blobs(1500, centers=3, random_state=0, cluster_std=0.5)
ONE = GaussianNB()


def pate(**settings: Any) -> Any:
    return lc.labels.PATE(ONE, ONE, **({"n_teachers": 50, "n_classes": 3, "random_state": 0} | settings))


def test_a_student_learns_from_answers_and_the_certificate_says_what_they_cost() -> None:
    model = pate(epsilon=4.0).fit(X, y)
    assert model.score(X, y) > 0.9 and (model.certificate_.epsilon, model.certificate_.delta) == (4.0, 1e-5)
    assert model.certificate_.kind == "label_dp" and dict(model.certificate_.settings)["teachers"] == 50
    assert model.predict_proba(X).sum(axis=1) == pytest.approx(np.ones(len(X)))
    assert (model.answers_ >= 0).all()  # without selection every question is answered
    assert type(model.certificate_).from_json(model.certificate_.to_json()) == model.certificate_


def test_noise_that_is_given_has_an_epsilon_and_less_noise_a_larger_one() -> None:
    said = [
        pate(sigma2=sigma, queries=60, answers=40, sigma1=8.0, threshold=25).fit(X, y).certificate_.epsilon
        for sigma in (6.0, 12.0)
    ]
    assert 0 < said[1] < said[0]


def test_questions_without_agreement_are_not_answered_and_charged_alike() -> None:
    some = pate(sigma2=12.0, sigma1=8.0, threshold=45, queries=80, answers=80)
    rng = np.random.default_rng(0)
    mixed = np.where(rng.random(len(y)) < 0.6, rng.integers(3, size=len(y)), y)
    model = some.fit(X, mixed)
    sure = clone(some).fit(X, y)
    assert (model.answers_ < 0).sum() > (sure.answers_ < 0).sum()
    assert model.certificate_ == sure.certificate_


def test_names_come_back_and_classes_are_sorted() -> None:
    names = np.array(["c", "a", "b"])[y]
    model = lc.labels.PATE(ONE, ONE, epsilon=4.0, n_teachers=50, classes=["c", "a", "b"], random_state=0).fit(X, names)
    assert model.score(X, names) > 0.9 and model.classes_.tolist() == ["a", "b", "c"]
    assert (model.classes_[model.predict_proba(X).argmax(axis=1)] == model.predict(X)).all()


def test_teachers_and_student_may_see_every_row_without_labels() -> None:
    own = SelfTrainingClassifier(LogisticRegression())
    model = lc.labels.PATE(
        own, own, epsilon=4.0, n_teachers=30, queries=20, n_classes=3, semi_supervised=True, random_state=0
    ).fit(X[::3], y[::3])
    assert model.score(X, y) > 0.9


class Drawing(ClassifierMixin, BaseEstimator):
    """A teacher that takes more from the process's generator the more labels of class 1 it has."""

    def fit(self, X: Any, y: Any) -> Drawing:
        np.random.random(int((np.asarray(y) == 1).sum()))  # noqa: NPY002
        return self

    def predict(self, X: Any) -> Any:
        return np.random.randint(3, size=len(X))  # noqa: NPY002


class Failing(ClassifierMixin, BaseEstimator):
    """A teacher that fails where it has many labels of class 1, and says so."""

    def fit(self, X: Any, y: Any) -> Failing:
        if (np.asarray(y) == 1).sum() > 2:
            print("many", y)
            raise ValueError(f"labels {y}")
        return self

    def predict(self, X: Any) -> Any:
        return np.zeros(len(X), dtype=int)


class Leaving(Failing):
    """A teacher that ends the process where it has many labels of class 1."""

    error: type[BaseException] = SystemExit

    def fit(self, X: Any, y: Any) -> Leaving:
        if (np.asarray(y) == 1).sum() > 2:
            raise self.error(f"labels {y}")
        return self


class Interrupting(Leaving):
    """One that raises what Ctrl-C does, though nobody pressed it."""

    error = KeyboardInterrupt


class Stopped(Failing):
    """One at which the user presses Ctrl-C."""

    def fit(self, X: Any, y: Any) -> Stopped:
        os.kill(os.getpid(), signal.SIGINT)
        return self


def moved(teacher: Any, rows: Any = None, whole: bool = False) -> int:
    """The most counts of a question, in all, that one label moves."""
    rows, labels = np.zeros((40, 1)) if rows is None else rows, np.arange(40) % 3
    parts, asked = np.array_split(np.arange(40), 8), np.arange(20)
    other = labels.copy()
    other[2] = 1
    counts = [
        votes_of(teacher, rows, codes, parts=parts, seeds=list(range(8)), asked=asked, classes=3, whole=whole)
        for codes in (labels, other)
    ]
    return int(np.abs(counts[0] - counts[1]).sum(axis=1).max())


def test_a_label_moves_one_teacher_even_if_teachers_draw_from_one_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    assert moved(Drawing()) <= 2
    monkeypatch.setattr(teachers, "own_randomness", lambda seed: nullcontext())
    assert moved(Drawing()) > 2  # the twin: what one drew shows in the votes of those after it


class Marking(Failing):
    """A teacher that changes what it is asked about, the more the more labels of class 1 it has."""

    def fit(self, X: Any, y: Any) -> Marking:
        self.count_ = int((np.asarray(y) == np.unique(y)[-1]).sum())
        X += self.count_
        return self

    def predict(self, X: Any) -> Any:
        X += self.count_
        return (X[:, 0] > 6).astype(int)


@pytest.mark.parametrize("whole", [False, True])
def test_what_a_teacher_changes_in_place_is_seen_by_no_other(whole: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `StandardScaler(copy=False)` does: which teachers get so far depends on labels."""
    rows = np.zeros((40, 1))
    assert moved(Marking(), rows, whole) <= 2 and not rows.any()
    for where in ("leakcap.labels.learning.teachers", "leakcap.simulate.teaching"):
        monkeypatch.setattr(f"{where}.all_rows", lambda table: table)
    assert moved(Marking(), rows, whole) > 2  # the twin: rows are everybody's


def test_features_are_as_they_were_after_a_fit() -> None:
    table = X.copy()
    scaled = make_pipeline(StandardScaler(copy=False), GaussianNB())
    pate(epsilon=4.0).set_params(teacher=scaled, student=scaled).fit(table, y)
    assert (table == X).all()


class Gapless(GaussianNB):
    """A classifier that asks for classes 0, 1, ... without a gap, as some libraries of boosted trees do."""

    def fit(self, X: Any, y: Any) -> Gapless:
        assert np.unique(y).tolist() == list(range(len(np.unique(y))))
        return super().fit(X, y)


def test_teachers_and_student_may_ask_for_classes_without_a_gap() -> None:
    names = np.array(["a", "c", "d"])[y]
    model = pate(epsilon=6.0, n_classes=None, classes=["d", "b", "a", "c"])
    model.set_params(teacher=Gapless(), student=Gapless()).fit(X, names)
    assert model.score(X, names) > 0.9 and model.classes_.tolist() == ["a", "b", "c", "d"]
    chances = model.predict_proba(X)
    assert (model.classes_[chances.argmax(axis=1)] == model.predict(X)).all()


def test_teachers_of_two_threads_take_turns_at_the_generators_of_the_process() -> None:
    """Otherwise what one draws, by its labels, shows in the votes of the other's."""
    inside, leave, entered = threading.Event(), threading.Event(), threading.Event()

    def first() -> None:
        with own_randomness(1):
            inside.set()
            leave.wait(5)

    def second() -> None:
        with own_randomness(2):
            entered.set()

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    threads[0].start()
    assert inside.wait(5)
    threads[1].start()
    assert not entered.wait(0.2)
    leave.set()
    assert entered.wait(5)
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("teacher", [Failing(), Leaving(), Interrupting()])
def test_a_teacher_that_fails_has_no_vote_and_says_nothing(teacher: Any, capfd: pytest.CaptureFixture[str]) -> None:
    assert 0 < moved(teacher) <= 1
    assert capfd.readouterr() == ("", "")


def test_the_user_stops_teachers_and_hears_no_label() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background may ignore it
    try:
        with pytest.raises(KeyboardInterrupt) as stopped:
            moved(Stopped())
    finally:
        signal.signal(signal.SIGINT, before)
    assert stopped.value.args == () and stopped.value.__context__ is None


def test_the_process_draws_on_as_if_no_teacher_had_been() -> None:
    np.random.seed(5)  # noqa: NPY002
    expected = np.random.random(3)  # noqa: NPY002
    np.random.seed(5)  # noqa: NPY002
    moved(Drawing())
    assert (np.random.random(3) == expected).all()  # noqa: NPY002


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "give epsilon="),
        ({"epsilon": 1.0, "sigma2": 3.0}, "give epsilon="),
        ({"epsilon": 1e-4}, "too small"),
        ({"epsilon": 4.0, "n_teachers": 5000}, "fewer than teachers"),
        ({"epsilon": 4.0, "n_teachers": 1}, "n_teachers"),
        ({"epsilon": 4.0, "queries": 5000}, "rows to ask about"),
        ({"epsilon": 4.0, "queries": 0}, "queries must be at least 1"),
        ({"epsilon": 4.0, "queries": "many"}, "queries must be a whole number"),
        ({"epsilon": 4.0, "queries": 2}, "fewer than the 3 classes"),
        ({"sigma2": 3.0, "sigma1": 3.0}, "go together"),
        ({"sigma2": 3.0, "sigma1": 3.0, "threshold": float("nan")}, "threshold must be finite"),
        ({"sigma2": 3.0, "sigma1": 3.0, "threshold": float("inf")}, "threshold must be finite"),
        ({"sigma2": 3.0, "sigma1": 3.0, "threshold": "x"}, "threshold must be a number"),
        ({"sigma2": 3.0, "sigma1": 3.0, "threshold": 1e300}, "a number of votes"),
        ({"sigma2": 3.0, "sigma1": "x", "threshold": 3}, "sigma1 must be a number"),
        ({"epsilon": 4.0, "sigma1": 3.0, "threshold": 3}, "leave sigma1"),
        ({"sigma2": 3.0, "queries": 10, "answers": 20}, "more answers"),
        ({"sigma2": 1e-3, "queries": 10}, "noise"),
        ({"sigma2": 1e-300, "queries": 10}, "so little noise"),
        ({"sigma2": 1e300, "queries": 10}, "drowns whatever teachers say"),
        ({"sigma2": 9.0, "sigma1": 2e5, "threshold": 3, "queries": 10}, "drowns whatever teachers say"),
        ({"epsilon": 1e-7, "queries": 10}, "drowns whatever teachers say"),
        ({"epsilon": 4.0, "random_state": np.random.default_rng(0)}, "in place of a Generator give it a number"),
        ({"epsilon": 4.0, "random_state": -1}, "a whole number from 0 on"),
        ({"epsilon": 4.0, "n_classes": None}, "n_classes"),
        ({"epsilon": 4.0, "delta": 0.0}, "delta"),
        ({"epsilon": 4.0, "teacher": GaussianNB}, "teacher must be"),
        ({"epsilon": 4.0, "student": 3}, "student must be"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], words: str) -> None:
    model = pate(**{name: value for name, value in settings.items() if name not in ("teacher", "student")})
    model.set_params(**{name: value for name, value in settings.items() if name in ("teacher", "student")})
    with pytest.raises(InputError, match=words):
        model.fit(X, y)
    assert not hasattr(model, "certificate_")


@pytest.mark.parametrize("teacher", [ONE, RidgeClassifier()])
def test_a_class_that_no_teacher_has_seen_is_one_that_nobody_names(teacher: Any) -> None:
    """Its name is known beforehand, and its votes are noised like others: none of it tells that it does not occur."""
    names = np.array(["b", "c", "d"])[y]
    settings = {"n_teachers": 50, "classes": ["a", "b", "c", "d"], "random_state": 0, "queries": 60}
    model = lc.labels.PATE(teacher, ONE, epsilon=6.0, **settings).fit(X, names)
    assert model.classes_.tolist() == ["a", "b", "c", "d"] and model.score(X, names) > 0.9
    chances = model.predict_proba(X)
    assert chances.shape == (len(X), 4) and chances[:, 0].max() < 0.5
    other = lc.labels.PATE(teacher, ONE, epsilon=6.0, **settings).fit(X, np.where(names == "d", "a", names))
    assert other.certificate_ == model.certificate_


def test_no_answers_are_no_student_and_are_spent() -> None:
    model = pate(sigma2=12.0, sigma1=8.0, threshold=500, queries=20)
    with pytest.raises(InputError, match="What was asked is spent"):
        model.fit(X, y)
    with pytest.raises(InputError, match="privatised labels before"):
        model.fit(X, y)


def test_what_fails_without_labels_fails_before_anything_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NoisedVotes, "release", lambda self, votes: pytest.fail("votes were noised"))
    holes = X.copy()
    holes[-1, 0] = np.nan
    model = pate(epsilon=4.0)
    with pytest.raises(InputError, match=r"teacher fails on these features.*ValueError"):
        model.fit(holes, y)
    for wrong in (
        {"student": Failing()},
        {"teacher": LinearRegression()},
        {"classes": ["a", "b", 3], "n_classes": None},
    ):
        with pytest.raises(InputError):
            pate(epsilon=4.0).set_params(**wrong).fit(X, y)
    assert not hasattr(model, "certificate_")


def test_every_label_is_in_one_part(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}

    def voted(*data: Any, **how: Any) -> Any:
        seen.update(how)
        return votes_of(*data, **how)

    monkeypatch.setattr("leakcap.labels.learning.pate.votes_of", voted)
    pate(epsilon=4.0).fit(X, y)
    assert sorted(np.concatenate(seen["parts"]).tolist()) == list(range(len(X))) and len(seen["parts"]) == 50
    assert len(set(seen["seeds"])) > 40


def test_which_rows_a_teacher_has_does_not_depend_on_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise one label moves the parts of many teachers, while it is charged as one vote."""
    seen: list[Any] = []

    def voted(*data: Any, **how: Any) -> Any:
        seen.append([np.concatenate(how["parts"]).tolist(), how["seeds"], how["asked"].tolist()])
        return votes_of(*data, **how)

    monkeypatch.setattr("leakcap.labels.learning.pate.votes_of", voted)
    for labels in (y, np.where(np.arange(len(y)) == 7, (y + 1) % 3, y), np.random.default_rng(0).permutation(y)):
        pate(epsilon=4.0).fit(X, labels)
    assert seen[0] == seen[1] == seen[2]


def test_labels_that_cannot_be_used_are_refused_before_anything_is_asked() -> None:
    for wrong in (y + 1, y.astype(float) + 0.5, y[:-1], np.where(y == 0, np.nan, y)):
        with pytest.raises(InputError):
            pate(epsilon=4.0).fit(X, wrong)


def test_a_prior_is_spent_first_and_teachers_learn_from_its_scores() -> None:
    settings = {"epsilon": 2.0, "n_teachers": 100}
    model = pate(**settings, prior=lc.labels.Ridge(epsilon=1.0)).fit(X, y)
    assert model.score(X, y) > 0.9 and model.certificate_.epsilon == 2.0
    assert model.certificate_.leaves == "noised sums and answers" and "summed by class" in str(model.certificate_)
    assert model.prior_.certificate_.epsilon == 1.0
    assert model.student_.n_features_in_ == 3
    plain = dict(pate(**settings, queries=40).fit(X, y).certificate_.settings)["sigma2"]
    beside = pate(**settings, queries=40, prior=lc.labels.Ridge(epsilon=1.0), passthrough=True).fit(X, y)
    assert dict(beside.certificate_.settings)["sigma2"] > plain  # less is left for votes
    assert beside.student_.n_features_in_ == 3 + X.shape[1]


def test_two_classes_tables_and_noise_that_is_given_have_priors_too() -> None:
    import pandas as pd

    table, two = pd.DataFrame(X, columns=["a", "b"]), np.minimum(y, 1)
    made = {"n_classes": 2, "sigma2": 20.0, "queries": 50, "prior": lc.labels.NaiveBayes(epsilon=1.0)}
    model = pate(**made, passthrough=True).fit(table, two)
    assert model.score(table, two) > 0.8 and model.certificate_.epsilon > 1.0
    assert model.certificate_.epsilon > pate(**(made | {"prior": None})).fit(table, two).certificate_.epsilon


@pytest.mark.parametrize(
    ("prior", "words"),
    [
        (GaussianNB(), "with an epsilon of its own"),
        (lc.labels.Ridge(epsilon=2.0), "leaves nothing for votes"),
        (lc.labels.Ridge(epsilon=-1.0), "epsilon"),
        (lc.labels.Ridge(epsilon="much"), "epsilon"),
        (lc.labels.Ridge(epsilon=float("nan")), "epsilon"),
        (lc.labels.Ridge(epsilon=0.5, delta=0.0), "delta"),
        (lc.labels.Ridge(epsilon=0.5, n_classes=5), "takes its classes from"),
        (lc.labels.Ridge(epsilon=0.5, n_classes=3).fit(X, y), "are spent"),
        (lc.labels.NaiveBayes(epsilon=0.5, bins="many"), "bins"),
    ],
)
def test_priors_that_cannot_be_are_refused(prior: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        pate(epsilon=2.0, prior=prior).fit(X, y)


def test_a_prior_that_refuses_features_leaves_the_model_unspent() -> None:
    model = pate(epsilon=2.0, n_teachers=100, prior=lc.labels.Ridge(epsilon=1.0))
    holes = X.copy()
    holes[3] = np.nan
    with pytest.raises(InputError, match="finite"):
        model.fit(holes, y)
    assert model.fit(X, y).score(X, y) > 0.9


def test_sums_that_were_drawn_are_spent_where_nothing_came_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    model = pate(epsilon=2.0, n_teachers=100, prior=lc.labels.Ridge(epsilon=1.0))
    monkeypatch.setattr(lc.labels.Ridge, "_learn", lambda *given: (_ for _ in ()).throw(MemoryError))
    with pytest.raises(MemoryError):
        model.fit(X, y)
    monkeypatch.undo()
    with pytest.raises(InputError, match="has privatised labels before"):
        model.fit(X, y)
    assert clone(model).fit(X, y).score(X, y) > 0.9


@pytest.mark.parametrize("prior", [lc.labels.Ridge(5.6), lc.labels.NaiveBayes(5.6)], ids=repr)
def test_arithmetic_of_many_sums_is_counted_on_before_anything_is_drawn(
    prior: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At epsilon 8 a total variation of 1e-11 costs some thousandths of delta, and there are thousands of sums."""
    rng = np.random.default_rng(0)
    table = np.hstack([X, rng.standard_normal((len(X), 400))])
    model = pate(epsilon=8.0, n_teachers=100, prior=prior).fit(table, y)
    assert 0 < model.prior_.arithmetic_ <= model._prior.model._most_arithmetic
    monkeypatch.setattr(SumsMechanism, "release", lambda *given: pytest.fail("labels were used"))
    monkeypatch.setattr("leakcap.labels.learning.pate.most_sums", lambda *given: 1)
    monkeypatch.setattr("leakcap.labels.learning.pate.ARITHMETIC", 1e-9)
    with pytest.raises(InputError, match="arithmetic of the prior"):  # the twin: of one sum
        clone(model).fit(table, y)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("columns", [2, 60])
def test_ridge_teachers_at_once_vote_as_each_by_itself(columns: int, intercept: bool) -> None:
    rng = np.random.default_rng(0)
    table, codes = rng.standard_normal((400, columns)), rng.integers(4, size=400)
    table[:, 0] += codes
    parts = np.array_split(rng.permutation(400), 21)
    codes[parts[0]] = 2  # a part of one class
    teacher, asked = RidgeClassifier(0.5, fit_intercept=intercept), np.arange(100)
    given = {"parts": parts, "seeds": [0] * 21, "asked": asked, "classes": 4, "whole": False}
    votes = votes_of(teacher, table, codes, **given)
    single = type("Single", (RidgeClassifier,), {})(0.5, fit_intercept=intercept)  # not known to the kernel
    assert (votes == votes_of(single, table, codes, **given)).all() and (votes.sum(axis=1) == 21).all()


@pytest.mark.parametrize("whole", [False, True])
def test_a_label_moves_one_of_the_teachers_solved_at_once(whole: bool) -> None:
    teacher = lc.labels.LinearTeacher() if whole else RidgeClassifier()
    assert 0 < moved(teacher, np.random.default_rng(0).standard_normal((40, 3)), whole) <= 2


def test_teachers_that_share_a_covariance_vote_as_each_by_itself() -> None:
    rng = np.random.default_rng(1)
    table, codes = rng.standard_normal((300, 12)), rng.integers(4, size=300)
    table[:, 0] += codes
    parts = np.array_split(rng.permutation(300), 14)
    codes[parts[0]] = 2
    given = {"parts": parts, "seeds": [0] * 14, "asked": np.arange(90), "classes": 4, "whole": True}
    votes = votes_of(lc.labels.LinearTeacher(), table, codes, **given)
    single = type("Alone", (lc.labels.LinearTeacher,), {})()  # not known to the kernel
    assert (votes == votes_of(single, table, codes, **given)).all() and (votes.sum(axis=1) == 14).all()


def test_a_linear_teacher_learns_from_rows_without_labels() -> None:
    rng = np.random.default_rng(2)
    loud = np.hstack([y[:, None] + 0.1 * rng.standard_normal((len(y), 1)), 9 * rng.standard_normal((len(y), 30))])
    few = np.where(np.arange(len(y)) < 30, y, -1)
    teacher = lc.labels.LinearTeacher(alpha=1e-3)
    alone = clone(teacher).fit(loud[:30], y[:30])
    assert teacher.fit(loud, few).score(loud[30:], y[30:]) > alone.score(loud[30:], y[30:]) + 0.05
    with pytest.raises(InputError, match="no row has a label"):
        clone(teacher).fit(loud, np.full(len(y), -1))
