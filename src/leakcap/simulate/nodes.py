"""The form of an answer as a tree of `Node`s: what is a number to be noised, and what must be equal in every world.

A tree holds no numbers from the data. Trees of all worlds must agree, because a shape, a key or a label that differs
would name the world. A node builds a fresh value of its form from released numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.errors import OutputError
from leakcap.simulate.plain import own_labels, plain_copy, same

__all__ = [
    "Array",
    "Constant",
    "Difference",
    "Keys",
    "Mapping",
    "Node",
    "Number",
    "Record",
    "Refused",
    "Sequence",
    "Table",
    "Vector",
]

Vector = npt.NDArray[np.float64]
Difference = tuple[str, str]
Keys = tuple[Any, tuple[Any, ...]]  # the name of an index, or None, and its labels


@dataclass(frozen=True, eq=False)
class Node:
    """One part of an answer."""

    def children(self) -> tuple[tuple[str, Node], ...]:
        return ()

    def size(self) -> int:
        """How many numbers below this node are released with noise."""
        return sum(child.size() for _, child in self.children())

    def differs(self, other: Node) -> str | None:
        """Why two worlds' nodes are not of one form (children apart), or None."""
        return None if type(self) is type(other) else "is of different kinds in different worlds"

    def differences(self, other: Node, path: str = "") -> Iterator[Difference]:
        """Every place at which two worlds' answers are not of one form."""
        reason = self.differs(other)
        if reason:
            yield path, reason
            return
        for (name, mine), (_, theirs) in zip(self.children(), other.children(), strict=True):
            yield from mine.differences(theirs, path + name)

    def refusals(self, path: str = "") -> Iterator[Difference]:
        """Every part that can never be released."""
        for name, child in self.children():
            yield from child.refusals(path + name)

    def constants(self, path: str = "") -> Iterator[str]:
        """Every part that passes without noise because it is equal in all worlds."""
        for name, child in self.children():
            yield from child.constants(path + name)

    def group_keys(self) -> Iterator[Keys]:
        """Labels by which groups may go, set by set: they leave as they are."""
        for _, child in self.children():
            yield from child.group_keys()

    def build(self, numbers: Vector) -> Any:
        """A fresh value of this form."""
        raise NotImplementedError

    def build_children(self, numbers: Vector) -> list[Any]:
        built, start = [], 0
        for _, child in self.children():
            stop = start + child.size()
            built.append(child.build(numbers[start:stop]))
            start = stop
        return built

    def labels(self, path: str = "") -> Iterator[str]:
        """A name for each number, in order, for people to read."""
        for name, child in self.children():
            if isinstance(child, Sequence) and child.nodes and all(_named(node)[0] for node in child.nodes):
                yield from child.labels(path)  # the steps of a pipeline have names of their own
            else:
                yield from child.labels(_below(path, name[1:]) if name.startswith(".") else path + name)


@dataclass(frozen=True, eq=False)
class Number(Node):
    def size(self) -> int:
        return 1

    def build(self, numbers: Vector) -> float:
        return float(numbers[0])

    def labels(self, path: str = "") -> Iterator[str]:
        yield path or "value"


@dataclass(frozen=True, eq=False)
class Array(Node):
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def size(self) -> int:
        return math.prod(self.shape)

    def differs(self, other: Node) -> str | None:
        if not isinstance(other, Array):
            return super().differs(other)
        if self.shape != other.shape:
            return (
                f"has shape {self.shape} in one world and {other.shape} in another; return a fixed size in a "
                "canonical order (for example one entry for every category known beforehand)"
            )
        return None

    def build(self, numbers: Vector) -> npt.NDArray[Any]:
        return numbers.reshape(self.shape).astype(self.dtype)

    def labels(self, path: str = "") -> Iterator[str]:
        for index in np.ndindex(self.shape):
            yield f"{path}[{', '.join(map(str, index))}]"


@dataclass(frozen=True, eq=False)
class Constant(Node):
    """Something that is not noised and therefore must be equal in all worlds."""

    value: Any
    why: str = "is not a float"

    def differs(self, other: Node) -> str | None:
        if isinstance(other, Constant) and same(self.value, other.value):
            return None
        return f"varies between worlds and {self.why}"

    def constants(self, path: str = "") -> Iterator[str]:
        yield path

    def build(self, numbers: Vector) -> Any:
        return plain_copy(self.value)


@dataclass(frozen=True, eq=False)
class Refused(Node):
    reason: str

    def refusals(self, path: str = "") -> Iterator[Difference]:
        yield path, self.reason


