"""Releases of a cell that are attacked on a processor, and what guesses about the paper's targets amount to.

Half of the 100 targets are put into the sample of every release, so that both kinds of errors are seen as often.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from leakcap.audit.statistics import Balanced
from leakcap.obfuscation.sampled import MixingLaw, draw_mixed
from reproductions.learnable_obfuscation.attack import ranked, with_targets
from reproductions.learnable_obfuscation.cells import Cell
from reproductions.learnable_obfuscation.data import Embedded
from reproductions.learnable_obfuscation.encoded import mixture
from reproductions.learnable_obfuscation.member import law_of
from reproductions.learnable_obfuscation.published import TARGETS

__all__ = ["AttackedCell", "Release", "amounts_to"]

PUBLIC_SEED = 7  # the public means whose leakage is certified
SHOWN = 0.05  # of the interval
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Release:
    """A release of a cell, and what it drew: rows of the sample, their weights in every mean, who of the targets."""

    rows: npt.NDArray[np.intp]
    weights: csr_matrix
    values: Floats
    inside: Bools


class AttackedCell:
    """What an attacker knows of a cell: pool, rules, noise, targets, and masked public rows before their mask."""

    def __init__(self, cell: Cell, data: Embedded, columns: int) -> None:
        self.cell, self.data, self.columns = cell, data, columns
        self.law: MixingLaw = law_of(cell, data, columns)
        self.targets = np.arange(min(TARGETS, len(data.pool) // 4))
        self.added = mixture(cell.setting, data, columns, PUBLIC_SEED).added if cell.learnable else None

    def mask(self, rng: np.random.Generator) -> Floats:
        return rng.normal(size=(self.data.pool.shape[1], self.columns)) / np.sqrt(self.columns)

    def releases(self, many: int, rng: np.random.Generator) -> Iterator[Release]:
        for _ in range(many):
            mixed = draw_mixed(self.law, rng)
            chosen = rng.permutation(len(self.targets)) < len(self.targets) // 2
            rows = with_targets(self.law, mixed.rows, self.targets, chosen, rng=rng)
            values = mixed.weights @ (self.data.pool[rows] @ self.mask(rng))
            if self.added is not None:
                values += self.added @ self.mask(rng)
            values += self.cell.noise * rng.normal(size=values.shape)
            yield Release(rows, mixed.weights, values, np.isin(self.targets, rows))


def amounts_to(evidence: Floats, inside: Bools, rate: float, began: float) -> dict[str, Any]:
    """A record of `(releases, targets)` log-likelihood ratios: balanced success, and failures as the paper has them."""
    says = evidence > 0
    counted = [int(part.sum()) for part in (says & inside, inside, ~says & ~inside, ~inside)]
    found = Balanced(*counted)
    low, high = found.interval(SHOWN)
    # (13): a row is claimed with its posterior probability, the rate being its prior.
    with np.errstate(over="ignore"):
        claimed = 1 / (1 + (1 - rate) / rate * np.exp(-evidence))
    each = [(says[place] == one).sum() / len(one) for place, one in enumerate(inside)]
    return {
        "targets": evidence.shape[1],
        "releases": len(evidence),
        "balanced_success": found.estimate,
        "low": low,
        "high": high,
        "recognised": float(says[inside].mean()),
        "false_alarms": float(says[~inside].mean()),
        "failed_as_printed": float(1 - claimed[inside].mean()),
        "claimed_of_others": float(claimed[~inside].mean()),
        "ranked_right": ranked(evidence[inside], evidence[~inside]),
        "by_release": [round(float(one), 3) for one in each],
        "seconds": round(time.perf_counter() - began, 1),
    }
