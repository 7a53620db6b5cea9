"""A session: many answers about one data set, each asked in the light of the last, under one cap for all of them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.caps import CapLike, PoolMembership, as_caps
from leakcap.certificates.session import SessionCertificate
from leakcap.custody.fingerprint import DataPrint, contents_print
from leakcap.custody.ledger import AccountAt, Book, Store, budgets, open_book
from leakcap.custody.ledger.accounts import Secret, name_of, open_account
from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.noise import OperatingSystem, Seeded
from leakcap.planning.released import warn_of_second_secret
from leakcap.sessions.answers import PastAnswer, Preview, SessionAnswer, Spending
from leakcap.sessions.certifying import certificate_of, certificate_of_worlds
from leakcap.sessions.clock import TICKS, Clock
from leakcap.sessions.desk import Desk
from leakcap.sessions.fitting import fitting
from leakcap.sessions.listed_worlds.desk import WorldsDesk, worlds_desk
from leakcap.sessions.listed_worlds.functions import WorldFunctions
from leakcap.sessions.questions import Questions, Where
from leakcap.sessions.table import SessionTable

__all__ = ["Session"]

WORLDS = 1024
ANSWERS = ("answer", "number", "release")  # kinds of entries
KINDS = ("count", "sum", "mean", "histogram", "covariance", "quantile", "linear", "query", "blocks")


class Session:
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
        seed: int | None = None,
    ) -> None:
        """Open a session, or go on with one that the ledger knows.

        Args:
            data: a table or an array; or a tuple of several, sliced alike.
            cap: what all answers together may tell about one person: `leakcap.membership(...)`, `mip(...)` or
                `true_positive_rate(...)`, a list of them, a bare number for a membership cap, or
                `leakcap.pool_membership(...)`, under which everybody takes part.
            design: "bits": a coin for everybody decides who takes part, once and for all; for questions that are sums
                over people, hundreds or thousands of them. "worlds": one of a list of halves takes part; for any
                function, some dozens of answers.
            unit: whose row it is, an array or the name of a column. With it the data may change under their name.
            ledger: "sqlite:///file", "postgresql://user@host/database", or a store. None: the session ends with this
                process, and its certificate says that it stands alone.
            name: of the data set in the ledger. None: their contents name them.
            analyst: who asks, for budgets and for what is shown. None: the custodian.
            always: whether the promise must hold for every single course of answers, not on average over them.
            retire: whether people who cannot pay are left out; otherwise such a question is refused.
            rows_per_unit: the most rows of one person that count, the first ones.
            worlds: for design "worlds", how many halves are listed; 1,024 by default.
            seed: makes it a simulation, which is no release.

        Raises:
            InputError: an argument cannot be used, or the ledger knows these data otherwise.
            CapError: the cap is not about one person.
        """
        checks.choice(("bits", "worlds"), design=design)
        if design == "bits" and (always or worlds is not None):
            raise InputError("always and worlds are for design='worlds': with a coin for everybody leave them out")
        if seed is not None and ledger is not None:
            raise InputError("a session with a seed is a simulation: leave the ledger out")
        self.caps = as_caps(cap)
        everybody = isinstance(self.caps[0], PoolMembership)
        self._table = SessionTable.of(data, unit, rows_per_unit)
        clock = Clock.of(self.caps) if design == "bits" else None
        if everybody and self._table.rows_per_unit is None:
            raise InputError(
                "a pool cap with unit= needs rows_per_unit=, the most rows that one person may bring: further ones are "
                "left out"
            )
        self._alone, self._seeded = ledger is None, seed is not None
        prints = DataPrint(self._table.pool.data, self._table.units.labels)
        if not self._seeded:
            warn_of_second_secret(prints.of_release, remember=self._alone)
        version = ledger.version if isinstance(ledger, AccountAt) else prints.of_run
        place: str | Store | None = ledger.place if isinstance(ledger, AccountAt) else ledger
        if isinstance(ledger, AccountAt):
            name = ledger.name
        opened = open_account(
            Book.in_memory() if place is None else open_book(place),
            name_of(version) if name is None else str(name),
            design="pool" if everybody else design,
            caps=self.caps,
            version=version,
            named=self._table.units.labels is not None,
            clock=(0.0, 0.0) if clock is None else (clock.square, clock.distance),
            always=bool(always),
            contents="" if isinstance(ledger, AccountAt) else contents_print(self._table.pool.data),
            worlds=None if design == "bits" else checks.count(at_least=2, worlds=worlds or WORLDS),
        )
        self.name = opened.name
        secret = opened.secret if seed is None else Secret(np.random.default_rng(seed).bytes(32))
        names = self._table.units.names
        self._desk: Any
        self._questions: Any
        if design == "worlds":
            self._desk = worlds_desk(
                opened.account,
                self.caps,
                people=len(names),
                worlds=worlds or WORLDS,
                secret=secret,
                world=opened.world if seed is None else None,
                always=always,
                version=version,
                analyst=analyst or "",
                randomness=OperatingSystem() if seed is None else Seeded(seed),
            )
            self._questions = WorldFunctions(self._table)
            return
        assert clock is not None
        clock = Clock(opened.square, opened.distance)  # by which the account counts
        self._desk = Desk(
            account=opened.account,
            clock=clock,
            people=secret.people(names),
            coins=np.ones(len(names), dtype=bool) if everybody else secret.coins(names),
            everybody=everybody,
            version=version,
            analyst=analyst or "",
            retire=bool(retire),
            randomness=OperatingSystem() if seed is None else Seeded(seed),
        )
        self._questions = Questions(self._table, secret.key("blocks"), quiet=everybody or bool(analyst))

    def count(self, *, where: Where = None, by: Any = None, **how: Any) -> SessionAnswer:
        """How many rows there are.

        Args:
            where: a condition, such as "age > 40 and ward = 'A'"; or a function of one person's rows, true or false.
            by: groups, declared as in `{"ward": ["A", "B"]}`.
            **how: `noise=` (deviation of the answer's noise) or `share=` (of the clock, .01 by default), and `request=`
                (a key of yours: asking again with it gives the same answer).

        Returns:
            The answer: a number, or a table with the groups as its index.
        """
        return self._desk.answer(self._questions.count(where=where, by=by), **how)

    def sum(
        self, columns: Any, *, where: Where = None, by: Any = None, bounds: Any = None, **how: Any
    ) -> SessionAnswer:
        """Sums of columns.

        Args:
            columns: the name of a column, or a list of them.
            where: as for `count`.
            by: as for `count`; needs bounds.
            bounds: `(low, high)` of every column, or `{column: (low, high)}`; what lies outside is cut. They must not
                come from the data. None: noise is made for what people of this pool bring, and the certificate says so.
            **how: as for `count`.

        Returns:
            The answer: a number for one column, otherwise an array; a table for groups.
        """
        return self._desk.answer(self._questions.sum(columns, where=where, by=by, bounds=bounds), **how)

    def mean(
        self, columns: Any, *, where: Where = None, by: Any = None, bounds: Any = None, **how: Any
    ) -> SessionAnswer:
        """Means of columns.

        Args:
            columns: the name of a column, or a list of them.
            where: as for `count`.
            by: as for `count`; needs bounds.
            bounds: as for `sum`. With bounds, a sum and a count are noised, and nothing else depends on the data.
            **how: as for `count`; `noise=` takes the number of rows from the pool, which the certificate says.

        Returns:
            The answer: a number for one column, otherwise an array; a table for groups.
        """
        return self._desk.answer(self._questions.mean(columns, where=where, by=by, bounds=bounds), **how)

    def histogram(
        self, columns: Any, *, edges: Any = None, bounds: Any = None, bins: int = 20, where: Where = None, **how: Any
    ) -> SessionAnswer:
        """How many rows lie in each bin, for every column.

        Args:
            columns: the name of a column, or a list of them.
            edges: of the bins, ascending, for all columns alike. They must not come from the data.
            bounds: in place of edges, `(low, high)` for bins of equal width.
            bins: how many of these.
            where: as for `count`.
            **how: as for `count`.

        Returns:
            Counts, `(bins,)` for one column, otherwise `(columns, bins)`.
        """
        asked = self._questions.histogram(columns, edges=edges, bounds=bounds, bins=bins, where=where)
        return self._desk.answer(asked, **how)

    def covariance(self, columns: Any, *, bounds: Any = None, where: Where = None, **how: Any) -> SessionAnswer:
        """Variances and covariances of columns.

        Args:
            columns: the name of a column, or a list of them.
            bounds: as for `sum`.
            where: as for `count`.
            **how: `share=` and `request=`, as for `count`.

        Returns:
            The matrix, `(columns, columns)`; one number for one column.
        """
        return self._desk.answer(self._questions.covariance(columns, bounds=bounds, where=where), **how)

    def quantile(
        self, columns: Any, q: Any = 0.5, *, bounds: Any = None, grid: Any = None, where: Where = None, **how: Any
    ) -> SessionAnswer:
        """Quantiles of columns, from counts between cut points.

        Args:
            columns: the name of a column, or a list of them.
            q: a level from 0 to 1, or a list of them.
            bounds: `(low, high)` for a grid of 128 cells of equal width.
            grid: cut points, in place of bounds. They must not come from the data.
            where: as for `count`.
            **how: `share=` and `request=`, as for `count`.

        Returns:
            The quantiles, one for each level and column.
        """
        return self._desk.answer(self._questions.quantile(columns, q, bounds=bounds, grid=grid, where=where), **how)

    def linear(
        self, fn: Callable[..., Any], *, bounds: Any = None, norm: float | None = None, **how: Any
    ) -> SessionAnswer:
        """The sum over people of what a function makes of each one's rows.

        Args:
            fn: function of one person's rows, sliced alike from every data argument, that returns a number or an
                array. Of people of whom it makes no finite numbers, nothing is added.
            bounds: `(low, high)` of its numbers; what lies outside is cut.
            norm: in place of bounds, the most length of all its numbers together; longer ones are scaled down.
            **how: as for `count`.

        Returns:
            The sums, in the form that `fn` returns.
        """
        return self._desk.answer(self._questions.linear(fn, bounds=bounds, norm=norm), **how)

    def query(self, fn: Callable[..., Any], **how: Any) -> SessionAnswer:
        """A function that adds up over people, asked of each person alone.

        Args:
            fn: function of rows that returns a number or an array: of all rows it must return the sum of what it
                returns for each person.
            **how: as for `count`.

        Returns:
            The answer, in the form that `fn` returns.

        Raises:
            InputError: the function is no sum: ask `blocks`.
        """
        return self._desk.answer(self._questions.query(fn), **how)

    def blocks(self, fn: Callable[..., Any], *, blocks: int, bounds: Any, **how: Any) -> SessionAnswer:
        """Any function, as the average of its answers on blocks of people.

        Args:
            fn: function of rows that returns a number, or an array of the bounds' shape.
            blocks: how many, at least 2, chosen without looking at the data.
            bounds: `(low, high)` of the answer, chosen without looking at the data.
            **how: as for `count`.

        Returns:
            The average over blocks.
        """
        return self._desk.answer(self._questions.blocks(fn, blocks=blocks, bounds=bounds), **how)

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
                KMeans, GaussianNB, NearestClassMean, LogisticRegression, NeuralNetwork; a bare `torch.nn.Module`, which
                is trained with NeuralNetwork's defaults; or any object with `fit_in_session`. It stays as it is. It
                needs no cap: that of the session holds.
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
        if isinstance(desk, WorldsDesk):
            raise InputError("fits are made of sums over people: open the session with design='bits'")
        estimator = _as_estimator(estimator)
        made = fitting(
            self._table,
            estimator,
            desk.noised,
            columns=columns,
            target=target,
            bounds=bounds,
            norm=norm,
            share=checks.positive(share=share),
            clock=desk.clock,
            everybody=desk.everybody,
            quiet=questions.quiet,
        )
        found = estimator.fit_in_session(made)
        if hasattr(found, "estimator_") or hasattr(found, "certificate_"):
            found.certificate_ = self.certificate
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
        checks.choice(KINDS, kind=kind)
        how = {name: details.pop(name) for name in ("noise", "share", "request") if name in details}
        return self._desk.preview(getattr(self._questions, kind)(*question, **details), **how)

    @property
    def spent(self) -> Spending:
        """How much of the clocks is spent."""
        return self._desk.spending()[0]

    @property
    def remaining(self) -> Spending:
        """How much of the clocks is left, and the success that the cap allows in the end."""
        spent, whole = self._desk.spending()
        return Spending(self._desk.allowed(whole), max(0.0, whole - spent.share))

    @property
    def history(self) -> tuple[PastAnswer, ...]:
        """All answers so far; for analysts, those of their group."""
        desk = self._desk
        with desk.account.reading() as now:
            group = budgets.group_of(now.state, desk.analyst)
            return tuple(
                PastAnswer(
                    number=entry.number,
                    question=entry.body["question"],
                    analyst=entry.body["analyst"],
                    share=entry.charge / TICKS,
                    numbers=tuple(entry.body.get("numbers", (entry.body.get("number"),))),
                    at=entry.body["at"],
                )
                for entry in now.entries()
                if entry.kind in ANSWERS and (not desk.analyst or entry.body["group"] == group)
            )

    @property
    def certificate(self) -> SessionCertificate:
        """What all answers together allow, those that are still to come included."""
        with self._desk.account.reading() as now:
            state = now.state
            answers = [entry for entry in now.entries() if entry.kind in ANSWERS]
        told = [(entry.body["question"], entry.charge / TICKS) for entry in answers]
        if isinstance(self._desk, WorldsDesk):
            return certificate_of_worlds(
                self.caps,
                worlds=self._desk.engine.worlds.m,
                square=self._desk.square,
                answers=told,
                always=self._desk.always,
                alone=self._alone,
                seeded=self._seeded,
            )
        return certificate_of(
            self.caps,
            self._desk.clock,
            allowance=state["allowance"],
            groups=len(budgets.groups(state)),
            answers=told,
            pool_made=[entry.body["question"] for entry in answers if entry.body["pool_made"]],
            own_rows=self._table.rows_per_unit is None,
            alone=self._alone,
            seeded=self._seeded,
        )

    def __reduce__(self) -> Any:
        raise InputError("a session holds the data and their secret: it is not pickled. Open it again with its ledger")

    def __repr__(self) -> str:
        return f"Session({self.name!r}, {'; '.join(cap.describe() for cap in self.caps)})"


def _as_estimator(given: Any) -> Any:
    """A torch module becomes an estimator; where torch was never loaded, there is none."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(given, torch.nn.Module):
        return given
    from leakcap.sessions.networks.estimator import NeuralNetwork

    return NeuralNetwork(given)
