"""An attacker who has nothing but published objects, many of them with the truth beside them to learn from.

It reads every number that an object holds, learns to tell from them whether somebody took part, and is then judged on
objects that it has not seen. It knows neither worlds nor noise, so it is weaker than the best attacker where only
noised numbers leave, and far stronger than a cap allows where a single number leaves without noise.
"""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator


def numbers_in(thing, leave_out=()):
    """Every number that an object holds, at any depth, hidden attributes included."""
    found = []
    _gather(thing, leave_out, found)
    return np.array(found, dtype=float)


def _gather(thing, leave_out, found):
    if isinstance(thing, (bool, int, float, np.number)):
        found.append(float(thing))
    elif isinstance(thing, np.ndarray) and thing.dtype.kind in "biuf":
        found.extend(thing.ravel().tolist())
    else:
        if isinstance(thing, BaseEstimator):
            thing = {name: part for name, part in vars(thing).items() if name not in leave_out}
        parts = thing.values() if isinstance(thing, dict) else thing if isinstance(thing, (list, tuple)) else ()
        for part in parts:
            _gather(part, leave_out, found)


def success(seen, inside):
    """Share of right guesses, and its standard error, on the half of the objects that nothing was learnt from.

    Two ways to guess are learnt on a third of the rest, both likelihood ratios: of all numbers as if they were normal
    (one direction, one threshold), and of each number alone, by its nearest neighbour. The one that guesses best on
    the remaining sixth is judged.
    """
    seen = seen[:, np.ptp(seen, axis=0) > 0]
    learn, choose, judge = np.split(np.arange(len(seen)), [len(seen) // 3, len(seen) // 2])
    best, chosen = -1.0, None
    for guess in (_by_direction(seen[learn], inside[learn]), *_by_neighbours(seen[learn], inside[learn])):
        right = np.mean(guess(seen[choose]) == inside[choose])
        if right > best:
            best, chosen = right, guess
    share = np.mean(chosen(seen[judge]) == inside[judge])
    return share, np.sqrt(share * (1 - share) / len(judge))


def _by_direction(seen, inside):
    middle, spread = np.median(seen, axis=0), np.std(seen, axis=0)
    spread[spread == 0] = 1.0

    def prepared(some):
        return np.column_stack([np.clip((some - middle) / spread, -4, 4), np.ones(len(some))])

    table = prepared(seen)
    slight = 1e-3 * len(table) * np.eye(table.shape[1])
    direction = np.linalg.solve(table.T @ table + slight, table.T @ np.where(inside, 1.0, -1.0))
    scores = table @ direction
    cuts = np.quantile(scores, np.linspace(0.02, 0.98, 49))
    cut = max(cuts, key=lambda one: np.mean((scores > one) == inside))
    return lambda some: prepared(some) @ direction > cut


def _by_neighbours(seen, inside):
    for column in range(seen.shape[1]):
        order = np.argsort(seen[:, column])
        values, known = seen[order, column], inside[order]

        def guess(some, column=column, values=values, known=known):
            place = np.clip(np.searchsorted(values, some[:, column]), 1, len(values) - 1)
            nearer = some[:, column] - values[place - 1] < values[place] - some[:, column]
            return known[place - nearer]

        yield guess
