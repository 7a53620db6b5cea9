"""What a cell tells about one member: certified for every unit of the pool, and the paper's bound for its targets.

Certified is balanced success, by total variation of closest pairs, for all units together. Nats are means over draws
for the paper's targets alone, as the paper has them: estimates, printed as such.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from leakcap.obfuscation.obfuscated import Obfuscated, farthest
from leakcap.obfuscation.one_unit import Statements, UnitEffort, certify_units
from leakcap.obfuscation.sampled import MixingLaw, all_class_pairs
from reproductions.learnable_obfuscation.cells import Cell
from reproductions.learnable_obfuscation.data import Embedded
from reproductions.learnable_obfuscation.encoded import design_of, mixture
from reproductions.learnable_obfuscation.published import TARGETS

__all__ = ["Member", "law_of"]

GAMMA = 1e-6
WIDTH = 0.005  # of success: drawn until everybody's bound is this close to the mean
DRAWS, PILOT = 256, 4
LOOKS, SWAPS = 32, 16  # draws for the nats of the targets, and partners in each


def law_of(cell: Cell, data: Embedded, columns: int) -> MixingLaw:
    design = design_of(cell.setting, data, columns)
    pairs = all_class_pairs(design.classes, design.released_per_pair)
    return MixingLaw(data.labels, design.sampled_per_class, design.mix, pairs, design.block_dim)


class Member:
    """Measures cells of one pool, which is sent to the device once."""

    def __init__(self, data: Embedded, *, columns: int, backend: str | None) -> None:
        self.data, self.columns, self.backend = data, columns, backend
        self._first: Obfuscated | None = None

    def obfuscated(self, cell: Cell) -> Obfuscated:
        """The release of a cell; public rows are mixed once and known to the attacker."""
        added = mixture(cell.setting, self.data, self.columns, 7).added if cell.learnable else None
        found = Obfuscated(
            self.data.pool,
            law_of(cell, self.data, self.columns),
            cell.noise,
            public=added,
            backend=self.backend,
        )
        if self._first is None:
            found.__dict__["reach"] = farthest(self.data.pool, found.law)
            self._first = found
        first = self._first
        for name in ("reach", "parts", "_device"):  # of the pool and its labels alone
            found.__dict__[name] = getattr(first, name)
        return found

    def __call__(self, cell: Cell, *, seed: int = 1) -> dict[str, Any]:
        """Certified success of everybody, and nats about the targets by traces and log-determinants."""
        began = time.perf_counter()
        found, rng = self.obfuscated(cell), np.random.default_rng(seed)
        rates = found.law.rates
        bounds = certify_units(
            found, effort=UnitEffort(pilot=PILOT, draws=DRAWS), gamma=GAMMA, rng=rng, width=WIDTH, alarms=()
        )
        targets = np.arange(min(TARGETS, len(self.data.pool)))
        statements = Statements(found, (1.0,), nats=True)
        told = np.array([statements.of_draw(rng, swaps=SWAPS, units=targets) for _ in range(LOOKS)])
        mean, error = told.mean(axis=0), told.std(axis=0, ddof=1) / np.sqrt(LOOKS)
        worst = mean.argmax(axis=1)
        return {
            "units": len(self.data.pool),
            "rate": float(rates.max()),
            "success_certified": bounds.worst,
            "mean_success_certified": bounds.mean_success,
            "gamma": GAMMA,
            "draws": bounds.draws,
            "targets": len(targets),
            "target_success_estimate": 0.5 + 0.5 * float(mean[0].max()),
            "log_det_nats_estimate": float(mean[1].max()),
            "trace_nats_estimate": float(mean[2].max()),
            "trace_nats_error": float(error[2][worst[2]]),
            "looks": LOOKS,
            "seconds": round(time.perf_counter() - began, 1),
        }
