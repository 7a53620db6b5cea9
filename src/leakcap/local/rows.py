"""Which records stand in the rows of a published table: drawn by themselves, held, or all of them in a secret order."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from leakcap.certificates.facts import IN_SECRET_ORDER
from leakcap.certificates.release import Certificate
from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.proofs import proves
from leakcap.noise import Randomness
from leakcap.worlds import GivenInputs

__all__ = ["ALL", "PublishedRows", "rows_of", "surplus_of_an_order"]

ALL = "all"
MAX_ROWS = 2**20


class PublishedRows(Protocol):
    """How rows come about, and what is said of it."""

    @property
    def count(self) -> int: ...
    @property
    def design(self) -> str: ...
    @property
    def assumptions(self) -> tuple[str, ...]: ...
    def not_promised(self, row: Certificate) -> tuple[str, ...]: ...
    def secrets(self, randomness: Randomness) -> list[int]:
        """The place in the list of each row's record."""
        ...


@dataclass(frozen=True)
class DrawnRows:
    """Each drawn here by the prior, by itself."""

    inputs: GivenInputs
    count: int

    @property
    def design(self) -> str:
        return "rows drawn by themselves"

    @property
    def assumptions(self) -> tuple[str, ...]:
        return ("Every row was drawn here by the prior, by itself, and has noise of its own.",)

    def not_promised(self, row: Certificate) -> tuple[str, ...]:
        return (_several(self.count),)

    @proves("published-rows")
    def secrets(self, randomness: Randomness) -> list[int]:
        return [self.inputs.drawn(randomness.below(self.inputs.numbers)) for _ in range(self.count)]


@dataclass(frozen=True, repr=False)
class HeldRows:
    """Rows that the custodian holds, by their places in the list."""

    places: tuple[int, ...]

    @property
    def count(self) -> int:
        return len(self.places)

    @property
    def design(self) -> str:
        return "rows held by the custodian"

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (
            "The rows are the custodian's own. To the attacker each is a draw by the prior, whatever the other rows "
            "are: rows of one person, of relatives or of one moment are not.",
        )

    def not_promised(self, row: Certificate) -> tuple[str, ...]:
        return (_several(self.count),)

    def secrets(self, randomness: Randomness) -> list[int]:
        return list(self.places)


@dataclass(frozen=True)
class ShuffledRows:
    """Every record of the list once, in an order that is secret."""

    count: int

    @property
    def design(self) -> str:
        return f"all of them {IN_SECRET_ORDER}"

    @property
    def assumptions(self) -> tuple[str, ...]:
        return ("The order of the rows was drawn here, all orders alike; every row has noise of its own.",)

    def not_promised(self, row: Certificate) -> tuple[str, ...]:
        told = math.ceil(1e4 * (row.mutual_information + surplus_of_an_order(self.count)) + 1e-9) / 1e4
        return (
            "The figures are about a row that is seen alone. No record stands in two rows, so that the others tell "
            f"about it, too: the whole table tells at most {told:.4f} nats about which record stands in a given row.",
            "That a record is in the table is not hidden: all of the list are.",
        )

    @proves("published-rows")
    def secrets(self, randomness: Randomness) -> list[int]:
        return [int(place) for place in randomness.bits().permutation(self.count)]


@proves("published-rows")
def surplus_of_an_order(n: int) -> float:
    """What the other rows add at most, in nats, to what a row tells about its record: log n - log(n!)/n, below 1."""
    return math.log(n) - math.lgamma(n + 1) / n


def rows_of(asked: Any, inputs: GivenInputs) -> PublishedRows:
    """The rows that are asked for; an InputError that quotes no place."""
    if isinstance(asked, str):
        if asked != ALL:
            raise InputError("rows must be a number of rows, places in the list of records, or 'all'")
        if inputs.chances is not None:
            raise InputError("rows='all' publishes every record once: leave prior out, no row is likelier than another")
        return ShuffledRows(inputs.m)
    if isinstance(asked, (int, np.integer)) and not isinstance(asked, bool):
        return DrawnRows(inputs, _bounded(checks.count(rows=int(asked))))
    try:
        places = np.asarray(asked)
    except (TypeError, ValueError):
        places = np.empty(0)
    if places.ndim != 1 or places.dtype.kind not in "iu" or not len(places):
        raise InputError("rows must be a number of rows, places in the list of records (whole numbers), or 'all'")
    _bounded(len(places))
    if places.min() < 0 or places.max() >= inputs.m:
        raise InputError(f"a place of rows= is outside of the list: places are 0 to {inputs.m - 1:,}")
    return HeldRows(tuple(int(place) for place in places))


def _bounded(count: int) -> int:
    if count > MAX_ROWS:
        raise InputError(f"{MAX_ROWS:,} rows at most")
    return count


def _several(count: int) -> str:
    return (
        "The figures are about each row by itself. What is asked about several rows at once (whether a record stands "
        f"anywhere, which rows are alike) is answered better: {count:,} rows tell up to {count:,} times as much."
    )
