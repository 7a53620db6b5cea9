"""Any classifier, made public by its votes: teachers on blocks of people vote on public rows, and a student learns."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from leakcap.custody.fingerprint import fingerprint
from leakcap.errors import InputError
from leakcap.estimators.base import PrivateEstimator, publish
from leakcap.estimators.block_average import BlockAverage, noise_of_mean
from leakcap.estimators.classifiers import Probabilities
from leakcap.estimators.data import Rows
from leakcap.estimators.distilled_model import DistilledModel
from leakcap.estimators.own_session import ClassifierOfSession, session_rows, sums_by
from leakcap.estimators.public_basis import public_basis
from leakcap.estimators.public_rows import AskedRows, public_rows
from leakcap.estimators.settings import seed_of
from leakcap.estimators.taught_blocks import TaughtBlocks, as_votes
from leakcap.ground import checks
from leakcap.ground.arrays import Floats
from leakcap.sessions.fitting import Fitting
from leakcap.simulate.callers import private_parts
from leakcap.simulate.teaching import rehearse

__all__ = ["Distilled", "votes_of"]

COUNT_SHARE, CHECK_SHARE = 0.01, 0.15  # of the clock: for the number of people, and for putting the student right
SURE = 4.0  # deviations of its own noise, that a number of people is taken for at least
MOST_ROWS = 20_000  # that teachers are asked about
ROUNDS = (0, 3)  # of a student that learns from itself, which people decide about
LOUDEST = 0.1  # deviation of the noise in the mean vote over all public rows
HEARD = 0.2  # deviation of the noise in the votes of a row, along all directions together
FEWEST_DIRECTIONS, MOST_DIRECTIONS = 8, 128
MOST_BLOCKS = 10_000
FEWEST_EACH = 10  # people of a block, on average, who take part
VOTES = ("auto", "scores", "classes")


@dataclass(eq=False, repr=False)
class Distilled(Probabilities, ClassifierOfSession):
    """Any classifier, distilled: models of blocks of people vote on public rows, a student learns from noised votes.

    Everybody is in one block, by a keyed function of who they are. A teacher, of which nothing need be known, is taught
    the rows of each block and votes on every public row. What leaves are the noised votes; rows that are alike are then
    heard together, the student learns what they say, and its probabilities are put right by noised counts of people.

    Guarantee: what `certificate_` states: one person moves the votes of one block, and one count. With a coin for
    everybody it holds against whoever knows everybody else's; under a pool cap it is about being in the data at all.

    Args:
        teacher: a classifier with `fit` and `predict`, or `predict_proba`; it sees the rows of one block.
        student: a classifier with `fit` and `predict`, best with `predict_proba`; it sees public rows and released
            votes alone.
        queries: public rows, with the columns of X and without labels; a table or an array. They must not come from the
            data. Thousands of them are best: more rows need no more noise in what the student learns.
        blocks: how many; "auto": by the cap and the noised number of people. More blocks need less noise, and leave
            fewer rows to each teacher. The number must not come from the data if the cap is about the pool.
        votes: "classes": a teacher names one class of each row; "scores": it shares its vote by `predict_proba`;
            "auto": scores where the teacher has them.
        classes: under a pool cap, the classes there may be, known without the data. Rows of others count nowhere.
        cap: what may be learnt about who took part, such as `lc.membership(0.55)`, or `lc.pool_membership(0.55)`.
        worlds: not taken: everybody has a coin of their own.
        strata: not taken.
        random_state: None for a release. A number makes the fit a simulation, and its certificate says so.
        pool_public: not taken: the certificate is that of a session.
        options: `{"rows_per_unit": 1, "ledger": ..., "name": ...}`, as for `leakcap.Session`.

    Attributes:
        student_: the student, fitted; its classes are places in `classes_`.
        votes_: `(rows, classes)`, released: the share of the votes for each class of the rows asked about, as far as
            it stands out of the noise.
        asked_: which of the public rows these are.
        blocks_: how many there were.
        classes_: the classes that occur in the pool, or those declared.
        estimator_: the plain scikit-learn estimator that holds the released numbers and nothing else.
        certificate_: what the release guarantees; may be published.
        plan_: there is none: votes and counts are answers of a session.

    Examples:
        >>> import leakcap as lc
        >>> from sklearn.datasets import make_blobs
        >>> from sklearn.tree import DecisionTreeClassifier as Tree
        >>> X, y = make_blobs(4000, centers=3, random_state=0)
        >>> model = lc.estimators.Distilled(Tree(), Tree(max_depth=4), queries=X[3000:], cap=lc.membership(0.6))
        >>> model = model.set_params(random_state=0).fit(X[:3000], y[:3000])  # a simulation
        >>> bool(model.score(X[3000:], y[3000:]) > 0.8)
        True
    """

    teacher: Any = None
    student: Any = None
    _: KW_ONLY
    queries: Any = None
    blocks: Any = "auto"
    votes: str = "auto"

    @property
    def takes_any_features(self) -> bool:
        """Whether features need no bounds: a vote is a vote, whatever a teacher makes of them."""
        return True

    def told_in_session(self) -> dict[str, Any]:
        """What tells this fit from others, the same in every process.

        Returns:
            The settings in words; for models and public rows their fingerprints.
        """
        held = {name: fingerprint(getattr(self, name))[:16] for name in ("teacher", "student", "queries")}
        return {"blocks": self.blocks, "votes": self.votes, "classes": self.classes, **held}

    def fit_in_session(self, fitting: Fitting) -> Any:
        """A copy that is fitted to answers of a session: `leakcap.Session.fit` calls it.

        Args:
            fitting: the rows, and a way to ask for sums over people.

        Returns:
            The fitted copy.

        Raises:
            InputError: settings, public rows or models cannot be used, or the cap is too small for so few blocks.
        """
        made = self._copy_for_session()
        if fitting.target is None:
            raise InputError("say what is to be predicted: session.fit(Distilled(...), target='income')")
        rows = session_rows(made, fitting)
        publish(made, made._learnt(fitting, rows))
        return made

    def _learnt(self, fitting: Fitting, rows: Rows) -> DistilledModel:
        assert rows.classes is not None
        public, blocks, share = self._to_ask(fitting, rows)
        asked = self._votes_of(fitting, rows, public=public.rows, blocks=blocks, share=share)
        labels = as_votes(1 / len(rows.classes) + asked.teachers.basis @ asked.asked(share * (1 - CHECK_SHARE)))
        ways = [
            DistilledModel.of(self.student, public.rows, labels, classes=rows.classes, rounds=rounds)
            for rounds in ROUNDS
        ]
        made = self._best(ways, fitting, rows, public=public.rows, share=share * CHECK_SHARE)
        made.votes_, made.asked_, made.blocks_ = labels, public.places, blocks
        return made

    def _to_ask(self, fitting: Fitting, rows: Rows) -> tuple[AskedRows, int, float]:
        """The rows to vote on, the number of blocks, and what is left of the share."""
        assert rows.classes is not None
        self._whole_votes()  # refuses what cannot be before anything is asked
        public = public_rows(self.queries, fitting.names, MOST_ROWS)
        for role in ("teacher", "student"):
            self._rehearse(role, public.rows, len(rows.classes))
        return public, *self._blocks(fitting)

    def _votes_of(self, fitting: Fitting, rows: Rows, *, public: Floats, blocks: int, share: float) -> BlockAverage:
        """Teachers of so many blocks, whose average vote may be asked for."""
        assert rows.classes is not None
        noise = noise_of_mean(fitting.square * share * (1 - CHECK_SHARE), blocks)
        _refuse_noise(noise, blocks)
        teachers = TaughtBlocks(
            teacher=self.teacher,
            features=rows.features,
            codes=np.asarray(rows.target, dtype=np.intp),
            units=fitting.units,
            of_unit=fitting.blocks(blocks),
            blocks=blocks,
            asked=public,
            basis=public_basis(public, _directions(noise, len(public))),
            classes=len(rows.classes),
            whole_votes=self._whole_votes(),
            seed=seed_of(self.random_state) or 0,
        )
        return BlockAverage(fitting, teachers, public=self.classes is not None)

    def _best(
        self, ways: list[DistilledModel], fitting: Fitting, rows: Rows, *, public: Floats, share: float
    ) -> DistilledModel:
        """Count people by what each student says of them and by their class: the student that suits most, put right."""
        assert rows.classes is not None
        codes = np.asarray(rows.target)
        kinds = np.eye(len(rows.classes))[codes] * (codes >= 0)[:, None]
        cells = [np.eye(made.cells)[made.places(rows.features)[0]] for made in ways]
        inside = np.hstack(cells) / math.sqrt(len(ways))  # everybody is in one cell of each
        found, noise = sums_by(
            fitting, inside, kinds, most=1.0, share=share, step="counts", public=self.classes is not None
        )
        counts = np.split(found * math.sqrt(len(ways)), len(ways))
        best = int(np.argmax([own.max(axis=1).sum() for own in counts]))
        ways[best].put_right(counts[best], public, noise * math.sqrt(len(ways)))
        return ways[best]

    def _blocks(self, fitting: Fitting) -> tuple[int, float]:
        """How many blocks, and what is left of the share."""
        if self.blocks != "auto":
            blocks = checks.count(at_least=2, blocks=self.blocks)
            if blocks > MOST_BLOCKS:
                raise InputError(
                    f"blocks must be {MOST_BLOCKS:,} at most: each of them is a teacher, with votes of its own"
                )
            if not fitting.declared_only and blocks > fitting.units.count:
                raise InputError(f"there are fewer people than {blocks} blocks: take a few dozen people for each block")
            return blocks, fitting.share
        ones = np.ones((fitting.units.rows, 1))
        found, deviation = sums_by(
            fitting, ones, ones, most=1.0, share=fitting.share * COUNT_SHARE, step="count", public=True
        )
        people = max(float(found[0, 0]), SURE * deviation)
        taking_part = people if fitting.everybody else people / 2
        # The more noise, the more blocks: teachers of fewer rows each, whose average is heard.
        blocks = round(math.sqrt(taking_part / (4 * fitting.square * fitting.share)))
        most = min(MOST_BLOCKS, max(2.0, taking_part / FEWEST_EACH))
        return int(min(max(blocks, 2), most)), fitting.share * (1 - COUNT_SHARE)

    def _whole_votes(self) -> bool:
        checks.choice(VOTES, votes=self.votes)
        has_scores = hasattr(self.teacher, "predict_proba")
        if self.votes == "scores" and not has_scores:
            raise InputError("votes='scores' needs a teacher with predict_proba: take votes='classes'")
        return self.votes == "classes" or not has_scores

    def _asked_votes(self, fitting: Fitting) -> tuple[BlockAverage, float]:
        made = self._copy_for_session()
        rows = session_rows(made, fitting)
        public, blocks, share = made._to_ask(fitting, rows)
        votes = made._votes_of(fitting, rows, public=public.rows, blocks=blocks, share=share)
        return votes, share * (1 - CHECK_SHARE)

    def _rehearse(self, role: str, public: Floats, classes: int) -> None:
        model = getattr(self, role)
        if isinstance(model, PrivateEstimator) or (
            hasattr(model, "get_params") and not isinstance(model, type) and private_parts(model, PrivateEstimator)
        ):
            raise InputError(f"the {role} is private already: give the plain model, votes are noised here")
        rehearse(model, public, np.arange(min(len(public), 20 * classes)), classes, role=role, whole=False)


def votes_of(model: Distilled, fitting: Fitting) -> tuple[BlockAverage, float]:
    """What a fit asks of its teachers, before any student learns, and the share of the clock that it takes."""
    return model._asked_votes(fitting)


def _refuse_noise(noise: float, blocks: int) -> None:
    """Before teachers are taught: by declarations and answers alone."""
    if noise > LOUDEST:
        raise InputError(
            f"the cap is too small for {blocks} blocks: their votes would drown in noise. Give "
            f"{math.ceil(blocks * noise / LOUDEST)} blocks or more, a larger share, or a higher cap"
        )


def _directions(noise: float, rows: int) -> int:
    """More where there is less noise, and no more than rows can tell apart."""
    return int(np.clip((HEARD / noise) ** 2, FEWEST_DIRECTIONS, min(MOST_DIRECTIONS, rows // 4)))
