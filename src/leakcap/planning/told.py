"""What people are told about the outputs of an answer: their labels, and what could be misread.

A function of one's own counts those who took part, and such a count is easily read as one of everybody. A number that
is the same whichever people take part leaves without noise, and an exact 0 among noised numbers tells that nobody in
the pool is there. Both are seen from the answers in all worlds, so they tell nothing about the secret one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from leakcap.errors import InputError
from leakcap.ground.arrays import Bools, Floats
from leakcap.kernels.bounded import Bounded
from leakcap.kernels.contributions import Contributions
from leakcap.planning.certifier import Run

__all__ = ["OutputWords", "Told", "cost_words", "labels_for"]

OutputWords = Mapping[str, str] | Sequence[str] | None  # labels by name, or one for each output in order
SURE = 4.0  # standard errors between the mean over worlds and what it is compared with
FAR = 0.5  # of the way from a part to the whole: outputs that spread further are not called of a part
SAME = 1e-12  # of the largest error: rounding
MAX_NAMED = 3  # outputs that a note names


@dataclass(frozen=True)
class Told:
    """Labels of the outputs, and sentences about them; public side."""

    labels: tuple[str, ...] = field(default=())
    notes: tuple[str, ...] = field(default=())

    @property
    def sentences(self) -> tuple[str, ...]:
        """The notes, for a summary."""
        return tuple(f"{note}." for note in self.notes)

    @classmethod
    def of(cls, run: Run, labels: tuple[str, ...], error: Floats | None) -> Told:
        """`labels` of all outputs, or none; `error` of each against the whole pool, where it is known."""
        table = run.simulation.table
        if run.design == "pool" or run.simulation.whole_pool is None or len(labels) != table.shape[1]:
            return cls(labels)  # under a pool cap nothing may follow from the answers; and there everybody is used
        partial = _of_a_part(run)
        half = "half" if run.worlds.rate == 0.5 else "part"
        words = tuple(
            f"{label} (of the {half} that was used)" if of_part else label
            for label, of_part in zip(labels, partial, strict=True)
        )
        exact = np.zeros(len(labels), dtype=bool) if error is None else error <= SAME * error.max(initial=0.0)
        return cls(words, (*_parts(run, labels, partial), *_exact(run, labels, exact)))


def labels_for(names: tuple[str, ...], words: OutputWords) -> tuple[str, ...]:
    """The names of the outputs, or what they are to be called."""
    if words is None:
        return names
    if isinstance(words, Mapping):
        unknown = [name for name in words if name not in names]
        if unknown:
            raise InputError(
                f"outputs= has a label for {unknown[0]!r}, and no output is called that: plan without outputs= first, "
                "and see plan.summary().names"
            )
        return tuple(str(words.get(name, name)) for name in names)
    given = () if isinstance(words, str) else tuple(map(str, words))
    if len(given) != len(names):
        raise InputError(
            f'outputs= has {len(given):,} labels for {len(names):,} outputs: give one for each, or {{"name": "label"}}'
        )
    return given


def _of_a_part(run: Run) -> Bools:
    """Outputs that grow with the rows: in a world they are the share of the whole pool's that takes part."""
    table, whole, rate = run.simulation.table, np.asarray(run.simulation.whole_pool), run.worlds.rate
    mean, spread = table.mean(axis=0), table.std(axis=0)
    off = SURE * spread / np.sqrt(len(table)) + 1e-9 * np.abs(whole)
    return np.asarray((np.abs(mean - rate * whole) <= off) & (spread <= FAR * np.abs(whole - mean)) & (whole != 0))


def _parts(run: Run, labels: tuple[str, ...], partial: Bools) -> Iterator[str]:
    if partial.any():
        share = "half" if run.worlds.rate == 0.5 else str(run.worlds.share)
        one = partial.sum() == 1
        yield (
            f"{_listed(labels, partial)} {'is' if one else 'are'} of the {share} of the pool that was used, and "
            f"grow{'s' if one else ''} with it: of everybody {'it' if one else 'they'} would be about "
            f"{1 / run.worlds.rate:.3g} times as large"
        )


def _exact(run: Run, labels: tuple[str, ...], exact: Bools) -> Iterator[str]:
    """Where some are and others are not."""
    if exact.any() and not exact.all():
        one = exact.sum() == 1
        empty = bool((np.asarray(run.simulation.whole_pool)[exact] == 0).any())
        yield (
            f"{_listed(labels, exact)} {'leaves' if one else 'leave'} without noise: "
            f"{'it is' if one else 'they are'} the same whichever people take part"
            + ("; an exact 0 tells that nobody in the pool is there" if empty else "")
        )


def _listed(labels: tuple[str, ...], which: Bools) -> str:
    chosen = [repr(labels[place]) for place in np.flatnonzero(which)]
    more = f" and {len(chosen) - MAX_NAMED:,} more" if len(chosen) > MAX_NAMED else ""
    return ", ".join(chosen[:MAX_NAMED]) + more


def cost_words(run: Run) -> str:
    """What the simulation costs; of sums, what was cut from them."""
    if run.finishing is None:
        return str(run.simulation.forecast)
    cut = run.brings.cut if isinstance(run.brings, (Bounded, Contributions)) else 0
    return "none, sums are added up" + (f"; {cut:,} entries lay outside the bounds and were cut" if cut else "")
