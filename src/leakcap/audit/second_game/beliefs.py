"""What is believed about a secret after seeing numbers, learnt from others whose secrets were told.

All by Bayes' rule at equal prior chances. None knows how the numbers were made.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy import special
from scipy.spatial import cKDTree

from leakcap.ground.arrays import Floats, Ints

__all__ = ["Belief", "learned"]

Belief = Callable[[Floats], Floats]  # from numbers (k, c) to chances of each secret (k, secrets)
SLIGHT = 1e-6  # of the spread: below, a number counts as the same
# How far covariances are drawn to their diagonal: wholly; a little, where there is little to learn from; or hardly, so
# that numbers which hang together exactly for one secret and not for another are noticed.
SHRUNK = (1.0, 0.1, 1e-9)
REACH = 10.0  # deviations at which numbers are cut off: one wild release must not set the scale
WIDEST = 48  # directions that are looked at together


def learned(seen: Floats, which: Ints, secrets: int) -> list[Belief]:
    """By normal laws with one spread or several, together or number by number; by neighbours; by one number alone."""
    kept = np.ptp(seen, axis=0) > 0
    if not kept.any():
        return [lambda some: np.full((len(some), secrets), 1.0 / secrets)]
    centre, scale = np.median(seen[:, kept], axis=0), _scale(seen[:, kept])

    def table(some: Floats) -> Floats:
        return np.clip((some[:, kept] - centre) / scale, -REACH, REACH)

    given = table(seen)
    turn = _main_directions(given)
    ways: list[tuple[Belief, Callable[[Floats], Floats]]] = [(_alone(given, which, secrets), table)]

    def turned(some: Floats) -> Floats:
        return table(some) @ turn

    for own in (False, True):
        for shrunk in SHRUNK:
            ways.append((_by_law(given @ turn, which, secrets=secrets, own=own, shrunk=shrunk), turned))
    ways.append((_by_neighbours(given @ turn, which, secrets), turned))
    return [partial(_after, believe, prepared) for believe, prepared in ways]


def _after(believe: Belief, prepared: Callable[[Floats], Floats], some: Floats) -> Floats:
    return believe(prepared(some))


def _scale(seen: Floats) -> Floats:
    """Spread of the middle half, or of all where more than half are equal."""
    low, high = np.quantile(seen, [0.25, 0.75], axis=0)
    middle = (high - low) / 1.35
    whole = seen.std(axis=0)
    return np.where(middle > SLIGHT * whole, middle, whole)


def _main_directions(table: Floats) -> Floats:
    """All numbers as they are, or the directions in which they vary most where they are many."""
    columns = table.shape[1]
    if columns <= WIDEST:
        return np.eye(columns)
    return np.asarray(np.linalg.svd(table - table.mean(axis=0), full_matrices=False)[2][:WIDEST].T)


def _by_law(table: Floats, which: Ints, secrets: int, own: bool, shrunk: float) -> Belief:
    """Normal laws: `own` spread for each secret or one for all; `shrunk` from 0, the covariance, to 1, its diagonal."""
    means = np.stack([table[which == one].mean(axis=0) for one in range(secrets)])
    off = table - means[which]
    slight = SLIGHT * np.maximum(table.std(axis=0), SLIGHT)
    parts = [off[which == one] for one in range(secrets)] if own else [off]
    whitens, sizes = [], []
    for part in parts:
        spread = np.maximum(part.std(axis=0), slight)
        if shrunk < 1 and table.shape[1] > 1:
            correlation = np.atleast_2d((part / spread).T @ (part / spread)) / max(len(part), 1)
            correlation = (1 - shrunk) * correlation + shrunk * np.eye(len(spread))
            values, turn = np.linalg.eigh(correlation)
            values = np.maximum(values, shrunk)
            whitens.append(turn / np.sqrt(values) / spread[:, None])
            sizes.append(float(np.log(spread).sum() + 0.5 * np.log(values).sum()))
        else:
            whitens.append(np.diag(1 / spread))
            sizes.append(float(np.log(spread).sum()))

    def believe(some: Floats) -> Floats:
        score = np.empty((len(some), secrets))
        for one in range(secrets):
            place = one if own else 0
            score[:, one] = -0.5 * (((some - means[one]) @ whitens[place]) ** 2).sum(axis=1) - sizes[place]
        return np.asarray(special.softmax(score, axis=1))

    return believe


def _alone(table: Floats, which: Ints, secrets: int) -> Belief:
    """The one number that tells most by itself, as far as was seen."""
    best, chosen, column = (-1.0, -np.inf), None, 0
    for place in range(table.shape[1]):
        number = table[:, [place]]
        for believe in (
            _by_law(number, which, secrets=secrets, own=True, shrunk=1.0),
            _by_neighbours(number, which, secrets),
        ):
            chances = believe(number)
            sure = np.log(np.maximum(chances[np.arange(len(which)), which], 1e-9)).mean()
            merit = float((chances.argmax(axis=1) == which).mean()), float(sure)
            if merit >= best:  # of equals the last: what is told once for a plan stands there
                best, chosen, column = merit, believe, place
    assert chosen is not None
    way = chosen
    return lambda some: way(some[:, [column]])


def _by_neighbours(table: Floats, which: Ints, secrets: int) -> Belief:
    """By the secrets of the most similar ones; any shape of law, and numbers that come again exactly."""
    tree = cKDTree(table)
    near = int(np.clip(np.sqrt(len(table)), 1, 64))
    weight = 1 / np.bincount(which, minlength=secrets)  # as if all secrets had been seen equally often

    def believe(some: Floats) -> Floats:
        places = tree.query(some, k=near)[1].reshape(len(some), near)
        votes = np.stack([(which[places] == one).sum(axis=1) * weight[one] for one in range(secrets)], axis=1)
        return np.asarray(votes / votes.sum(axis=1, keepdims=True))

    return believe
