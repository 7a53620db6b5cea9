"""The strongest attacker of a cell: only mask and noise are hidden from it, and which of two rows is at one place.

`leakcap.audit`'s insider at the paper's sizes. Covariances are `F F' + noise`, with fewer columns in `F` than rows, so
that all is done in as many dimensions as `F` has columns.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from leakcap.audit.encoded.likelihood import swaps_of
from leakcap.audit.encoded.swapped import rank_two_gains
from reproductions.learnable_obfuscation.cells import Cell
from reproductions.learnable_obfuscation.data import Embedded
from reproductions.learnable_obfuscation.guessed import AttackedCell, Floats, Release, amounts_to

__all__ = ["Insider", "gains_of"]

RELEASES = 10


class Insider:
    """Attacks cells of one pool."""

    def __init__(self, data: Embedded, *, columns: int, device: str = "cpu") -> None:
        self.data, self.columns = data, columns

    def __call__(self, cell: Cell, *, seed: int = 4, releases: int = RELEASES) -> dict[str, Any]:
        """Who is in the sample leaves it for somebody outside; who is not takes the place of somebody inside."""
        began, rng = time.perf_counter(), np.random.default_rng(seed)
        known = AttackedCell(cell, self.data, self.columns)
        public = None if known.added is None else known.added.T @ known.added
        inside, evidence = [], []
        for one in known.releases(releases, rng):
            inside.append(one.inside)
            evidence.append(self._of_release(known, one, public, rng))
        rate = float(known.law.rates.max())
        return amounts_to(np.array(evidence), np.array(inside), rate, began)

    def _of_release(self, known: AttackedCell, one: Release, public: Floats | None, rng: np.random.Generator) -> Floats:
        pool, targets = self.data.pool, known.targets
        leave, others = (swaps_of(known.law, one.rows, targets, joined=side, rng=rng) for side in (False, True))
        places = leave[0]  # of a target that is in; of the others any place of their class, which they take
        places = np.where(one.inside, places, others[0])
        joins = np.where(one.inside, leave[1], targets)
        change = pool[joins] - pool[one.rows[places]]
        gain = gains_of(
            np.asarray(one.weights @ pool[one.rows]),
            one.values,
            one.weights[:, places].toarray(),
            change,
            columns=self.columns,
            variance=known.cell.noise**2,
            added=known.added,
            added_gram=public,
        )
        return np.asarray(np.where(one.inside, -gain, gain))


def gains_of(
    mixed: Floats,
    released: Floats,
    weights: Floats,
    change: Floats,
    *,
    columns: int,
    variance: float,
    added: Floats | None = None,
    added_gram: Floats | None = None,
) -> Floats:
    """`(swaps,)`: by how much each swap changes the log-likelihood of a release.

    Args:
        mixed: `(m, D)` the means.
        released: `(m, columns)`.
        weights: `(m, swaps)` columns of the mixing at the places that are swapped.
        change: `(swaps, D)` the row that comes less the one that goes.
        columns: of the release, each with the same law.
        variance: of the noise.
        added: `(m, D)` means of public rows that are masked and added.
        added_gram: `added' added`, the same for all releases.
    """
    inner, parts = mixed.T @ mixed, [mixed]
    gram, moved_in = inner, inner @ change.T
    if added is not None and added_gram is not None:
        across = added.T @ mixed
        gram = np.block([[inner, across.T], [across, added_gram]])
        moved_in, parts = np.vstack([moved_in, across @ change.T]), [mixed, added]
    # S = F F' + variance, F = [mixed, added] / sqrt(columns):
    # x'S^-1 y = (x'y - (F'x)'(variance + F'F)^-1 F'y) / variance.
    gram = gram / columns
    gram.flat[:: len(gram) + 1] += variance
    root = cholesky(gram, lower=True, check_finite=False, overwrite_a=True)
    moved = mixed @ change.T
    placed_in, seen_in = (np.vstack([part.T @ one for part in parts]) for one in (weights, released))
    roots = [
        solve_triangular(root, one / np.sqrt(columns), lower=True, check_finite=False)
        for one in (moved_in, placed_in, seen_in)
    ]

    def form(first: Floats, second: Floats, a: int, b: int) -> Floats:
        return np.asarray((np.einsum("mt,mt->t", first, second) - np.einsum("mt,mt->t", roots[a], roots[b])) / variance)

    grams = np.stack([form(moved, moved, 0, 0), form(moved, weights, 0, 1), form(weights, weights, 1, 1)])
    seen = [(one.T @ released - roots[place].T @ roots[2]) / variance for place, one in enumerate((moved, weights))]
    fits = np.stack(
        [(one * two).sum(axis=1) for one, two in ((seen[0], seen[0]), (seen[0], seen[1]), (seen[1], seen[1]))]
    )
    return rank_two_gains(grams, fits[..., None], (change**2).sum(axis=1), columns=columns)[0]
