"""Models of a file, by the names of `leakcap.estimators`: from columns and a target to a plan of a private fit."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from leakcap.errors import InputError
from leakcap.planning.plans import Plan
from leakcap.planning.released import Release
from leakcap.tables.questions import Question, ask

__all__ = ["MODELS", "ModelKind", "ModelQuestion", "ask_model", "setting"]

CLASSES, NUMBERS, NOTHING = "classes", "numbers", "nothing"


@dataclass(frozen=True)
class ModelKind:
    """What a model predicts, and under which promises it is released at once."""

    predicts: str
    bits: bool = True
    pool: bool = True


MODELS = {
    "LogisticRegression": ModelKind(CLASSES, pool=False),
    "LinearSVC": ModelKind(CLASSES, bits=False, pool=False),
    "GaussianNB": ModelKind(CLASSES),
    "NearestClassMean": ModelKind(CLASSES),
    "RandomForestClassifier": ModelKind(CLASSES),
    "Ridge": ModelKind(NUMBERS),
    "LinearRegression": ModelKind(NUMBERS),
    "KMeans": ModelKind(NOTHING, bits=False, pool=False),
    "PCA": ModelKind(NOTHING),
}


@dataclass(frozen=True, eq=False, kw_only=True)
class ModelQuestion(Question):
    """A model that is fitted to columns of a file. Custodian side."""

    kind: str
    settings: dict[str, Any] = field(default_factory=dict)
    target: Any = field(default=None, repr=False)
    _made: list[Any] = field(default_factory=list, repr=False)  # what makes a model of released numbers

    def planned(self, *, public: Sequence[str] = (), **options: Any) -> Plan:
        """The plan of the private fit."""
        from leakcap import estimators
        from leakcap.caps import PoolMembership
        from leakcap.estimators.base import planned

        cap, bounds = options.pop("cap"), options.pop("bounds", None)
        worlds, design = options.pop("worlds", "auto"), options.pop("design", "auto")
        of_pool = any(isinstance(one, PoolMembership) for one in cap)
        settings, known = dict(self.settings), MODELS[self.kind]
        options["public"] = (*self.public, *public)
        if of_pool:
            options["bounds"], settings = self._declared(bounds, settings)
        elif bounds:
            raise InputError(f"--bounds are for a pool cap on a {self.kind}: leave them out")
        else:
            options["design"] = ("bits" if known.bits else "worlds") if design == "auto" else design
            settings["worlds"] = worlds
        estimator = getattr(estimators, self.kind)(**settings, options=_given(options))
        whose = self.rows if self.unit is None else self.unit
        made, computation = planned(estimator, self.data, self.target, unit=whose, cap=cap)
        self._made.append(computation)
        return made

    def finished(self, released: Release) -> Release:
        """The release with the model in place of its numbers."""
        if released.not_rebuilt is not None:
            return released
        return replace(released, value=self._made[-1].build(released.value))

    @property
    def computation(self) -> Any:
        """What was planned last: how a model is made of released numbers, and what it is worth."""
        return self._made[-1]

    def _declared(self, bounds: Any, settings: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Under a pool cap nothing of the form may come from the data: ranges of the columns, and of the target."""
        ends = dict(bounds or {})
        goal = self.target if self.target is None else self.target.name
        if MODELS[self.kind].predicts == NUMBERS:
            settings["target_bounds"] = ends.pop(goal, None)
        elif MODELS[self.kind].predicts == CLASSES and "classes" not in settings:
            raise InputError(
                "under a pool cap classes must be known without the data: --setting \"classes=['no', 'yes']\""
            )
        return ends, settings


def ask_model(
    path: Path,
    kind: str,
    *,
    columns: Sequence[str] = (),
    target: str | None = None,
    settings: Sequence[str] = (),
    unit: str | None = None,
    missing: str = "refuse",
    read: Sequence[str] = (),
) -> ModelQuestion:
    """A model of a file: which columns it learns from, and which one it predicts.

    Args:
        path: a CSV or Parquet file.
        kind: one of `MODELS`.
        columns: names; all but the target and the unit if there are none.
        target: the column that it predicts; none for those that predict nothing.
        settings: of the estimator, such as `n_clusters=3`.
        unit: the column that says whose row it is.
        missing: "refuse", or "drop" to leave out rows with a missing value in any column used.
        read: how cells are written.

    Raises:
        InputError: what is asked cannot be read; the sentence says what to do.
    """
    wants = MODELS[kind].predicts != NOTHING
    if wants is (target is None):
        needs = "--target names the column that it predicts" if wants else "leave out --target"
        raise InputError(f"{kind} {'predicts a column' if wants else 'predicts nothing'}: {needs}")
    named = [name.strip() for word in columns for name in word.split(",") if name.strip()]
    if target in named:
        raise InputError(f"{target!r} is what is predicted: leave it out of --columns")
    asked = [*named, target] if named and target is not None else named
    fn = f"leakcap.estimators:{kind}"
    question = ask(path, fn, columns=asked, unit=unit, missing=missing, read=read)
    table = question.data
    goal = None if target is None else table[target]
    features = table if target is None else table.drop(columns=[target])
    of = f" of {target}" if target is not None else ""
    return ModelQuestion(
        fn=question.fn,
        data=features,
        unit=question.unit,
        names=None,
        title=f"{kind}{of} from {', '.join(map(str, features.columns))}",
        columns=tuple(map(str, features.columns)),
        public=question.public,
        notes=question.notes,
        rows=question.rows,
        kind=kind,
        settings=dict(setting(one) for one in settings),
        target=goal,
    )


def setting(word: str) -> tuple[str, Any]:
    """`n_clusters=3` as a name and a value: a number, a word, a list; `classes=no,yes` are two names."""
    name, sign, text = (part.strip() for part in word.partition("="))
    if not sign or not name.isidentifier():
        raise InputError("--setting must be NAME=VALUE, such as --setting n_clusters=3")
    if name in ("cap", "options", "worlds", "random_state", "pool_public", "strata"):
        raise InputError(f"{name} is no --setting: it has an option of its own, or none")
    try:
        return name, ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return name, _names(text) if name == "classes" else text


def _names(text: str) -> list[str]:
    found = [one.strip() for one in text.split(",")]
    if not all(found):
        raise InputError("classes are names with a comma between them, such as --setting classes=no,yes")
    return found


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None and value != ()}
