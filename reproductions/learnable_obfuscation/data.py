"""CIFAR-10 embeddings as rows of length 1: the pool, test rows, and public rows that are in no pool.

Differs from the paper: the embedding is another network's. A small pool of made-up rows serves quick looks.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from leakcap.obfuscation.rows import RowRule
from reproductions.learnable_obfuscation.published import PUBLIC

__all__ = ["Embedded", "made_up", "read"]

FILE = "cifar10_effnet_lite0_224.npz"
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Embedded:
    """Rows of length 1 and their classes; test rows are of even places for choosing and of odd places for telling."""

    pool: Floats
    labels: Ints
    test: Floats
    test_labels: Ints
    public: Floats | None = None
    public_labels: Ints | None = None

    def with_public(self, rows: int, seed: int = 0) -> Embedded:
        """As many rows of each class leave the pool and are public from then on: nothing is said about them."""
        classes = int(self.labels.max()) + 1
        rng = np.random.default_rng(seed)
        drawn = [
            rng.permutation(np.flatnonzero(self.labels == one))[: max(1, rows // classes)] for one in range(classes)
        ]
        chosen = np.concatenate(drawn)
        kept = np.setdiff1d(np.arange(len(self.pool)), chosen)
        return Embedded(
            self.pool[kept],
            self.labels[kept],
            self.test,
            self.test_labels,
            public=self.pool[chosen],
            public_labels=self.labels[chosen],
        )


def read(*, learnable: bool) -> Embedded:
    """From the folder that LEAKCAP_DATA names."""
    stored = np.load(Path(os.environ["LEAKCAP_DATA"]) / FILE)
    unit = RowRule()
    pool, test = (
        unit(((stored[name] / np.float32(255)) ** 2 * 6).astype(np.float64)) for name in ("q_train", "q_test")
    )
    found = Embedded(pool, stored["y_train"].astype(np.intp), test, stored["y_test"].astype(np.intp))
    return found.with_public(PUBLIC) if learnable else found


def made_up(*, learnable: bool) -> Embedded:
    """Ten classes of 60 rows of 24 columns: for a look at whether everything runs, nothing else."""
    rng = np.random.default_rng(1)
    centres = rng.normal(size=(10, 24))
    labels, test_labels = rng.permutation(np.repeat(np.arange(10), 60)), np.repeat(np.arange(10), 20)
    unit = RowRule()
    pool, test = (unit(centres[of] + 0.5 * rng.normal(size=(len(of), 24))) for of in (labels, test_labels))
    found = Embedded(pool, labels, test, test_labels)
    return found.with_public(100) if learnable else found
