"""The similarity attack: an encoder keeps which rows are near each other, so encoded rows are matched with candidates.

Published against encoders by random networks, which turn one row into one row and add no noise: distances between
encoded rows mirror those between the rows themselves. `matched` is that attack. `similarity` is what is left of it
where rows are means of many: it asks which rows an encoded mean looks like.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from leakcap.audit.encoded.attacker import EncodedAttacker, middle_cut
from leakcap.audit.encoded.game import EncodedTrial
from leakcap.ground.arrays import Floats, Ints
from leakcap.obfuscation.mixing import pair_labels, pairs

__all__ = ["matched", "similarity"]

QUANTILES = 32  # of a row's distances to all others, by which rows are matched first
ROUNDS = 50


def matched(encoded: Floats, candidates: Floats) -> Ints:
    """Which candidate every encoded row is, by distances alone; as many candidates as there are rows.

    Rows are matched first by how near all others are to them, then again and again by how near those are that were
    matched: the key is not asked for.
    """
    near, known = (_distances(rows) for rows in (encoded, candidates))
    levels = np.linspace(0, 1, QUANTILES)
    first, second = (np.quantile(one, levels, axis=1).T for one in (near, known))
    found = _agreed(near, known, linear_sum_assignment(cdist(first, second))[1])
    return _agreed(_products(encoded), _products(candidates), found)


def _agreed(near: Floats, known: Floats, found: Ints) -> Ints:
    """Matched anew until nothing changes: a row and a candidate agree if they are near rows that were matched."""
    for _ in range(ROUNDS):
        again = linear_sum_assignment(-(near @ known[:, found].T))[1]
        if (again == found).all():
            break
        found = again
    return found


def _distances(rows: Floats) -> Floats:
    """Squared distances in units of their own, less what is far from everybody; a row's own counts as any."""
    distances = cdist(rows, rows, "sqeuclidean")
    others = ~np.eye(len(rows), dtype=np.bool_)
    distances = np.where(others, (distances - distances[others].mean()) / distances[others].std(), 0.0)
    return np.asarray(distances.mean(axis=0) + distances.mean(axis=1)[:, None] - distances - distances.mean())


def _products(rows: Floats) -> Floats:
    """Products of rows less their mean, in which a row's own length counts."""
    centred = rows - rows.mean(axis=0)
    products = centred @ centred.T
    return np.asarray(products / products.std())


def similarity(attacker: EncodedAttacker, trials: Sequence[EncodedTrial], learn: int) -> Floats:
    """Of every target, how near the encoded mean that looks most like it is; cuts are learnt from the first trials.

    What a row looks like is told by its products with the means of all rows of two classes each, which the mask keeps
    on average, and which the attacker has on both sides.
    """
    game = attacker.game
    first, second = pairs(game.pool.design)
    labels = pair_labels(first, second, game.law.classes)
    kinds, kind = np.unique(labels, axis=0, return_inverse=True)
    centres = np.array([game.pool.rows[game.law.labels == one].mean(axis=0) for one in range(game.law.classes)])
    own = game.law.labels[attacker.targets]
    looks = _standard((game.pool.rows[attacker.targets] - centres[own]) @ (kinds @ centres).T)
    mates = labels[:, own] > 0  # (m, targets): means that a target can be in
    scores = []
    for trial in trials:
        anchors = np.array([trial.values[kind.ravel() == one].mean(axis=0) for one in range(len(kinds))])
        seen = _standard((trial.values - anchors[kind.ravel()]) @ anchors.T)
        scores.append(np.where(mates, seen @ looks.T, -np.inf).max(axis=0))
    return middle_cut(np.array(scores), attacker.inside(trials), learn)


def _standard(table: Floats) -> Floats:
    """Columns of deviation 1; those without any are left alone."""
    spread = table.std(axis=0)
    return np.asarray(table / np.where(spread > 0, spread, 1.0))
