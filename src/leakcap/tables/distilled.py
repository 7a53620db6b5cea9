"""A classifier of a file whose votes alone leave: rows to learn from, public rows beside them, and models by name."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError
from leakcap.ground.arrays import Bools
from leakcap.tables.files import listed, open_table
from leakcap.tables.functions import load
from leakcap.tables.models import setting
from leakcap.tables.questions import ask
from leakcap.tables.reading import Reading

__all__ = ["BOOSTED", "DISTILLED", "DistilledQuestion", "ask_distilled", "public_people"]

DISTILLED = "Distilled"
BOOSTED = "sklearn.ensemble:HistGradientBoostingClassifier"
OWN = ("blocks", "votes", "classes")  # settings of the distillation; others are the teacher's
HASHED = 2.0**64


@dataclass(frozen=True, eq=False, kw_only=True)
class DistilledQuestion:
    """A teacher, what it is taught, and public rows for it to vote on. Custodian side."""

    features: Any = field(repr=False)
    target: Any = field(repr=False)
    unit: npt.NDArray[Any] | None = field(repr=False)
    queries: Any = field(repr=False)
    teacher: Any
    student: Any
    settings: dict[str, Any]
    title: str
    notes: tuple[str, ...]

    def model(self, cap: Any, **more: Any) -> Any:
        """What is to be fitted, under a cap."""
        from leakcap.estimators import Distilled

        return Distilled(self.teacher, self.student, queries=self.queries, cap=cap, **self.settings, **more)

    def right_without_noise(self) -> float:
        """How often a teacher of one half of the rows is right about the other: custodian side."""
        from sklearn.base import clone

        half = np.random.default_rng(0).random(len(self.target)) < 0.5
        taught = clone(self.teacher).fit(self.features[half].to_numpy(), self.target[half].to_numpy())
        return float(np.mean(taught.predict(self.features[~half].to_numpy()) == self.target[~half].to_numpy()))

    def fitted(self, cap: Any, **more: Any) -> Any:
        """The same, fitted."""
        return self.model(cap, **more).fit(self.features, self.target, unit=self.unit)


def ask_distilled(
    path: Path,
    *,
    target: str | None,
    columns: Sequence[str] = (),
    unit: str | None = None,
    missing: str = "refuse",
    read: Sequence[str] = (),
    public_rows: Path | None = None,
    public_share: float | None = None,
    teacher: str = BOOSTED,
    settings: Sequence[str] = (),
) -> DistilledQuestion:
    """Any classifier of a file, to be released by its votes on public rows.

    Args:
        path: a CSV or Parquet file.
        target: the column that it predicts.
        columns: names of the features, all numbers; all but the target and the unit if there are none.
        unit: the column that says whose row it is.
        missing: "refuse", or "drop" to leave out rows with a missing value in any column used.
        read: how cells are written.
        public_rows: a file with the same features, and nobody's secret.
        public_share: in place of it, the share of the people of `path` whose features are declared public: who they
            are follows from their own names alone, and nothing is learnt from them.
        teacher: `module:class` of a classifier.
        settings: of it, such as `max_iter=20`; or of the distillation: `blocks`, `votes`, `classes=no,yes`.

    Raises:
        InputError: what is asked cannot be read; the sentence says what to do.
    """
    if target is None:
        raise InputError("a distilled classifier predicts a column: --target names it")
    if (public_rows is None) is (public_share is None):
        raise InputError(
            "teachers vote on public rows: --public-rows names a file with the same features, or --public-share says "
            "for which share of the people they are public; give one of the two"
        )
    named = [name.strip() for word in columns for name in word.split(",") if name.strip()]
    if target in named:
        raise InputError(f"{target!r} is what is predicted: leave it out of --columns")
    question = ask(
        path,
        f"leakcap.estimators:{DISTILLED}",
        columns=[*named, target] if named else [],
        unit=unit,
        missing=missing,
        read=read,
    )
    rows, whose = question.data, question.unit
    if target not in rows:
        raise InputError(f"there is no column {target!r}: --target names the one that is predicted")
    if unit is None and question.rows is not None and len(question.rows) != 1 + int(question.rows[-1]):
        raise InputError(
            "rows with missing values cannot be left out where every row is a person of its own: name --unit, or fill "
            "them"
        )
    features, goal = rows.drop(columns=[target]), rows[target]
    names = list(features.columns)
    notes = list(question.notes)
    if public_rows is not None:
        queries = open_table(public_rows, Reading.of(read)).read(names)
        if missing == "drop":
            queries = queries.dropna()
        notes.append(f"{len(queries):,} public rows of another file are voted on")
    else:
        assert public_share is not None
        if whose is None:
            raise InputError("--public-share is of people, by their names: --unit says whose row it is")
        apart = public_people(whose, public_share)
        queries, features, goal, whose = features[apart], features[~apart], goal[~apart], whose[~apart]
        notes.append(f"{apart.sum():,} rows are public, as declared, and voted on; {len(goal):,} are learnt from")
    given = dict(setting(one) for one in settings)
    made = load(teacher)
    return DistilledQuestion(
        features=features.reset_index(drop=True),
        target=goal.reset_index(drop=True),
        unit=whose,
        queries=queries.reset_index(drop=True),
        teacher=_made(made, {name: value for name, value in given.items() if name not in OWN}),
        student=_made(made, {}),
        settings={name: value for name, value in given.items() if name in OWN},
        title=f"{made.__name__} of {target} from {listed(names)}, distilled",
        notes=tuple(notes),
    )


def public_people(unit: npt.ArrayLike, share: float) -> Bools:
    """Which rows are of people whose features are declared public: about such a share, by their names alone.

    Whether somebody is among them does not depend on who else is there, nor on any row.

    Args:
        unit: whose row it is, for each row.
        share: above 0 and below 1.

    Returns:
        `(rows,)`, True for rows that are public.

    Examples:
        >>> public_people(["ann", "bob", "ann", "zoe"], 0.5).tolist()
        [True, False, True, False]
    """
    if not 0 < share < 1:
        raise InputError("the public share must be above 0 and below 1: the people whose features are public")
    labels, places = np.unique(np.asarray(unit), return_inverse=True)
    prints = [hashlib.sha256(b"public " + str(label).encode()).digest()[:8] for label in labels.tolist()]
    return (np.array([int.from_bytes(one, "big") for one in prints]) < share * HASHED)[places]


def _made(kind: Any, settings: dict[str, Any]) -> Any:
    try:
        found = kind(**settings)
    except TypeError:
        found = None
    if hasattr(found, "fit") and hasattr(found, "predict"):
        return found
    raise InputError(
        "--teacher is module:class of a classifier, which takes each --setting by its name, such as "
        f"--teacher {BOOSTED} --setting max_iter=20"
    )
