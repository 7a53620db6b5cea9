"""The secret sample and its mixing: which rows take part, and in which means.

Labels of the means are the same whatever was sampled: so many rows for every ordered pair of classes.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

from leakcap.ground.arrays import Floats, Ints
from leakcap.noise.entropy import Randomness
from leakcap.obfuscation.design import MixingDesign

__all__ = ["choose", "mean_weights", "mixed_places", "mixed_rows", "pair_labels", "pairs", "sampled_rows"]

KEYS_AT_ONCE = 2**24  # random numbers in memory, 4 bytes each


def sampled_rows(codes: Ints, design: MixingDesign, randomness: Randomness) -> list[Ints]:
    """Places in the pool of the rows that were drawn of every class, without replacement. Custodian side."""
    bits = randomness.bits()
    return [
        np.asarray(bits.permutation(np.flatnonzero(codes == one)))[: design.sampled_per_class]
        for one in range(design.classes)
    ]


def pairs(design: MixingDesign) -> tuple[Ints, Ints]:
    """The two classes of every released row, before rows are put in a random order."""
    first = np.repeat(np.arange(design.classes), design.classes * design.released_per_pair)
    second = np.tile(np.repeat(np.arange(design.classes), design.released_per_pair), design.classes)
    return first, second


def pair_labels(first: Ints, second: Ints, classes: int) -> Floats:
    """Labels of means of two classes: a half for each, 1 where both are the same."""
    labels = np.zeros((len(first), classes))
    rows = np.arange(len(first))
    labels[rows, first] = 0.5
    labels[rows, second] += 0.5
    return labels


def mixed_rows(rows: Floats, sample: list[Ints], halves: tuple[Ints, Ints], mix: int, randomness: Randomness) -> Floats:
    """Means of `mix` sampled rows of one class and as many of the other: a row for each pair in `halves`."""
    return np.asarray(mean_weights(len(rows), mixed_places(sample, halves, mix, randomness)) @ rows)


def mixed_places(sample: list[Ints], halves: tuple[Ints, Ints], mix: int, randomness: Randomness) -> Ints:
    """`(released, 2 mix)`: places in the pool of the rows of every mean. Custodian side.

    Both halves are drawn without replacement, apart from each other also where both classes are the same.
    """
    places = np.empty((len(halves[0]), 2 * mix), dtype=np.intp)
    for half, classes in enumerate(halves):
        for one, members in enumerate(sample):
            here = np.flatnonzero(classes == one)
            chosen = choose(len(members), mix, len(here), randomness)
            places[here, half * mix : (half + 1) * mix] = members[chosen]
    return places


def mean_weights(rows: int, places: Ints) -> csr_matrix:
    """`(released, rows)`: by what every row of the pool counts in every mean; twice if it is there twice."""
    released, both = places.shape
    starts = np.arange(0, released * both + 1, both)
    return csr_matrix((np.full(places.size, 1 / both), places.ravel(), starts), shape=(released, rows))


def choose(members: int, mix: int, times: int, randomness: Randomness) -> Ints:
    """`times` sets of `mix` of so many members, every set as likely as any other."""
    found = np.empty((times, mix), dtype=np.intp)
    step = max(1, KEYS_AT_ONCE // max(members, 1))
    todo = np.arange(times)
    while len(todo):
        now, todo = todo[:step], todo[step:]
        keys = randomness.bits().integers(0, 2**32, size=(len(now), members), dtype=np.uint32)
        if mix == members:
            found[now] = np.arange(members)
            continue
        order = np.argpartition(keys, (mix - 1, mix), axis=1)
        found[now] = order[:, :mix]
        edge = np.take_along_axis(keys, order[:, mix - 1 : mix + 1], axis=1)
        tied = edge[:, 0] == edge[:, 1]  # who comes first would not be by chance alone: once more
        todo = np.concatenate([now[tied], todo])
    return found
