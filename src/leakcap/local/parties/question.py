"""The question that parties agree on: what is asked of all rows together, within which bounds, under which cap.

Every party holds the same question; nothing in it depends on anybody's rows. Its digest is compared before anything
else is sent.
"""

from __future__ import annotations

import hashlib
import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from leakcap.caps import Cap, membership, pool_membership
from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats
from leakcap.kernels.bounded import Bounded, Declared
from leakcap.kernels.contributions import bounded_contributions
from leakcap.stats.cells import bin_edges, one_table
from leakcap.stats.plain import covariance, histogram, mean
from leakcap.worlds import Units

__all__ = ["ASKED", "JointQuestion"]

ASKED = ("mean", "histogram", "covariance", "ridge")
DESIGNS = ("pool", "bits")
MAX_PARTIES = 16
MAX_ROWS = 2**24  # of a party, where coins select rows
MAX_FILE = 2**20  # bytes


@dataclass(frozen=True)
class JointQuestion:
    """What is asked of the rows of all parties together.

    Attributes:
        ask: "mean", "histogram", "covariance" or "ridge".
        columns: names of the columns, in order.
        bounds: of each column (and of the target), `(low, high)`, chosen without looking at anybody's rows. What lies
            outside is cut to them.
        cap: the most success at guessing about one person: whether they are in the data at all under "pool", whether
            they took part under "bits".
        design: "pool", everybody takes part; or "bits", everybody takes part or not by a coin that no party learns.
        parties: how many parties there are, from 3 on.
        threshold: how many of them may put together what they see; fewer than half.
        rows: under "bits", the most rows that a party has: everybody sends as much as if it had so many.
        edges: of a histogram's bins, for all columns alike.
        target: column that a ridge regression predicts.
        alpha: penalty of a ridge regression.
    """

    ask: str
    columns: tuple[str, ...]
    bounds: Mapping[str, tuple[float, float]]
    cap: float = 0.55
    design: str = "pool"
    parties: int = 3
    threshold: int = 1
    rows: int | None = None
    edges: tuple[float, ...] | None = None
    target: str | None = None
    alpha: float = 1.0

    def __post_init__(self) -> None:
        checks.choice(ASKED, ask=self.ask)
        checks.choice(DESIGNS, design=self.design)
        object.__setattr__(self, "columns", _names(self.columns))
        if self.target is not None and not isinstance(self.target, str):
            raise InputError("target is the name of a column")
        needed = self.columns if self.target is None else (*self.columns, self.target)
        self._refuse_unfit(needed)
        object.__setattr__(self, "bounds", {} if self.ask == "histogram" else _bounds(self.bounds, needed))
        object.__setattr__(self, "cap", float(checks.probability(cap=self.cap)))
        object.__setattr__(self, "alpha", float(checks.positive(alpha=self.alpha)))
        if self.edges is not None:
            object.__setattr__(self, "edges", tuple(map(float, bin_edges(self.edges))))
        checks.count(at_least=3, parties=self.parties)
        checks.count(at_least=1, threshold=self.threshold)
        if self.parties > MAX_PARTIES:
            raise InputError(f"up to {MAX_PARTIES} parties can compute together")
        if 2 * self.threshold >= self.parties:
            raise InputError("threshold must be less than half of the parties: a majority can open everything")
        if self.rows is not None and checks.count(at_least=1, rows=self.rows) > MAX_ROWS:
            raise InputError(f"rows may be up to {MAX_ROWS:,}")

    def _refuse_unfit(self, needed: tuple[str, ...]) -> None:
        if len(set(needed)) < len(needed):
            raise InputError("every column is named once, the target apart from the columns")
        if (self.ask == "ridge") != (self.target is not None):
            raise InputError("a ridge regression has a target, and nothing else has one")
        if (self.ask == "histogram") != (self.edges is not None):
            raise InputError("a histogram has edges, and nothing else has them")
        if (self.design == "bits") != (self.rows is not None):
            raise InputError(
                "rows= is the most rows that a party has, which everybody then sends alike: design='bits' needs it, "
                "and design='pool' has no use for it"
            )

    @classmethod
    def read(cls, path: str | Path) -> JointQuestion:
        """A question from a JSON or TOML file.

        Args:
            path: a file that ends in `.json` or `.toml`, with the attributes of a question by name.

        Returns:
            The question.

        Raises:
            InputError: the file is not to be read, or is no question.
        """
        file = Path(path)
        try:
            if file.stat().st_size > MAX_FILE:
                raise InputError("a question is a small file: this one is not")
            text = file.read_text("utf-8")
            given = tomllib.loads(text) if file.suffix.lower() == ".toml" else json.loads(text)
        except OSError:
            raise InputError(f"{file.name} cannot be read") from None
        except (UnicodeDecodeError, ValueError):
            raise InputError(f"{file.name} is neither JSON nor TOML that can be read: end its name in one") from None
        return cls.of(given)

    @classmethod
    def of(cls, given: Any) -> JointQuestion:
        """A question from entries by name.

        Args:
            given: a mapping of the attributes.

        Returns:
            The question.

        Raises:
            InputError: an entry is missing, unknown, or not of its kind.
        """
        if not isinstance(given, Mapping):
            raise InputError("a question has entries by name: ask, columns, bounds, cap and others")
        known = {one.name for one in fields(cls)}
        unknown = sorted(str(name) for name in given if name not in known)
        if unknown:
            raise InputError(f"a question has no entry of the name {unknown[0]!r}; it has {', '.join(sorted(known))}")
        if "ask" not in given or "columns" not in given:
            raise InputError("a question says what to ask and of which columns: ask = 'mean', columns = ['age']")
        return cls(**{"bounds": {}, **given})

    def to_json(self) -> str:
        """The question in a stable form, from which its digest is made.

        Returns:
            JSON text.
        """
        return json.dumps(asdict(self), sort_keys=True)

    @property
    def digest(self) -> bytes:
        """Of the question: parties compare it before they send anything else."""
        return hashlib.sha256(self.to_json().encode()).digest()

    @property
    def read_columns(self) -> tuple[str, ...]:
        """The columns that a party's table must have."""
        return self.columns if self.target is None else (*self.columns, self.target)

    @property
    def caps(self) -> tuple[Cap, ...]:
        """The cap that the answer keeps, of its kind."""
        return (pool_membership(self.cap) if self.design == "pool" else membership(self.cap),)

    def brought(self, table: Floats) -> Bounded:
        """What every row of a table brings, within the bounds.

        Args:
            table: a party's rows, columns as in `read_columns`.

        Returns:
            What each row brings to the sums.
        """
        cells = one_table((table,))
        units = Units(len(cells), len(cells))
        low, high = ([self.bounds[name][end] for name in self.columns] if self.bounds else [] for end in (0, 1))
        declared = Declared((np.array(low), np.array(high)), quiet=True)
        if self.ask == "ridge":
            # Estimators take long to import, and other questions need none.
            from leakcap.estimators.regression_sums import solved
            from leakcap.estimators.sums import ProductSums

            assert self.target is not None
            sums = ProductSums(
                partial(solved, alpha=self.alpha, intercept=True), self.columns, self.bounds[self.target]
            )
            return sums.bounded((cells[:, :-1], cells[:, -1:]), units, declared)
        if self.ask == "histogram":
            return bounded_contributions(partial(histogram, edges=self.edges or ()), (cells,), units, declared)
        asked = {"mean": mean, "covariance": covariance}[self.ask]
        return bounded_contributions(asked, (cells,), units, declared)


def _names(given: Any) -> tuple[str, ...]:
    listed = isinstance(given, (list, tuple)) and len(given) > 0
    if not listed or not all(isinstance(name, str) and name for name in given):
        raise InputError("columns is a list of names, at least one")
    return tuple(given)


def _bounds(given: Any, names: tuple[str, ...]) -> dict[str, tuple[float, float]]:
    if not isinstance(given, Mapping) or set(given) != set(names):
        raise InputError("bounds has (low, high) for every column that is asked about, by its name, and for no other")
    return {name: _ends(given[name]) for name in names}


def _ends(pair: Any) -> tuple[float, float]:
    try:
        low, high = map(float, pair)
    except (TypeError, ValueError):
        low, high = math.nan, math.nan
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InputError("bounds are finite, (low, high) with low below high")
    return low, high
