"""The likelihood attack as section 7.2 prints it: samples, mixings *and masks* are drawn at random.

A mask that was drawn at random is nowhere near the one that was used, so likelihoods differ by thousands of nats for
reasons that have nothing to do with the target. Differs from the paper: samples with and without a target are fewer,
and serve all targets, each of which joins or leaves a sample by a swap with somebody of its class.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.audit.encoded.likelihood import swaps_of
from leakcap.obfuscation.sampled import draw_mixed
from reproductions.learnable_obfuscation.cells import Cell
from reproductions.learnable_obfuscation.data import Embedded
from reproductions.learnable_obfuscation.guessed import AttackedCell, Floats, amounts_to

__all__ = ["AsPrinted"]

RELEASES = 10
SIMULATED = 10  # samples with a target, and as many without: on a processor; more add time, and nothing else
Singles = npt.NDArray[np.float32]


class AsPrinted:
    """Attacks cells of one pool."""

    def __init__(self, data: Embedded, *, columns: int, device: str = "cpu") -> None:
        self.data, self.columns = data, columns
        self.pool = data.pool.astype(np.float32)

    def __call__(
        self, cell: Cell, *, seed: int = 5, releases: int = RELEASES, simulated: int = SIMULATED
    ) -> dict[str, Any]:
        began, rng = time.perf_counter(), np.random.default_rng(seed)
        known = AttackedCell(cell, self.data, self.columns)
        seen = list(known.releases(releases, rng))
        values = np.stack([one.values for one in seen]).astype(np.float32)
        sides = [
            np.logaddexp.reduce([self._simulated(known, values, joined, rng) for _ in range(simulated)], axis=0)
            for joined in (True, False)
        ]
        inside, rate = np.array([one.inside for one in seen]), float(known.law.rates.max())
        return {"simulated": simulated} | amounts_to(sides[0] - sides[1], inside, rate, began)

    def _simulated(self, known: AttackedCell, values: Singles, joined: bool, rng: np.random.Generator) -> Floats:
        """`(releases, targets)` log-likelihoods of one guess, but for what is the same for all guesses."""
        mixed = draw_mixed(known.law, rng)
        places, joins = swaps_of(known.law, mixed.rows, known.targets, joined=joined, rng=rng)
        mask, weights = self._mask(known, rng), mixed.weights.astype(np.float32)
        guess = weights @ (self.pool[mixed.rows] @ mask)
        if known.added is not None:
            guess = guess + known.added.astype(np.float32) @ self._mask(known, rng)
        step = (self.pool[joins] - self.pool[mixed.rows[places]]) @ mask  # what a swap adds, times its weight
        at_place = weights[:, places].T.tocsr()
        fits = np.array([np.vdot(one, guess) + ((at_place @ one) * step).sum(axis=1) for one in values], dtype=float)
        length = (guess.astype(np.float64) ** 2).sum()
        lengths = 2 * ((at_place @ guess) * step).sum(axis=1)
        lengths += np.asarray(at_place.multiply(at_place).sum(axis=1)).ravel() * (step**2).sum(axis=1)
        return np.asarray((fits - (length + lengths) / 2) / known.cell.noise**2)

    def _mask(self, known: AttackedCell, rng: np.random.Generator) -> Singles:
        """In single precision, for speed: an attacker may."""
        drawn = rng.standard_normal((self.pool.shape[1], known.columns), dtype=np.float32)
        return drawn / np.float32(np.sqrt(known.columns))
