"""Fitted scikit-learn estimators as answers.

Floats are noised; everything else passes only if it is equal in all worlds. A released estimator is a fresh
clone with covered attributes set, never an object that was fitted in some world.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from leakcap.simulate.nodes import Array, Constant, Keys, Node, Number, Refused, Sequence, Vector
from leakcap.simulate.plain import plain_copy, plain_dtype, same

__all__ = ["PARAMETER", "describe_estimator", "is_estimator"]

LABELS = ("categories_", "classes", "classes_")
PARAMETER = "is a parameter"  # not an attribute: drop= cannot leave it out


def is_estimator(value: Any) -> bool:
    """Whether a value is a scikit-learn estimator, without importing scikit-learn for those who have none."""
    base = sys.modules.get("sklearn.base")
    return base is not None and isinstance(value, base.BaseEstimator) and not isinstance(value, type)


@dataclass(frozen=True, eq=False)
class Model(Node):
    kind: type
    parameters: tuple[tuple[str, Node], ...]
    attributes: tuple[tuple[str, Node], ...]

    def children(self) -> tuple[tuple[str, Node], ...]:
        return tuple((f".{name}", node) for name, node in self.parameters + self.attributes)

    def differs(self, other: Node) -> str | None:
        if isinstance(other, Model):
            mine, theirs = ([name for name, _ in one.parameters + one.attributes] for one in (self, other))
            if self.kind is not other.kind or mine != theirs:
                return "has different attributes in different worlds"
        return super().differs(other)

    def constants(self, path: str = "") -> Iterator[str]:
        """Fitted attributes, and parameters that could hold data; plain settings are code."""
        for name, node in self.parameters:
            if not isinstance(node, Constant) or isinstance(node.value, (np.ndarray, list, tuple, dict)):
                yield from node.constants(f"{path}.{name}")
        for name, node in self.attributes:
            yield from node.constants(f"{path}.{name}")

    def group_keys(self) -> Iterator[Keys]:
        """The classes, and the categories of an encoder."""
        for name, node in self.attributes:
            if name in ("classes_", "categories_") and isinstance(node, Constant):
                sets = node.value if isinstance(node.value, list) else [node.value]
                yield from ((None, tuple(np.ravel(one).tolist())) for one in sets)
        yield from super().group_keys()

    def build(self, numbers: Vector) -> Any:
        from sklearn.base import clone

        built = self.build_children(numbers)
        cut = len(self.parameters)
        names = [name for name, _ in self.parameters]
        # clone() unfits whatever estimators the parameters hold; fitted ones (a Pipeline's steps) are put back.
        fresh = clone(self.kind(**dict(zip(names, built[:cut], strict=True))))
        for name, node in zip(names, built[:cut], strict=True):
            if _holds_estimator(node):
                setattr(fresh, name, node)
        for (name, _), value in zip(self.attributes, built[cut:], strict=True):
            setattr(fresh, name, value)
        return fresh


@dataclass(frozen=True, eq=False)
class Bare(Model):
    """A part of an estimator that is none itself and has nothing but attributes."""

    def build(self, numbers: Vector) -> Any:
        fresh: Any = object.__new__(self.kind)
        for (name, _), value in zip(self.attributes, self.build_children(numbers), strict=True):
            setattr(fresh, name, value)
        return fresh


def _is_bare(value: Any) -> bool:
    """scikit-learn's calibrated classifiers: no estimators, no compiled state."""
    return f"{type(value).__module__}.{type(value).__qualname__}" == "sklearn.calibration._CalibratedClassifier"


def describe_bare(value: Any, rows: int, drop: frozenset[str], leaves: list[Vector]) -> Node:
    """The form of such a part; its float attributes go to `leaves`."""
    attributes = sorted((name, part) for name, part in vars(value).items() if name not in drop)
    nodes = ((name, _attribute(name, part, rows=rows, drop=drop, leaves=leaves)) for name, part in attributes)
    return Bare(type(value), (), tuple(nodes))


def _holds_estimator(value: Any) -> bool:
    return (
        is_estimator(value)
        or _is_bare(value)
        or (isinstance(value, (list, tuple)) and any(_holds_estimator(one) for one in value))
    )


def describe_estimator(estimator: Any, rows: int, drop: frozenset[str], leaves: list[Vector]) -> Node:
    """An estimator's form; its float attributes go to `leaves`."""
    parameters = estimator.get_params(deep=False)
    attributes = {name: value for name, value in vars(estimator).items() if name not in parameters}
    return Model(
        type(estimator),
        tuple((name, _parameter(value, rows, drop, leaves)) for name, value in sorted(parameters.items())),
        tuple(
            (name, _attribute(name, value, rows=rows, drop=drop, leaves=leaves))
            for name, value in sorted(attributes.items())
            if name not in drop
        ),
    )


def _parameter(value: Any, rows: int, drop: frozenset[str], leaves: list[Vector]) -> Node:
    if is_estimator(value):
        return describe_estimator(value, rows, drop, leaves)
    if isinstance(value, (list, tuple)) and _holds_estimator(value):
        return Sequence(type(value), tuple(_parameter(one, rows, drop, leaves) for one in value))
    node = _constant(value, f"{PARAMETER}: give the estimator the same in every world")
    return Refused(f"{PARAMETER} of an unknown kind: use a plain value") if isinstance(node, Refused) else node


def _attribute(name: str, value: Any, rows: int, drop: frozenset[str], leaves: list[Vector]) -> Node:
    if is_estimator(value):
        return describe_estimator(value, rows, drop, leaves)
    if name in LABELS:  # even where they are written as floats: noise would make others of them
        return _constant(value, "holds the labels of classes")
    if isinstance(value, np.ndarray) and rows in value.shape and value.ndim and value.dtype.kind != "O":
        return Refused("has an entry for every row")
    if isinstance(value, (float, np.floating)) and not name.startswith("_"):
        leaves.append(np.array([value], dtype=np.float64))
        return Number()
    if isinstance(value, np.ndarray) and value.dtype.kind == "f" and not name.startswith("_"):
        leaves.append(value.astype(np.float64).ravel())
        return Array(value.shape, plain_dtype(value.dtype))
    if isinstance(value, (list, tuple)) and (any(map(_is_covered, value)) or _holds_estimator(value)):
        return Sequence(type(value), tuple(_attribute(name, one, rows=rows, drop=drop, leaves=leaves) for one in value))
    if _is_bare(value):
        return describe_bare(value, rows, drop, leaves)
    private = name.startswith("_") and isinstance(value, (float, np.floating, np.ndarray))
    return _constant(value, "is private to the estimator (leading underscore)" if private else "is not a float")


def _is_covered(value: Any) -> bool:
    return is_estimator(value) or (isinstance(value, np.ndarray) and value.dtype.kind == "f")


def _constant(value: Any, why: str = "is not a float") -> Node:
    # `same` knows the plain kinds; what it cannot compare with itself it cannot compare between worlds.
    # A copy, because an estimator that is fitted again changes its own arrays in place.
    return Constant(plain_copy(value), why) if same(value, value) else Refused("is a compiled or unknown object")