@dataclass(frozen=True, eq=False)
class Mapping(Node):
    keys: tuple[Any, ...]
    nodes: tuple[Node, ...]

    def children(self) -> tuple[tuple[str, Node], ...]:
        # Keys may come from the data, so places are named by position, never by key.
        return tuple((f"[item {i}]", node) for i, node in enumerate(self.nodes))

    def differs(self, other: Node) -> str | None:
        if isinstance(other, Mapping) and not same(self.keys, other.keys):
            return (
                "has different keys, or keys in another order, in different worlds; return all keys known "
                "beforehand in a canonical order (for example sorted)"
            )
        return super().differs(other)

    def group_keys(self) -> Iterator[Keys]:
        yield None, self.keys
        yield from super().group_keys()

    def build(self, numbers: Vector) -> dict[Any, Any]:
        return dict(zip(self.keys, self.build_children(numbers), strict=True))

    def labels(self, path: str = "") -> Iterator[str]:
        for key, node in zip(self.keys, self.nodes, strict=True):
            yield from node.labels(_below(path, key))


@dataclass(frozen=True, eq=False)
class Sequence(Node):
    kind: type
    nodes: tuple[Node, ...]

    def children(self) -> tuple[tuple[str, Node], ...]:
        return tuple((f"[{i}]", node) for i, node in enumerate(self.nodes))

    def differs(self, other: Node) -> str | None:
        if isinstance(other, Sequence) and (self.kind is not other.kind or len(self.nodes) != len(other.nodes)):
            return "has different lengths in different worlds; return a fixed number of parts in a canonical order"
        return super().differs(other)

    def labels(self, path: str = "") -> Iterator[str]:
        for place, node in enumerate(self.nodes):
            name, inner = _named(node)
            yield from inner.labels(f"{path}[{place}]" if name is None else _below(path, name))

    def build(self, numbers: Vector) -> Any:
        built = self.build_children(numbers)
        return self.kind(*built) if hasattr(self.kind, "_fields") else self.kind(built)


@dataclass(frozen=True, eq=False)
class Record(Node):
    """A dataclass instance."""

    kind: type
    nodes: tuple[tuple[str, Node], ...]

    def children(self) -> tuple[tuple[str, Node], ...]:
        return tuple((f".{name}", node) for name, node in self.nodes)

    def differs(self, other: Node) -> str | None:
        if isinstance(other, Record) and self.kind is not other.kind:
            return "is of different kinds in different worlds"
        return super().differs(other)

    def build(self, numbers: Vector) -> Any:
        built = zip((name for name, _ in self.nodes), self.build_children(numbers), strict=True)
        return self.kind(**dict(built))


@dataclass(frozen=True, eq=False)
class Table(Node):
    """A pandas DataFrame or Series of numbers. Its labels leave too, so they must agree in all worlds."""

    kind: type
    labels_: tuple[Any, ...]
    shape: tuple[int, ...]

    def size(self) -> int:
        return math.prod(self.shape)

    def differs(self, other: Node) -> str | None:
        if not isinstance(other, Table) or self.kind is not other.kind:
            return "is of different kinds in different worlds"
        if self.shape != other.shape or not all(
            same_labels(a, b) for a, b in zip(self.labels_, other.labels_, strict=True)
        ):
            return (
                "has different rows, columns or labels in different worlds; reindex it to all labels known "
                "beforehand, in a canonical order"
            )
        return None

    def group_keys(self) -> Iterator[Keys]:
        for axis in self.labels_[: len(self.shape)]:
            for place, name in enumerate(axis.names):
                yield name, tuple(axis.get_level_values(place).unique())

    def build(self, numbers: Vector) -> Any:
        values = numbers.reshape(self.shape).copy()
        rows = _rebuilt(self.labels_[0])
        if len(self.shape) == 1:
            return self.kind(values, index=rows, name=self.labels_[1])
        return self.kind(values, index=rows, columns=_rebuilt(self.labels_[1]))

    def labels(self, path: str = "") -> Iterator[str]:
        for row in self.labels_[0]:
            if len(self.shape) == 1:
                yield _below(path, row)
            else:
                yield from (_below(_below(path, row), column) for column in self.labels_[1])


def same_labels(a: Any, b: Any) -> bool:
    """Whether two tables have the same labels, and the same names of them."""
    if not hasattr(a, "equals"):
        return same(a, b)
    return type(a) is type(b) and bool(a.equals(b)) and same(list(a.names), list(b.names))


def _rebuilt(index: Any) -> Any:
    """Labels of their own for every table that leaves, also where they were stored by an earlier version."""
    labels = own_labels(index)
    if labels is None:
        raise OutputError("the labels of a table are no plain values; use text or numbers")
    return labels


def _named(node: Node) -> tuple[str | None, Node]:
    """A pair of a name and something goes by its name: the steps of a pipeline."""
    if isinstance(node, Sequence) and len(node.nodes) == 2:
        first, second = node.nodes
        if isinstance(first, Constant) and isinstance(first.value, str):
            return first.value, second
    return None, node


def _below(path: str, name: Any) -> str:
    text = ", ".join(map(str, name)) if isinstance(name, tuple) else str(name)  # one for each level of an index
    return f"{path}, {text}" if path else text
