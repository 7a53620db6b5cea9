"""A session: many answers about one data set, each asked in the light of the last, under one cap for all of them."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy.typing as npt

from leakcap.caps import CapLike, PoolMembership, as_caps
from leakcap.certificates.session import SessionCertificate
from leakcap.cluster.parted import Partitions
from leakcap.cluster.sealed import SealedWorkers, sealed_workers
from leakcap.custody.contents import contents_prints
from leakcap.custody.fingerprint import DataPrint
from leakcap.custody.ledger import AccountAt, Book, Store, budgets, open_book
from leakcap.custody.ledger.accounts import checked_name, name_of, open_account
from leakcap.custody.ledger.capped import caps_now
from leakcap.custody.ledger.operations import set_budget
from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.planning.arguments import knowing
from leakcap.planning.cautions import warn_of_repeated_ids
from leakcap.planning.released import warn_of_second_secret
from leakcap.sessions.answers import Noised, PastAnswer, Preview, Spending
from leakcap.sessions.asked import Asked
from leakcap.sessions.certifying import certificate_of, certificate_of_worlds
from leakcap.sessions.clock import TICKS, Clock
from leakcap.sessions.cohorts import Listed, SqlAlone
from leakcap.sessions.desk import Desk
from leakcap.sessions.fitting import fitting
from leakcap.sessions.given_estimator import as_estimator
from leakcap.sessions.left_out import LeftOut, warn_of_left_out, warn_of_rows_left_out
from leakcap.sessions.listed_worlds.desk import WorldsDesk
from leakcap.sessions.listed_worlds.functions import WorldFunctions
from leakcap.sessions.listed_worlds.over_shards import PartedWorlds
from leakcap.sessions.listed_worlds.past import past_answers
from leakcap.sessions.parted_account import Parted, refuse_backend
from leakcap.sessions.partitioned import PartedQuestions
from leakcap.sessions.questions import Questions, SessionQuestion
from leakcap.sessions.shard_fits import fitted_over
from leakcap.sessions.standing import longer_clock
from leakcap.sessions.table import SessionTable
from leakcap.sessions.telling import Telling
from leakcap.sessions.terms import Terms
from leakcap.sessions.unasked import HOW, checked_how
from leakcap.simulate.progress import Watcher
from leakcap.simulate.silence import kept_quiet

__all__ = ["Session", "desk_of"]

ANSWERS = ("answer", "number", "release")  # kinds of entries
KINDS = ("count", "sum", "mean", "histogram", "covariance", "quantile", "linear", "query", "blocks")


class Session(Asked):
    """Many answers about one data set, under one cap for all of them together. Custodian side.

    Everybody has a clock, of which every answer takes as much as it tells about them. Whoever has too little left for a
    question is left out of its answer. With a ledger the session goes on in other processes and on other days.

    Examples:
        >>> import numpy as np
        >>> import leakcap as lc
        >>> ages = np.random.default_rng(0).integers(18, 90, size=(5000, 1))
        >>> session = lc.Session(ages, cap=0.6, seed=1)
        >>> answer = session.mean("0", bounds=(0, 120), share=0.05)
        >>> bool(abs(answer.value - ages.mean()) < 3)
        True
        >>> session.remaining.share >= 0.95
        True
    """

    _custodian_only = True

    @knowing
    def __init__(
        self,
        data: Any,
        *,
        cap: CapLike,
        design: str = "bits",
        unit: npt.ArrayLike | str | None = None,
        ledger: str | Store | AccountAt | None = None,
        name: str | None = None,
        analyst: str | None = None,
        always: bool = False,
        retire: bool = True,
        rows_per_unit: int | None = None,
        worlds: int | None = None,
        cohorts: int | None = None,
        seed: int | None = None,
        backend: Any = None,
        progress: bool | Watcher | None = None,
    ) -> None:
        """Open a session, or go on with one that the ledger knows.

        Args:
            data: a table or an array; or a tuple of several, sliced alike; or `leakcap.partitions(...)`.
            cap: what all answers together may tell about one person: `leakcap.membership(...)`, `mip(...)` or
                `true_positive_rate(...)`, a list of them, a bare number for a membership cap, or
                `leakcap.pool_membership(...)`, under which everybody takes part.
            design: "bits": a coin for everybody decides who takes part, once and for all; for questions that are sums
                over people, hundreds or thousands of them. "worlds": one of a list of halves takes part; for any
                function, some dozens of answers. "cohorts": the same for SQL alone, with people dealt into cohorts that
                share a bit; faster, and one known member of a cohort tells about all of it.
            unit: whose row it is, an array or the name of a column. With it the data may change under their name.
            ledger: "sqlite:///file", "postgresql://user@host/database", or a store. None: the session ends with this
                process, and its certificate says that it stands alone.
            name: of the data set in the ledger. None: their contents name them.
            analyst: who asks, for budgets and for what is shown. None: the custodian.
            always: whether the promise must hold for every single course of answers, not on average over them.
            retire: whether people who cannot pay are left out; otherwise such a question is refused.
            rows_per_unit: the most rows of one person that count, the first ones.
            worlds: for a list of worlds, how many halves are listed; 1,024 by default.
            cohorts: for design "cohorts", how many there are, 1,024 (by default) to 4,096.
            seed: makes it a simulation, which is no release.
            backend: who works on data in partitions or answers in SQL, or runs functions of `query` in all worlds of a
                list. None for this process; "dask", "dask://host:port" or, so that all questions share one connection,
                what `leakcap.cluster.connect` gives; for worlds also "processes".
            progress: of reading partitions, and of what workers of a cluster do: True or None for a bar, False for
                none, a `leakcap.RunReport`, or a function that is told.

        Raises:
            InputError: an argument cannot be used, or the ledger knows these data otherwise.
            CapError: the cap is not about one person.
        """
        listed = Listed.of(
            design, worlds=worlds, cohorts=cohorts, always=always, registered=hasattr(data, "session_data")
        )
        if seed is not None:
            checks.count(at_least=0, seed=seed)
        if seed is not None and ledger is not None:
            raise InputError("a session with a seed is a simulation: leave the ledger out")
        if analyst is not None and (not isinstance(analyst, str) or not analyst):
            raise InputError("analyst must be a name, as text; leave it out where the custodian asks")
        checked_name(analyst or "")
        caps = as_caps(cap)
        self._catalog = data if hasattr(data, "session_data") else None
        if self._catalog is not None:
            if unit is not None or rows_per_unit is not None:
                raise InputError(
                    "whose rows they are, and how many of each count, was said when registering: leave it out"
                )
            self._workers = None if listed is not None else self._working(backend, progress)
            (data, unit), rows_per_unit = self._catalog.session_data(), 1
        terms = Terms(
            everybody=isinstance(caps[0], PoolMembership),
            analyst=analyst or "",
            always=bool(always),
            retire=bool(retire),
            seed=seed,
        )
        self._alone, self._seeded = ledger is None, seed is not None
        if isinstance(data, Partitions):
            given = Parted(
                caps,
                design,
                unit=unit,
                ledger=ledger,
                name=name,
                rows_per_unit=rows_per_unit,
                terms=terms,
                worlds=None if listed is None else listed.worlds,
            )
            self._open_parted(data, given, backend=backend, progress=progress, listed=listed)
            return
        refuse_backend(backend, worlds=listed is not None or self._catalog is not None)
        data = data if isinstance(data, tuple) else (data,)
        self._table = SessionTable.of(data, unit, rows_per_unit, terms.quiet)
        if unit is None and not terms.quiet:
            warn_of_repeated_ids(self._table.pool)
        clock = Clock.of(caps) if listed is None else None
        if terms.quiet and listed is None and self._table.rows_per_unit is None:
            raise InputError(
                "a pool cap or an analyst with unit= needs rows_per_unit=, the most rows that one person may bring: "
                "further ones are left out"
            )
        prints = DataPrint(self._table.pool.data, self._table.units.owners)
        if not self._seeded:
            warn_of_second_secret(prints.of_release, remember=self._alone)
        version = ledger.version if isinstance(ledger, AccountAt) else prints.of_run
        place: str | Store | None = ledger.place if isinstance(ledger, AccountAt) else ledger
        if isinstance(ledger, AccountAt):
            name = ledger.name
        names = self._table.units.names
        if listed is not None:
            listed.refuse_few(len(names))
        opened = open_account(
            Book.in_memory() if place is None else open_book(place),
            str(name) if name is not None else getattr(self._catalog, "name", "") or name_of(version),
            design="pool" if terms.everybody else design,
            caps=caps,
            version=version,
            named=self._table.units.labels is not None,
            people=names,
            clock=(0.0, 0.0) if clock is None else (clock.square, clock.distance),
            always=terms.always,
            contents=() if ledger is None else getattr(self._catalog, "contents", ()) or contents_prints(data),
            worlds=None if listed is None else listed.worlds,
            cohorts=None if listed is None else listed.cohorts,
        )
        self.name, self.caps = opened.name, opened.caps_now
        secret = terms.secret(opened.secret)
        if listed is not None:
            self._desk = terms.listed(
                opened, listed, people=len(names), version=version, cohorts=listed.dealt(names, secret)
            )
            self._questions = WorldFunctions(self._table, backend) if listed.cohorts is None else SqlAlone()
            return
        self._own_rows = self._table.rows_per_unit is None
        self._desk = terms.desk(
            opened,
            people=secret.people(names),
            coins=None if terms.everybody else secret.coins(names),
            version=version,
            own_rows=self._own_rows,
        )
        self._questions = Questions(self._table, secret.key("blocks"), quiet=terms.quiet)

    def _working(self, backend: Any, progress: bool | Watcher | None) -> SealedWorkers | None:
        """Workers that end with the session."""
        workers = sealed_workers(backend)
        if workers is not None:
            workers.watching = partial(Telling(progress).shards, workers=workers.cluster.threads)
            weakref.finalize(self, workers.close)
        return workers

    def _open_parted(
        self,
        parts: Partitions,
        given: Parted,
        *,
        backend: Any,
        progress: bool | Watcher | None,
        listed: Listed | None,
    ) -> None:
        """The same over partitions: nothing is different but where people's rows lie."""
        workers = self._working(backend, progress)
        with Telling(progress).reading(parts) as told:
            opened, shards = given.opened(told)
        if not given.terms.quiet:
            warn_of_rows_left_out(shards.left_out, shards.rows, given.rows_per_unit)
        self.name, self.caps = opened.name, opened.caps_now
        if listed is not None:
            listed.refuse_few(len(shards.people))
            self._desk = given.terms.listed(opened, listed, people=len(shards.people), version=shards.version)
            self._questions = PartedWorlds(shards, workers)
            return
        self._own_rows = shards.named and given.rows_per_unit is None
        self._desk = given.terms.desk(
            opened,
            people=shards.people,
            coins=None if given.terms.everybody else shards.coins,
            version=shards.version,
            own_rows=self._own_rows,
        )
        self._questions = PartedQuestions(
            shards,
            given.rows_per_unit,
            given.terms.secret(opened.secret).key("blocks"),
            quiet=given.terms.quiet,
            workers=workers,
        )

    def fit(
        self,
        estimator: Any,
        columns: Any = None,
        target: Any = None,
        *,
        bounds: Any = None,
        norm: float | None = None,
        share: float = 0.1,
    ) -> Any:
        """Fit an estimator that is made of sums over people, in one question or in many.

        Args:
            estimator: one of `leakcap.estimators`: Mean, Covariance, StandardScaler, Ridge, LinearRegression, PCA,
                KMeans, GaussianNB, NearestClassMean, LogisticRegression, DecisionTreeClassifier,
                RandomForestClassifier, HistGradientBoostingClassifier, Distilled, NeuralNetwork; a bare
                `torch.nn.Module`, which is trained with NeuralNetwork's defaults; or any object with `fit_in_session`,
                which is given the rows: never take one from an analyst. It stays as it is. It needs no cap: that of the
                session holds.
            columns: names of the features; None for all columns of numbers but the target.
            target: name of the column that is to be predicted, where the estimator needs one.
            bounds: `(low, high)` of every feature, or `{column: (low, high)}`; they must not come from the data. None:
                where the estimator can, the pool's own fit is moved by coins, and the certificate says so.
            norm: for LogisticRegression and NeuralNetwork, in place of bounds: the most length of a row of features;
                longer ones are scaled down. It must not come from the data.
            share: of the clock, that the whole fit takes at most.

        Returns:
            A fitted estimator, made of answers alone: it can be published, and what it predicts costs nothing. The same
            fit again gives the same estimator, for nothing.

        Raises:
            InputError: the estimator is not made of sums.
        """
        if not 0 < share <= 1:
            raise InputError("share must be above 0, and 1 at most: the part of the clock that the whole fit may take")
        desk, questions = self._desk, self._questions
        if isinstance(desk, WorldsDesk) or isinstance(questions, PartedWorlds):
            raise InputError("fits are made of sums over people: open the session with design='bits'")
        estimator, left_out = as_estimator(estimator), list[LeftOut | None]()

        def ask(question: SessionQuestion, of_clock: float) -> Noised:
            answer, missing = desk.noised(question, of_clock)
            left_out.append(missing)
            return answer

        how = {
            "columns": columns,
            "target": target,
            "bounds": bounds,
            "norm": norm,
            "share": checks.positive(share=share),
            "clock": desk.clock,
            "everybody": desk.everybody,
        }
        if isinstance(questions, PartedQuestions):
            found = fitted_over(questions, estimator, ask, **how)
        else:
            made = fitting(self._table, estimator, ask, quiet=questions.quiet, block_key=questions.block_key, **how)
            with kept_quiet(questions.quiet):
                found = estimator.fit_in_session(made)
        if hasattr(found, "estimator_") or hasattr(found, "certificate_"):
            found.certificate_ = self.certificate
        warn_of_left_out(left_out, fit=True)
        return found

    def preview(self, kind: str, *question: Any, **details: Any) -> Preview:
        """What a question would cost. Nothing is spent, nothing leaves, no secret is touched.

        For analysts it is a function of what was declared and answered; the custodian is told who would be left out.

        Args:
            kind: of the question: "count", "sum", "mean" and so on.
            *question: as for the question.
            **details: as for the question.

        Returns:
            Its price and its noise.
        """
        if kind == "fit":
            raise InputError("a fit takes the share= that it is given, and no more: there is nothing to preview")
        checks.choice(KINDS, kind=kind)
        details = checked_how(kind, getattr(Asked, kind), details)
        how = {name: details.pop(name) for name in HOW if name in details}
        return self._desk.preview(getattr(self._questions, kind)(*question, **details), **how)

    @property
    def spent(self) -> Spending:
        """How much of the clocks is spent."""
        return self._desk.spending()[0]

    @property
    def remaining(self) -> Spending:
        """How much of the clocks is left, and the success that the cap allows in the end."""
        return self._desk.spending()[1]

    @property
    def history(self) -> tuple[PastAnswer, ...]:
        """All answers so far; for analysts, those of their group."""
        desk = self._desk
        with desk.account.reading() as now:
            group = budgets.group_of(now.state, desk.analyst)
            told = [one for one in now.entries() if not desk.analyst or _is_for(one.body, group)]
            if isinstance(desk, WorldsDesk):
                return tuple(past_answers(told))
            return tuple(
                PastAnswer(
                    number=entry.number,
                    question=entry.body["question"],
                    analyst=entry.body["analyst"],
                    share=entry.charge / TICKS,
                    numbers=tuple(entry.body["numbers"]),
                    at=entry.body["at"],
                )
                for entry in told
                if entry.kind in ANSWERS
            )

    @property
    def certificate(self) -> SessionCertificate:
        """What all answers together allow, those that are still to come included."""
        with self._desk.account.reading() as now:
            state, caps = now.state, caps_now(now.title or {}, now.state)
            answers = [entry for entry in now.entries() if entry.kind in ANSWERS]
            group = budgets.group_of(state, self._desk.analyst)
        own = [entry for entry in answers if not self._desk.analyst or _is_for(entry.body, group)]
        told = [(entry.body["question"], entry.charge / TICKS) for entry in own]
        pool_made = [entry.body["question"] for entry in answers if entry.body.get("pool_made")]
        if pool_made and self._desk.analyst:
            pool_made = ["questions of the custodian's"]
        if isinstance(self._desk, WorldsDesk):
            return certificate_of_worlds(
                caps,
                worlds=self._desk.engine.worlds.m,
                square=self._desk.square,
                answers=told,
                always=self._desk.always,
                alone=self._alone,
                seeded=self._seeded,
                cohorts=self._desk.cohorts,
            )
        return certificate_of(
            caps,
            self._desk.clock,
            allowance=state["allowance"],
            groups=len(budgets.groups(state)),
            answers=told,
            pool_made=pool_made,
            answered=len(answers),
            own_rows=self._own_rows,
            alone=self._alone,
            seeded=self._seeded,
        )

    def raise_cap(self, cap: CapLike, *, who: str, why: str) -> None:
        """Allow more from now on. What was answered under the smaller cap stays answered; the larger one covers it too.

        Args:
            cap: a larger cap of the same kind.
            who: raises it; it is written down.
            why: it is raised.

        Raises:
            InputError: the cap is not larger, an analyst asks, or this session's cap cannot be raised.
        """
        if self._desk.analyst:
            raise InputError("the custodian raises caps: open the session without analyst=")
        if not who or not why:
            raise InputError("say who raises the cap and why: it is written down")
        larger = as_caps(cap)
        if isinstance(self._desk, WorldsDesk):
            if len(larger) > 1:
                raise InputError("with a list of worlds one membership cap can be raised, such as 0.55 to 0.6")
            self._desk.raise_to(larger[0], who=who, why=why)
        else:
            allowance = longer_clock(self._desk.clock.square, larger)
            set_budget(self._desk.account, who=who, why=why, allowance=allowance, caps=larger)
        self.caps = larger

    def __reduce__(self) -> Any:
        raise InputError("a session holds the data and their secret: it is not pickled. Open it again with its ledger")

    def __repr__(self) -> str:
        return f"Session({self.name!r}, {'; '.join(cap.describe() for cap in self.caps)})"


def desk_of(session: Session) -> Desk | WorldsDesk:
    """Where its answers are made; custodian side."""
    return session._desk


def questions_of(session: Session) -> Any:
    """What can be asked of its rows; custodian side."""
    return session._questions


def _is_for(body: Mapping[str, Any], group: str) -> bool:
    """Whether analysts of a group may see an answer: not where it was built around the pool's own statistic, nor where
    its noise follows from the most rows that somebody has."""
    return body.get("group") == group and not body.get("pool_made", False) and not body.get("own_rows", False)
