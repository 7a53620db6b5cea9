"""Canaries: labels made wrong on purpose, to see later whether a model tells which. Custodian side."""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.custody.private_files import read_private, write_private
from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Ints
from leakcap.ground.json_record import is_number, is_words
from leakcap.ground.proofs import proves
from leakcap.labels.mechanisms.classes import Classes, column
from leakcap.noise.entropy import OperatingSystem, Randomness, Seeded

__all__ = ["CanaryKey", "plant"]

FORMAT = "leakcap canaries 1"
LISTS = ("rows", "planted", "decoys", "truths")


@dataclass(frozen=True, eq=False, repr=False)
class CanaryKey:
    """Which labels were planted, and what else they might have been. Custodian side: whoever has it needs no attack.

    It also holds the true labels of the canaries, and of nobody else. Its `repr` shows sizes alone.

    Attributes:
        labels: number of labels, canaries among them.
        classes: names of the classes, in the order of the columns of scores.
        rows: places of the canaries, rising.
        planted: class that was planted, as a place in `classes`.
        decoys: another class that might have been planted as well.
        truths: class that was there before.
    """

    labels: int
    classes: tuple[Any, ...]
    rows: Ints = field(repr=False)
    planted: Ints = field(repr=False)
    decoys: Ints = field(repr=False)
    truths: Ints = field(repr=False)

    @property
    def count(self) -> int:
        """Number of canaries."""
        return len(self.rows)

    @property
    def candidates(self) -> int:
        """How many labels each canary might have got, each as likely as the others."""
        return max(2, len(self.classes) - 1)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the key to a JSON file of its owner's alone; an error if there is one already.

        Args:
            path: where to write it.

        Raises:
            InputError: there is a file already, or it cannot be written.
        """
        held = {"format": FORMAT, "labels": self.labels, "classes": list(self.classes)}
        held |= {name: getattr(self, name).tolist() for name in LISTS}
        try:
            write_private(Path(path), json.dumps(held).encode(), exclusive=True)
            return
        except FileExistsError:
            pass
        raise InputError(f"{path} is there already: a key is never overwritten, the canaries are lost without it")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> CanaryKey:
        """The key in a file; one that others may read or have written is refused.

        Args:
            path: a file that `save` wrote.

        Returns:
            The key.

        Raises:
            InputError: it is no key of canaries, or not its owner's alone.
        """
        place, held, reason = Path(path), b"", ""
        try:
            if stat.S_IMODE(place.stat().st_mode) & 0o077:
                raise InputError(f"others may read the key {place}: chmod 600 it, and plant other canaries")
            held = read_private(place)
        except OSError as error:
            reason = f" ({error.strerror})"
        found = cls._of(held)
        if found is None:
            raise InputError(f"{place} is no key of canaries{reason}: give the file written when they were planted")
        return found

    @classmethod
    def _of(cls, content: bytes) -> CanaryKey | None:
        """From what a file holds; None where that cannot have been written by `save`."""
        try:
            held = json.loads(content)
        except ValueError:
            return None
        if not isinstance(held, dict) or {*held} != {"format", "labels", "classes", *LISTS}:
            return None
        names, labels = held["classes"], held["labels"]
        if held["format"] != FORMAT or type(labels) is not int or not isinstance(names, list) or len(names) < 2:
            return None
        if not all(map(_is_name, names)) or not all(_whole_numbers(held[name]) for name in LISTS):
            return None
        rows, *codes = (np.asarray(held[name], dtype=np.intp) for name in LISTS)
        planted, decoys, truths = codes
        good = (
            len(rows) >= 1
            and all(len(one) == len(rows) and one.min() >= 0 and one.max() < len(names) for one in codes)
            and bool((np.diff(rows) > 0).all() and rows[0] >= 0 and rows[-1] < labels)
            and not (planted == decoys).any()
            and (len(names) == 2 or not ((planted == truths) | (decoys == truths)).any())
        )
        return cls(labels, tuple(names), rows, planted, decoys=decoys, truths=truths) if good else None

    def __repr__(self) -> str:
        return f"CanaryKey({self.count} canaries among {self.labels} labels of {len(self.classes)} classes)"

    def __reduce__(self) -> Any:
        raise InputError("a key of canaries is not pickled: save() writes it for its owner alone")


@proves("memorisation")
def plant(
    y: npt.ArrayLike,
    count: int = 1000,
    *,
    classes: Sequence[Any] | None = None,
    seed: int | None = None,
) -> tuple[npt.NDArray[Any], CanaryKey]:
    """Labels of which some are wrong on purpose, and the key that says which.

    Train on these labels exactly as on the true ones; `memorised` then asks the model which wrong label each canary
    has. Rows are drawn evenly. A canary's new label is drawn evenly among the wrong ones; with two classes it is drawn
    evenly among both.

    Guarantee: given all other labels and the set of both, whether a canary has its label or its decoy is a fair coin of
    its own; so is, with more sides, which of the wrong labels it has.

    Args:
        y: the true labels, one column.
        count: number of canaries. More make the lower end on epsilon surer, and the model a little worse.
        classes: names of all classes, in the order of the columns of scores; those seen in `y`, sorted, if left out.
        seed: makes it repeatable, for tests alone: whoever knows it knows the canaries. Left out, the operating system
            draws.

    Returns:
        Labels to train on, and the key. Both stay with the custodian; the key beside nothing that is published.

    Raises:
        InputError: there are fewer labels than canaries, fewer than two classes, or a label is missing or no class.

    Examples:
        >>> import leakcap as lc
        >>> labels, key = lc.audit.plant([0, 1, 2, 0, 1, 2, 0, 1, 2, 0], count=4, seed=0)
        >>> key
        CanaryKey(4 canaries among 10 labels of 3 classes)
        >>> int((labels != [0, 1, 2, 0, 1, 2, 0, 1, 2, 0]).sum())
        4
    """
    given = column(y)
    count = checks.count(count=count)
    if count > len(given):
        raise InputError(f"there are {len(given)} labels, fewer than {count} canaries: plant fewer, with count=")
    if isinstance(classes, int | float):
        raise InputError("classes must be the names of all classes in a list, such as classes=range(10)")
    named = Classes(None, _seen(given) if classes is None else classes)
    if not all(map(_is_name, named.names)):
        raise InputError("classes must be text or numbers, so that the key can be written: name them so")
    codes = named.codes(given).astype(np.intp)
    key = _drawn(
        codes, named, count, OperatingSystem() if seed is None else Seeded(checks.count(at_least=0, seed=seed))
    )
    codes[key.rows] = key.planted
    return named.of(codes), key


def _drawn(codes: Ints, classes: Classes, count: int, randomness: Randomness) -> CanaryKey:
    """Canaries whose places do not depend on any label."""
    draw = randomness.bits()
    rows = np.sort(draw.permutation(len(codes))[:count]).astype(np.intp)
    sides, truths = max(2, classes.count - 1), codes[rows]
    first = draw.integers(0, sides, size=count)
    second = (first + draw.integers(1, sides, size=count)) % sides
    planted, decoys = (_wrong(one, truths, classes.count).astype(np.intp) for one in (first, second))
    return CanaryKey(len(codes), classes.names, rows, planted, decoys=decoys, truths=truths)


def _wrong(place: npt.NDArray[Any], truths: Ints, classes: int) -> npt.NDArray[Any]:
    """Places among the wrong labels as classes; with two classes both count."""
    return place if classes == 2 else place + (place >= truths)


def _seen(given: npt.NDArray[Any]) -> list[Any]:
    """Classes that occur, sorted; an error where they cannot be."""
    found = set(given.tolist())
    if any(one is None or one != one for one in found):  # noqa: PLR0124 - only a missing number differs from itself
        raise InputError("some labels are missing: drop those rows, or fill them in, before canaries are planted")
    if len(found) < 2:
        raise InputError("labels of one class leave no wrong one to plant: name all classes by classes=[...]")
    if len(found) > len(given) / 2 and any(isinstance(one, float) and one != int(one) for one in found):
        raise InputError("labels look like measurements, not classes: name all classes by classes=[...] if they are")
    if len({isinstance(one, str) for one in found}) > 1:
        raise InputError("some labels are text and some are numbers: name all classes by classes=[...]")
    return sorted(found)


def _is_name(one: Any) -> bool:
    """What JSON gives back as it was."""
    return is_words(one) or is_number(-math.inf, math.inf, one) or isinstance(one, bool)


def _whole_numbers(values: Any) -> bool:
    return isinstance(values, list) and all(type(one) is int for one in values)
