"""Teachers and a student: many models on disjoint parts of the labels vote on a few rows, and one model learns these.

Algorithms 1 and 2 of the paper on label privacy. Features are public: teachers and student may see all of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone

from leakcap.certificates.labels import LabelCertificate
from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats
from leakcap.labels.given import (
    SpendsLabels,
    check_rows,
    given_labels,
    refuse_again,
    refuse_mixed,
    refuse_unfitted,
    sorted_names,
    table_of,
)
from leakcap.labels.learning.prior import checked_prior, fitted_prior, most_sums, spent_by, with_scores
from leakcap.labels.learning.teachers import votes_of
from leakcap.labels.learning.vote_costs import VoteCosts, apart_for
from leakcap.labels.learning.votes import UNANSWERED, NoisedVotes, votes_certificate
from leakcap.labels.mechanisms.classes import Classes
from leakcap.simulate.teaching import fitted, generator_of, rehearse

__all__ = ["PATE"]

ROWS_PER_CLASS = 5  # of a teacher, where nothing else was asked for
MOST_TEACHERS = 2000
MOST_VOTES = 10**9  # that a threshold may ask for
QUIET = 5.0  # teachers for each deviation of the noise on their counts
ARITHMETIC = 0.01  # of delta, for that of a prior; more where many sums need it, each of them
EACH_SUM = 2.0**-45
FEWER = 0.95  # of the questions, where arithmetic on so many would cost too much of delta


class PATE(SpendsLabels, MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """A student that learns from the noised votes of teachers, each of whom knows the labels of a part of its own.

    Give `epsilon`, and the number of teachers, of answers and the noise follow from that, the number of rows and of
    classes; or give the noise itself and read `certificate_.epsilon`. All questions and answers are charged whether
    they are used or not. Votes are not kept.

    Differs from the paper: noise is calibrated by the exact law of normal noise, not by Rényi divergences, and drawn in
    whole numbers; noise of the selection is added once, to the largest count. Given `epsilon` alone every question is
    answered: a selection is paid for from the same epsilon, and none was found that is better for it on two tables
    (benchmarks, "Private labels"). With `sigma1` and `threshold` it is the paper's Confident-GNMax.

    Guarantee: one label is in one teacher's part, so it moves two counts by 1 each at most. What leaves is made of the
    noised counts and of public features: (epsilon, delta)-DP in each label.

    Args:
        teacher: a classifier with `fit` and `predict`; it sees the labels of its own part alone.
        student: a classifier with `fit` and `predict`; it sees answers alone.
        epsilon: differential privacy of each label; leave `sigma1`, `sigma2` and `threshold` out then.
        n_teachers: how many; by the number of rows and classes if left out.
        sigma1: deviation of the noise on the largest count of a question; without it every question is answered.
        sigma2: deviation of the noise on the counts of an answer.
        threshold: largest count, noised, from which on a question is answered; for `sigma1`.
        queries: rows that are asked about, at most; drawn from `X` without looking at labels. If left out, as many as
            teachers can be heard about, and as arithmetic on their votes allows: by `epsilon` and public facts alone.
        answers: of these, that are answered, at most; all of them if left out.
        delta: probability with which epsilon may fail.
        n_classes: number of classes; labels are then whole numbers from 0.
        classes: names of the classes instead. Public: never taken from the labels.
        prior: a model of noised sums (`Ridge`, `Logistic`, `LDA` or `NaiveBayes`) with an epsilon of its own, a
            part of `epsilon`: it is fitted first, and teachers and student learn from its scores. A teacher with few
            labels then knows what all labels together have told.
        passthrough: hand features on beside the prior's scores.
        semi_supervised: hand all rows to teachers and student, with the label -1 where they know none (scikit-learn's
            convention, as in `SelfTrainingClassifier`); otherwise the rows with labels alone.
        random_state: seed of parts and questions, which never look at a label. It has no part in privacy.

    Attributes:
        certificate_: what the best attacker can learn of one label, prior included.
        prior_: the prior, fitted, if there is one.
        student_: the student, fitted; its classes are places among those of `classes` that were answered.
        queries_: rows that were asked about.
        answers_: for each of them the place of its class, or -1.
        classes_: names of the classes, sorted.

    Examples:
        >>> import leakcap as lc
        >>> from sklearn.datasets import make_blobs
        >>> from sklearn.linear_model import LogisticRegression
        >>> X, y = make_blobs(6000, centers=3, random_state=0, cluster_std=0.5)
        >>> one = LogisticRegression()
        >>> model = lc.labels.PATE(one, one, epsilon=2.0, n_teachers=100, n_classes=3, random_state=0).fit(X, y)
        >>> bool(model.score(X, y) > 0.9), model.certificate_.epsilon
        (True, 2.0)
    """

    def __init__(
        self,
        teacher: Any,
        student: Any,
        *,
        epsilon: float | None = None,
        n_teachers: int | None = None,
        sigma1: float | None = None,
        sigma2: float | None = None,
        threshold: float | None = None,
        queries: int | None = None,
        answers: int | None = None,
        delta: float = 1e-5,
        n_classes: int | None = None,
        classes: Sequence[Any] | None = None,
        prior: Any = None,
        passthrough: bool = False,
        semi_supervised: bool = False,
        random_state: Any = None,
    ) -> None:
        self.teacher = teacher
        self.student = student
        self.epsilon = epsilon
        self.n_teachers = n_teachers
        self.sigma1 = sigma1
        self.sigma2 = sigma2
        self.threshold = threshold
        self.queries = queries
        self.answers = answers
        self.delta = delta
        self.n_classes = n_classes
        self.classes = classes
        self.prior = prior
        self.passthrough = passthrough
        self.semi_supervised = semi_supervised
        self.random_state = random_state

    def fit(self, X: Any, y: npt.ArrayLike) -> PATE:
        """Train teachers, ask them once, and train the student on what they answer.

        It works once: a second call would spend epsilon again.

        Args:
            X: features, a row for each label; public.
            y: the labels, one column.

        Returns:
            The classifier itself, fitted. It may be published.

        Raises:
            InputError: settings, features or labels cannot be used (nothing is drawn then), labels were used before,
                or there are no answers to learn from. The message never quotes a label.
        """
        for drawn in (self, getattr(self, "prior_", self)):  # its sums may have been drawn where nothing came of them
            refuse_again(drawn, "take clone(model) for other labels")
        classes, table, labels = Classes(self.n_classes, self.classes), table_of(X), given_labels(y)
        refuse_mixed(classes.names)
        check_rows(table, len(labels))
        prior = None if self.prior is None else checked_prior(self.prior)
        sums = 0 if prior is None else most_sums(prior, table.shape[1], classes.count)
        plan = self._plan(len(labels), classes, 0.0 if prior is None else spent_by(prior), sums=sums)
        rng = generator_of(self.random_state)
        parts = np.array_split(rng.permutation(len(labels)), plan.teachers)
        asked = rng.permutation(len(labels))[: plan.votes.costs.questions]
        seen = table if prior is None else self._made_up_scores(table, classes.count)
        for role, size in (("teacher", len(parts[0])), ("student", len(asked))):
            rows = np.arange(min(len(labels), max(size, 2 * classes.count)))
            rehearse(getattr(self, role), seen, rows, classes.count, role=role, whole=self.semi_supervised)
        codes = classes.codes(labels)
        if prior is not None:
            self.prior_ = clone(prior).set_params(n_classes=self.n_classes, classes=self.classes)
            self._prior = fitted_prior(
                self.prior_,
                table,
                labels,
                passthrough=bool(self.passthrough),
                most_arithmetic=plan.votes.earlier,
            )
            table = self._prior.of(table)
        self.certificate_ = plan.certificate(len(labels), classes)
        seeds = rng.randint(2**31, size=plan.teachers)
        votes = votes_of(
            self.teacher,
            table,
            codes,
            parts=parts,
            seeds=seeds.tolist(),
            asked=asked,
            classes=classes.count,
            whole=self.semi_supervised,
        )
        self.queries_, self.answers_ = asked, plan.votes.release(votes)
        self.classes_, self._order = sorted_names(classes.names)
        self.student_ = self._taught(table)
        return self

    def _made_up_scores(self, table: Any, classes: int) -> Any:
        """What teachers will see, with scores that are made up: for a rehearsal."""
        made = np.random.default_rng(0).standard_normal((table.shape[0], classes if classes > 2 else 1))
        return with_scores(table, made) if self.passthrough else made

    def _taught(self, table: Any) -> Any:
        known = self.answers_ != UNANSWERED
        rows, answers = self.queries_[known], self.answers_[known]
        if len(np.unique(answers)) < 2:
            raise InputError(
                "teachers answered too little for a student: lower the threshold, ask more, or raise epsilon. What was "
                "asked is spent"
            )
        self._answered, places = np.unique(answers, return_inverse=True)  # some ask for 0, 1, ... without a gap
        return fitted(self.student, table, rows, places, whole=self.semi_supervised)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The student's class for every row.

        Args:
            X: features, as given to the fit.

        Returns:
            A class for each row.

        Raises:
            NotFittedError: nothing was learnt yet.
        """
        places = np.asarray(self._student().predict(self._seen(X)), dtype=np.intp)
        names = np.asarray(self.classes_)[np.argsort(self._order)]
        return np.asarray(names[self._answered[places]])

    def predict_proba(self, X: Any) -> Floats:
        """The student's probability of every class; 0 for classes that no teacher named.

        Args:
            X: features, as given to the fit.

        Returns:
            `(rows, classes)`, in the order of `classes_`.

        Raises:
            NotFittedError: nothing was learnt yet.
        """
        student = self._student()
        said = np.asarray(student.predict_proba(self._seen(X)))
        found = np.zeros((len(said), len(self.classes_)))
        found[:, self._answered[np.asarray(student.classes_, dtype=np.intp)]] = said
        return np.asarray(found[:, self._order])

    def _seen(self, X: Any) -> Any:
        """What the student sees of these rows."""
        table = table_of(X)
        return table if self.prior is None else self._prior.of(table)

    def _student(self) -> Any:
        refuse_unfitted(self, "student_", "fit(X, y)")
        return self.student_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "student_")

    def _plan(self, rows: int, classes: Classes, before: float, sums: int = 0) -> _Plan:
        """How many teachers, questions and answers, and what noise: from settings and public facts."""
        delta = checks.fraction(delta=self.delta)
        if self.n_teachers is None:
            teachers = min(MOST_TEACHERS, max(2, rows // (ROWS_PER_CLASS * classes.count)))
        else:
            teachers = checks.count(at_least=2, n_teachers=self.n_teachers)
        if teachers > rows:
            raise InputError(f"there are {rows} rows, fewer than teachers: each needs one of its own at least")
        if (self.epsilon is None) == (self.sigma2 is None):
            raise InputError("give epsilon=, from which noise follows, or sigma2=, from which epsilon follows")
        if (self.sigma1 is None) != (self.threshold is None):
            raise InputError(
                "sigma1= and threshold= go together: the noise on the largest count, and what it must reach"
            )
        if self.epsilon is not None:
            return self._for_epsilon(
                checks.positive(epsilon=self.epsilon),
                delta,
                rows,
                before=before,
                sums=sums,
                teachers=teachers,
                classes=classes,
            )
        asked = rows if self.queries is None else checks.count(queries=self.queries)
        answered = asked if self.answers is None else checks.count(answers=self.answers)
        _check_queries(asked, rows)
        threshold = 0.0 if self.threshold is None else checks.finite(threshold=self.threshold)
        if abs(threshold) > MOST_VOTES:
            raise InputError("threshold= is a number of votes, of which there are as many as teachers")
        costs = VoteCosts(asked, answered, self.sigma1, checks.positive(sigma2=self.sigma2), before=before)
        votes = NoisedVotes(costs, threshold, classes.count)
        return _Plan.stated(teachers, votes, delta, sums=sums)

    def _for_epsilon(
        self, epsilon: float, delta: float, rows: int, *, before: float, sums: int, teachers: int, classes: Classes
    ) -> _Plan:
        if self.sigma1 is not None:
            raise InputError("epsilon= chooses the noise: leave sigma1= and threshold= out, or give sigma2= instead")
        apart = _left_of(apart_for(epsilon, delta / 2), before)
        given = self.queries is not None
        asked = checks.count(queries=self.queries) if given else math.floor((apart * teachers / QUIET) ** 2 / 2)
        asked = asked if given else min(rows, asked)
        if given and asked < classes.count:
            raise InputError(f"queries={asked} are fewer than the {classes.count} classes: ask about more rows")
        if asked < classes.count:
            raise InputError(
                f"epsilon is too small for {teachers} teachers: their votes would drown in noise. Raise epsilon, or "
                "use lc.labels.Ridge, which needs no teachers"
            )
        _check_queries(asked, rows)
        answered = asked if self.answers is None else checks.count(answers=self.answers)
        earlier = _arithmetic(epsilon, delta, sums)
        found = _calibrated(
            epsilon, delta, classes.count, asked=asked, answered=answered, before=before, earlier=earlier
        )
        while found is None and not given and self.answers is None and asked > classes.count:
            asked = max(classes.count, math.floor(FEWER * asked))  # what arithmetic costs grows with the answers
            found = _calibrated(
                epsilon, delta, classes.count, asked=asked, answered=asked, before=before, earlier=earlier
            )
        if found is None:
            raise InputError(
                "arithmetic would cost more than half of delta: lower epsilon, raise delta, or ask about fewer rows"
            )
        return _Plan(teachers, found, epsilon, delta)


def _calibrated(
    epsilon: float, delta: float, classes: int, *, asked: int, answered: int, before: float, earlier: float
) -> NoisedVotes | None:
    """So many answers with the least noise for epsilon and delta; None where arithmetic costs more than half of delta.

    Every count of every answer is drawn, and each draw is a little off its ideal law.
    """
    for share in (0.999, 0.99, 0.9, 0.5):  # of delta, for the ideal noise; the rest pays for arithmetic
        sigma = math.sqrt(2 * answered) / _left_of(apart_for(epsilon, delta * share), before) * (1 + 1e-9)
        costs = VoteCosts(asked, answered, None, sigma, before=before)
        votes = NoisedVotes(costs, 0.0, classes, earlier=earlier)
        if votes.distance * (1 + math.exp(min(epsilon, 700.0))) <= delta * (1 - share):
            return votes
    return None


@dataclass(frozen=True)
class _Plan:
    """What will be asked, and what that is worth."""

    teachers: int
    votes: NoisedVotes
    epsilon: float
    delta: float

    @classmethod
    def stated(cls, teachers: int, votes: NoisedVotes, delta: float, *, sums: int) -> _Plan:
        """The epsilon of noise that was given: of delta one half is the ideal noise's."""
        epsilon = votes.costs.epsilon(delta / 2)
        votes = replace(votes, earlier=_arithmetic(epsilon, delta, sums))
        if votes.distance * (1 + math.exp(min(epsilon, 700.0))) > delta / 2:
            raise InputError("so little noise hides no label beside arithmetic: choose larger sigmas, or ask less")
        return cls(teachers, votes, epsilon, delta)

    def certificate(self, labels: int, classes: Classes) -> LabelCertificate:
        return votes_certificate(
            self.votes, epsilon=self.epsilon, delta=self.delta, labels=labels, classes=classes, teachers=self.teachers
        )


def _left_of(apart: float, before: float) -> float:
    """How far a label may move votes, where the prior has moved it so far already; squares add up."""
    if before >= apart:
        raise InputError("the prior's epsilon leaves nothing for votes: give it a smaller one, or raise epsilon")
    return math.sqrt(apart**2 - before**2)


def _arithmetic(epsilon: float, delta: float, sums: int) -> float:
    """Total variation that is counted on for the arithmetic of a prior of so many sums."""
    return max(ARITHMETIC * delta / (1 + math.exp(min(epsilon, 700.0))), sums * EACH_SUM) if sums else 0.0


def _check_queries(asked: int, rows: int) -> None:
    if asked > rows:
        raise InputError(f"there are {rows} rows to ask about: give queries= of so many or fewer")
