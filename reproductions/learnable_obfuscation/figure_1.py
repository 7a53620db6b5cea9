"""Figure 1: nats by Theorems 2 to 5 over the mixing and the noise, for the whole sample and for one member.

Masking alone (Theorems 2, 3) beside masking, mixing and permutation (4, 5). Type II of Theorems 3 and 5 is left out: as
printed it is no bound (it is 0 for a pool of two), and corrected it is the bound about the whole sample. Beside the
paper's: log-determinants of closest pairs (ours), and the entropy of the membership bit, above which nothing is said.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from leakcap.obfuscation.one_unit import Statements
from reproductions.learnable_obfuscation.cells import Cell, asked_of_figure
from reproductions.learnable_obfuscation.data import Embedded, made_up, read
from reproductions.learnable_obfuscation.member import Member
from reproductions.learnable_obfuscation.published import COLUMNS, TARGETS
from reproductions.learnable_obfuscation.whole_nats import WholeNats

__all__ = ["FILE", "main", "measured_points"]

FILE = "figure_1.json"
ROWS, RELEASED = 1000, 2000
MIXES, NOISES = (1, 2, 5, 10, 20, 50), (0.02, 0.03, 0.05, 0.1, 0.2)
MIX, NOISE = 5, 0.05
DRAWS, LOOKS = 4, 6


def measured_points(
    data: Embedded, points: Sequence[Cell], *, columns: int, device: str, draws: int = DRAWS
) -> list[dict[str, Any]]:
    """A line for every point."""
    whole = WholeNats(data, columns=columns, device=device)
    member = Member(data, columns=columns, backend=None if device == "cpu" else f"torch:{device}")
    targets = np.arange(min(TARGETS, len(data.pool)))
    found = []
    for cell in points:
        rng = np.random.default_rng(5)
        about = whole(cell, draws=draws)
        statements = Statements(member.obfuscated(cell), (1.0,), nats=True)
        told = np.mean([statements.of_draw(rng, swaps=4, units=targets) for _ in range(LOOKS)], axis=0)
        masked = whole.masked_alone(cell, rng=rng, draws=draws)
        rate = float(statements.obfuscated.law.rates.max())
        found.append(
            {
                "setting": list(cell.setting),
                "noise": cell.noise,
                "theorem_2": min(masked),
                "theorem_3": 2 * rate * (1 - rate) * masked[0],
                "theorem_4": min(about["trace_nats_estimate"], about["log_det_nats_estimate"]),
                "theorem_5": float(told[2].mean()),
                "log_det_pairs": float(told[1].mean()),
                "pair_success": 0.5 + 0.5 * float(told[0].mean()),
                "entropy": float(-rate * np.log(rate) - (1 - rate) * np.log1p(-rate)),
            }
        )
        print(", ".join(f"{name} {value}" for name, value in found[-1].items()), flush=True)
    return found


def main(given: Sequence[str] | None = None) -> None:
    """Measure what is missing; `page` draws the picture."""
    options = asked_of_figure(given, str(__doc__), FILE)
    if options is None:
        return
    folder = options.out
    n, m, k = (200, 200, 2) if options.smoke else (ROWS, RELEASED, MIX)
    mixes, noises = ((2, 5), (0.05, 0.1)) if options.smoke else (MIXES, NOISES)
    points = {(k, noise): Cell((n, m, k), noise) for noise in noises}
    points |= {(mix, NOISE): Cell((n, m, mix), NOISE) for mix in mixes}
    lines = measured_points(
        (made_up if options.smoke else read)(learnable=False),
        list(points.values()),
        columns=16 if options.smoke else COLUMNS,
        device=options.backend.removeprefix("torch:"),
    )
    (folder / FILE).write_text(json.dumps(lines, indent=1) + "\n", encoding="utf-8")
