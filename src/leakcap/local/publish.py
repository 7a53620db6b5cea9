"""Records that are published themselves, with noise: one of a list, or a table whose rows have noise of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from leakcap.caps import CapLike
from leakcap.certificates.release import Certificate
from leakcap.errors import InputError, LeakcapError
from leakcap.ground.arrays import Floats
from leakcap.ground.proofs import proves
from leakcap.local.rows import PublishedRows, rows_of
from leakcap.noise import Noise
from leakcap.planning.accuracy import Summary, interval_at, noise_widths
from leakcap.planning.entry import plan as plan_of
from leakcap.planning.plans import Plan
from leakcap.planning.several_secrets import one_of_each
from leakcap.worlds import GivenInputs

__all__ = ["PublishedTable", "TablePlan", "plan", "publish"]

ITSELF = "What leaves is the record itself with noise on it: nothing else is computed from it."


def plan(records: Any, *, cap: CapLike, rows: int | str | Sequence[int] | None = None, **options: Any) -> Any:
    """Find the noise under which records may leave themselves, and certify it. Nothing is published.

    Args:
        records: what a record may be: an array or table with a record in each row, a list of records of one form, or
            a function `draw(rng)` that draws one. Known to the attacker, as the prior is.
        cap: what may leak about which of them a published one is; about people there is nothing to cap.
        rows: None for one record, drawn by the prior. For a table: a number of rows, each drawn by the prior, by
            itself; the places in the list (from 0) of rows that you hold; or "all", every record once, in a secret
            order.
        **options: further arguments of `leakcap.plan`, such as `prior`, `weights` or `seed`.

    Returns:
        A `Plan` for one record, a `TablePlan` for a table; `.release()` publishes, once.

    Raises:
        InputError: an argument cannot be used.
        OutputError: the records are not all of one form, or hold something that noise cannot cover.
        CapError: no noise keeps the cap.

    Guarantee: as of `leakcap.plan` with `inputs=`, for a record and for each row of a table. Rows that are drawn by
    themselves: also against whoever knows all other rows. "all": against whoever sees that row alone; what the whole
    table tells about a row is bounded in nats, in the certificate (docs/proofs/published-rows.md).

    Examples:
        >>> import numpy as np
        >>> import leakcap as lc
        >>> people = np.array([[23.0, 18.0], [31.0, 24.0], [45.0, 52.0], [62.0, 31.0]])  # age, income
        >>> made = lc.local.plan(people, cap=lc.identification(0.4), rows=10, seed=1)
        >>> made.certificate.name_the_input_success <= 0.4
        True
    """
    refused = {"fn": "the record itself is published", "inputs": "the records take their place"}
    for name, reason in refused.items():
        if name in options:
            raise InputError(f"{name}= is not for published records: {reason}")
    if callable(records) and rows is not None and not isinstance(rows, (int, str)):
        raise InputError("rows of your own are places in a list that you give, not in one that is drawn here")
    if rows is not None and options.get("checkpoint") is not None:
        raise InputError("a table is published by the process that planned it: leave the checkpoint out")
    listed, columns = _listed(records)
    lines = options.pop("pool_public", ())
    if isinstance(lines, str):
        raise InputError("pool_public must be a list of text")
    made = plan_of(partial(_itself, columns=columns), inputs=listed, cap=cap, pool_public=(*lines, ITSELF), **options)
    if rows is None:
        return made
    inputs = made.run.worlds
    assert isinstance(inputs, GivenInputs)
    return TablePlan(made, rows_of(rows, inputs), columns)


def publish(records: Any, *, cap: CapLike, rows: int | str | Sequence[int] | None = None, **options: Any) -> Any:
    """`plan(...)` and `.release()` in one step: a record, or a table of them, with noise.

    Args:
        records: what a record may be, as for `plan`.
        cap: what may leak about which of them a published one is.
        rows: None for one record, or which rows a table has, as for `plan`.
        **options: further arguments of `leakcap.plan`.

    Returns:
        A `Release` of one record, or a `PublishedTable`.

    Raises:
        InputError: an argument cannot be used.
        OutputError: the records are not all of one form, or hold something that noise cannot cover.
        CapError: no noise keeps the cap.

    Guarantee: that of `plan`.

    Examples:
        >>> import numpy as np
        >>> import leakcap as lc
        >>> people = np.array([[23.0, 18.0], [31.0, 24.0], [45.0, 52.0], [62.0, 31.0]])
        >>> lc.local.publish(people, cap=lc.identification(0.4), seed=1).value.shape
        (2,)
        >>> lc.local.publish(people, cap=lc.identification(0.4), rows=10, seed=1).value.shape
        (10, 2)
    """
    return plan(records, cap=cap, rows=rows, **options).release()


class TablePlan:
    """A table of records whose noise is found and certified, not published yet. Custodian side."""

    _custodian_only = True

    def __init__(self, one: Plan, rows: PublishedRows, columns: tuple[Any, ...] | None) -> None:
        """Made by `leakcap.local.plan`.

        Args:
            one: the plan of a single row.
            rows: which records stand in the rows, or how they are drawn.
            columns: names of the columns, where records came as a table.
        """
        self._one, self._rows, self._columns = one, rows, columns
        self.certificate = _of_rows(one.certificate, rows)

    @property
    def noise(self) -> Noise:
        """The noise of each row."""
        return self._one.noise

    def summary(self) -> Summary:
        """Expected error of each column.

        Returns:
            The errors: of a row, as if it were published alone.
        """
        return replace(self._one.summary(), certificate=self.certificate)

    @proves("published-rows")
    def release(self) -> PublishedTable:
        """Draw the secret and the noise of every row, each by itself, and publish the table. Once.

        Returns:
            The table with its certificate.

        Raises:
            AlreadyReleased: it was published before.
            LeakcapError: this process was forked off after the plan was made.
        """
        widths = noise_widths(self.noise.output_deviations, self.noise.law)
        vectors = one_of_each(self._one, self._rows.secrets)
        value: Any = vectors.copy()
        if self._columns is not None:
            value = pd.DataFrame(value, columns=list(self._columns))
        elif vectors.shape[1:] != (form := np.shape(self._one.answer_of(vectors[0]))):
            value = value.reshape(len(vectors), *form)
        return PublishedTable(value, self.certificate, vectors, widths)

    def __reduce__(self) -> Any:
        raise LeakcapError("a plan is custodian-side and is not pickled; pickle the published table")

    def __repr__(self) -> str:
        return f"TablePlan(rows={self._rows.count}, kind={self.certificate.kind!r}, noise std={self.noise.std:.4g})"


@dataclass(frozen=True, eq=False)
class PublishedTable:
    """A published table and its certificate. Public side only: safe to pickle and to publish.

    Attributes:
        value: the rows with their noise, as an array or a table.
        certificate: what holds of each row, against whom, under which assumptions, with what confidence.
    """

    value: Any
    certificate: Certificate
    _vectors: Floats
    _widths: tuple[tuple[float, Floats], ...]

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Where the record of each row lies, per number, with at least this probability.

        Args:
            level: probability that the interval of a number holds, above 0 and below 1.

        Returns:
            Lower and upper ends, each `(rows, numbers)`.

        Raises:
            InputError: the level is higher than those kept.
        """
        return interval_at(self._vectors, self._widths, level)

    def __repr__(self) -> str:
        return f"PublishedTable(kind={self.certificate.kind!r}, rows={len(self._vectors)})\n{self.value!r}"


def _itself(record: Any, *, columns: tuple[Any, ...] | None) -> Any:
    return record if columns is None else pd.Series(record, index=list(columns))


def _listed(records: Any) -> tuple[Any, tuple[Any, ...] | None]:
    """The records, and the names of their columns; a table's rows become arrays, whose labels are not a record's."""
    if not hasattr(records, "iloc") or getattr(records, "ndim", 0) != 2:
        return records, None
    try:
        numbers = records.to_numpy(dtype=np.float64)
    except (TypeError, ValueError):
        numbers = None
    if numbers is None:
        raise InputError("records must be numbers: encode text or categories as numbers, column by column")
    return numbers, tuple(records.columns)


def _of_rows(one: Certificate, rows: PublishedRows) -> Certificate:
    """The certificate of one row, in words for a table."""
    return replace(
        one,
        design=f"{one.design}, {rows.design}",
        pool_public=(*one.pool_public, f"The number of rows: {rows.count:,}."),
        assumptions=(*one.assumptions, *rows.assumptions),
        not_promised=(*one.not_promised, *rows.not_promised(one)),
        theorems=(*one.theorems, "published-rows"),
    )
