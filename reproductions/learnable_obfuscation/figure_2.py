"""Figure 2: how fast means over draws settle, for the whole sample and for one member; and what a plug-in hides.

The deviation of a mean over L draws is that of one draw over the root of L. It says nothing about the plug-in of Type
II: the log-determinant of an estimated mean is too small on average, by Jensen's inequality, however steady it looks.
Beside it a tangent that other draws have fixed, which is never too small on average.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from leakcap.obfuscation.one_unit import Statements
from leakcap.obfuscation.sampled import draw_mixed
from reproductions.learnable_obfuscation.cells import Cell, asked_of_figure
from reproductions.learnable_obfuscation.data import Embedded, made_up, read
from reproductions.learnable_obfuscation.member import Member, law_of
from reproductions.learnable_obfuscation.published import COLUMNS
from reproductions.learnable_obfuscation.whole_nats import WholeNats

__all__ = ["FILE", "main", "plug_in", "settling"]

FILE = "figure_2.json"
SCENES = (((1000, 1000, 5), 0.05), ((1000, 1000, 20), 0.05), ((1000, 1000, 20), 0.2))
WHOLE, MEMBER = 32, 128  # draws of which the deviation is taken
LENGTHS = (2, 4, 8, 16, 32, 64)  # draws of a plug-in


def settling(data: Embedded, cell: Cell, *, columns: int, device: str, draws: tuple[int, int]) -> dict[str, Any]:
    """Deviations of one draw: Theorem 4 by traces and by log-determinants, Theorem 5 by traces, for one target."""
    rng = np.random.default_rng(6)
    whole = WholeNats(data, columns=columns, device=device)
    found = whole(cell, draws=draws[0])
    member = Member(data, columns=columns, backend=None)
    statements = Statements(member.obfuscated(cell), (1.0,), nats=True)
    told = [statements.of_draw(rng, swaps=1, units=np.array([0]))[2, 0] for _ in range(draws[1])]
    root = np.sqrt(draws[0])
    return {
        "setting": list(cell.setting),
        "noise": cell.noise,
        "theorem_4_trace": found["trace_nats_estimate"],
        "theorem_4_trace_deviation": found["trace_nats_error"] * root,
        "theorem_4_log_det": found["log_det_nats_estimate"],
        "theorem_4_log_det_deviation": found["log_det_nats_error"] * root,
        "theorem_5_trace": float(np.mean(told)),
        "theorem_5_trace_deviation": float(np.std(told, ddof=1)),
    }


def plug_in(data: Embedded, cell: Cell, *, columns: int, lengths: Sequence[int] = LENGTHS) -> list[dict[str, float]]:
    """Type II about the whole sample, by the log-determinant of a mean of L draws and by a tangent at that mean."""
    rng, law = np.random.default_rng(7), law_of(cell, data, columns)
    noise = cell.noise**2 * np.eye(len(law.pairs))

    def covariance() -> Any:
        mixed = draw_mixed(law, rng)
        mixture = mixed.weights @ data.pool[mixed.rows]
        return mixture @ mixture.T / columns + noise

    fresh = [covariance() for _ in range(4)]
    sizes = float(np.mean([np.linalg.slogdet(one)[1] for one in fresh]))
    total, made, found = np.zeros_like(noise), 0, []
    for length in lengths:
        while made < length:
            total += covariance()
            made += 1
        centre = total / made
        size = float(np.linalg.slogdet(centre)[1])
        over = float(np.mean([np.trace(np.linalg.solve(centre, one)) for one in fresh])) - len(centre)
        found.append(
            {
                "draws": length,
                "plug_in": columns / 2 * (size - sizes),
                "tangent": columns / 2 * (size + over - sizes),
            }
        )
    return found


def main(given: Sequence[str] | None = None) -> None:
    """Measure what is missing; `page` draws the picture."""
    options = asked_of_figure(given, str(__doc__), FILE)
    if options is None:
        return
    folder = options.out
    data = (made_up if options.smoke else read)(learnable=False)
    scenes = (((200, 100, 5), 0.05),) if options.smoke else SCENES
    columns = 16 if options.smoke else COLUMNS
    draws = (4, 8) if options.smoke else (WHOLE, MEMBER)
    lines = []
    for setting, noise in scenes:
        cell = Cell(setting, noise)
        lines.append(settling(data, cell, columns=columns, device=options.backend.removeprefix("torch:"), draws=draws))
        print(lines[-1], flush=True)
    first = Cell(*scenes[0])
    steps = plug_in(data, first, columns=columns, lengths=LENGTHS[:3] if options.smoke else LENGTHS)
    print(steps)
    (folder / FILE).write_text(json.dumps({"settling": lines, "plug_in": steps}, indent=1) + "\n", encoding="utf-8")
