"""What can be asked of a session: each question is made of a table, and answered at a desk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from leakcap.errors import InputError
from leakcap.sessions.answers import Preview, SessionAnswer
from leakcap.sessions.questions import Where
from leakcap.sessions.unasked import checked_how, no_question

__all__ = ["Asked"]

UPSTAIRS = "leakcap.sql.asking"  # a session asks for it by name, when it is asked in SQL


class Asked:
    """The questions of a session."""

    _desk: Any
    _questions: Any
    _catalog: Any  # of tables to be asked in SQL; None where the data are one table
    _workers: Any = None  # of a cluster; None where this process does it all

    def __getattr__(self, name: str) -> Any:
        raise no_question(name)

    def _answered(self, kind: str, question: Any, how: dict[str, Any]) -> SessionAnswer:
        answer: SessionAnswer = self._desk.answer(question, **checked_how(kind, getattr(Asked, kind), how))
        return answer

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
        return self._answered("count", self._questions.count(where=where, by=by), how)

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
        return self._answered("sum", self._questions.sum(columns, where=where, by=by, bounds=bounds), how)

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
        return self._answered("mean", self._questions.mean(columns, where=where, by=by, bounds=bounds), how)

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
        return self._answered("histogram", asked, how)

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
        return self._answered("covariance", self._questions.covariance(columns, bounds=bounds, where=where), how)

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
        return self._answered(
            "quantile", self._questions.quantile(columns, q, bounds=bounds, grid=grid, where=where), how
        )

    def linear(
        self,
        fn: Callable[..., Any],
        *,
        bounds: Any = None,
        norm: float | None = None,
        shape: int | tuple[int, ...] | None = None,
        **how: Any,
    ) -> SessionAnswer:
        """The sum over people of what a function makes of each one's rows.

        Args:
            fn: function of one person's rows, sliced alike from every data argument, that returns a number or an
                array. Of people of whom it makes anything but finite numbers of the shape, nothing is added.
            bounds: `(low, high)` of its numbers; what lies outside is cut.
            norm: in place of bounds, the most length of all its numbers together; longer ones are scaled down.
            shape: of what it returns. None: that of the bounds; where these are two numbers, for the custodian the
                shape that it has of this pool, which the certificate then lists, and for others one number.
            **how: as for `count`.

        Returns:
            The sums, in the form that `fn` returns.
        """
        return self._answered("linear", self._questions.linear(fn, bounds=bounds, norm=norm, shape=shape), how)

    def query(self, fn: Callable[..., Any], **how: Any) -> SessionAnswer:
        """A function that adds up over people, asked of each person alone.

        It is for the custodian, and not under a pool cap: it is run on a copy of all rows too, and noise is made for
        what people of this pool bring, which the certificate says.

        Args:
            fn: function of rows that returns a number or an array: of all rows it must return the sum of what it
                returns for each person.
            **how: as for `count`.

        Returns:
            The answer, in the form that `fn` returns.

        Raises:
            InputError: the function is no sum: ask `blocks`. Or it is not for who asks: ask `linear`.
        """
        return self._answered("query", self._questions.query(fn), how)

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
        return self._answered("blocks", self._questions.blocks(fn, blocks=blocks, bounds=bounds), how)

    def sql(self, text: str, *, rows: int | None = None, **how: Any) -> Any:
        """Answer a question in SQL. The session's data are what `leakcap.sql.register` made.

        Args:
            text: one SELECT, in the words of DuckDB: joins along links, conditions, queries inside, GROUP BY columns
                with public values; count, sum, avg, var, stddev, covar and corr over people's rows. A list of worlds
                (design "worlds" or "cohorts") also answers min, max and count(distinct value), of the half that takes
                part.
            rows: as many rows of one person as this question needs, where that is fewer than were declared, or none
                were: noise is made for these, and whoever brings more than so many rows could is cut to that. It must
                not come from the data. None: as declared.
            **how: `noise=` or `share=` (of the clock, for all of the question), and `request=`, as for `count`.

        Returns:
            A `SqlAnswer`: its `frame` has every number with the ends of its interval.

        Raises:
            InputError: the question cannot be answered; the sentence shows the place, and says what would work.
        """
        how = checked_how("sql", Asked.sql, how)
        return self._asking("asked")(self._catalog, self._desk, text, how, rows=rows, workers=self._workers)

    def preview_sql(self, text: str, *, rows: int | None = None, **how: Any) -> Preview | None:
        """What a question in SQL would cost; None where it is about public tables alone. Nothing is spent.

        Args:
            text: as for `sql`.
            rows: as for `sql`.
            **how: as for `sql`.

        Returns:
            Its price and its noise.
        """
        how = checked_how("sql", Asked.sql, how)
        found: Preview | None = self._asking("previewed")(
            self._catalog, self._desk, text, how, rows=rows, workers=self._workers
        )
        return found

    def _asking(self, name: str) -> Any:
        if self._catalog is None:
            raise InputError(
                "questions in SQL need tables with names: lc.Session(lc.sql.register(data, unit=...), cap=...)"
            )
        return getattr(import_module(UPSTAIRS), name)


def sql_at(session: Asked, desk: Any, text: str, how: Mapping[str, Any], *, rows: int | None) -> None:
    """A question in SQL about a session's tables, answered at another desk; custodian side."""
    session._asking("asked")(session._catalog, desk, text, how, rows=rows)
