"""Figures printed in the paper's Tables 1 to 5. Accuracies in per cent; failures of the attacker as the paper has them.

A setting is (n, m, k): rows sampled, rows released, rows of a class in a mean.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "ATTACKED",
    "COLUMNS",
    "POOL",
    "PUBLIC",
    "RECONSTRUCTION_PRIOR",
    "TABLES",
    "TARGETS",
    "PrintedCell",
    "Setting",
]

Setting = tuple[int, int, int]
POOL = 50_000  # section 7.1
COLUMNS = 500  # section 7.1: of a released row
PUBLIC = 1_000  # section 7.1: public rows of Tables 2 and 5
TARGETS = 100  # section 7.2: the first rows of the pool
RECONSTRUCTION_PRIOR = 0.16  # section 7.1: a blind guess within .75 of somebody's row


@dataclass(frozen=True)
class PrintedCell:
    """One cell: accuracy, the failure that the paper's theorem claims, and that of differential privacy beside it."""

    accuracy: float
    failure: float | None = None
    beside: float | None = None


def _row(bare: float, *cells: tuple[float, ...]) -> dict[float, PrintedCell]:
    noises = (0.02, 0.03, 0.04, 0.05)[-len(cells) :]
    return {0.0: PrintedCell(bare), **{s: PrintedCell(*cell) for s, cell in zip(noises, cells, strict=True)}}


TABLES: dict[int, dict[Setting, dict[float, PrintedCell]]] = {
    1: {
        (1000, 2000, 5): _row(83.4, (82.3, 0.40, 0), (81.8, 0.56, 0), (80.9, 0.63, 0), (80.1, 0.67, 0)),
        (1000, 4000, 5): _row(84.5, (83.7, 0.21, 0), (83.0, 0.43, 0), (82.6, 0.54, 0), (81.8, 0.60, 0)),
        (1000, 4000, 10): _row(82.8, (82.4, 0.54, 0), (82.1, 0.65, 0), (81.6, 0.69, 0.08), (81.4, 0.73, 0.56)),
        (2000, 4000, 10): _row(84.3, (82.9, 0.39, 0), (82.6, 0.56, 0), (82.0, 0.63, 0.08), (81.8, 0.67, 0.56)),
        (2000, 6000, 15): _row(84.4, (83.1, 0.56, 0), (82.6, 0.66, 0.15), (82.4, 0.71, 0.63), (82.0, 0.74, 0.69)),
        (4000, 6000, 15): _row(84.9, (84.0, 0.49, 0), (83.6, 0.61, 0.15), (83.3, 0.67, 0.63), (82.6, 0.71, 0.69)),
    },
    2: {
        (1000, 2000, 5): _row(84.2, (83.8, 0.59), (83.6, 0.67), (83.2, 0.71), (82.5, 0.74)),
        (1000, 4000, 5): _row(85.0, (84.3, 0.45), (84.0, 0.59), (83.6, 0.66), (83.3, 0.70)),
        (1000, 4000, 10): _row(84.4, (83.6, 0.61), (83.2, 0.70), (82.5, 0.74), (81.9, 0.76)),
        (2000, 4000, 10): _row(84.9, (84.3, 0.50), (84.0, 0.63), (83.5, 0.68), (83.3, 0.72)),
        (2000, 6000, 10): _row(85.2, (84.7, 0.61), (84.3, 0.69), (84.2, 0.73), (83.6, 0.76)),
        (4000, 6000, 10): _row(85.7, (85.1, 0.55), (84.5, 0.65), (84.2, 0.70), (83.6, 0.73)),
    },
    3: {
        (1000, 2000, 5): _row(83.4, (81.7, 0.30, 3e-3), (80.9, 0.61, 0.01), (80.2, 0.70, 0.03)),
        (1000, 4000, 5): _row(84.5, (83.2, 0.14, 3e-7), (82.6, 0.28, 3e-6), (81.6, 0.57, 4e-5)),
        (1000, 4000, 10): _row(82.8, (82.1, 0.33, 5e-12), (81.8, 0.62, 2e-6), (81.3, 0.68, 6e-3)),
        (2000, 4000, 10): _row(84.3, (82.5, 0.18, 7e-3), (82.0, 0.45, 0.05), (81.7, 0.67, 0.11)),
        (2000, 6000, 15): _row(84.4, (82.8, 0.37, 6e-4), (82.5, 0.59, 0.03), (81.9, 0.68, 0.14)),
        (4000, 6000, 15): _row(84.9, (83.7, 0.09, 0.05), (83.3, 0.23, 0.08), (82.8, 0.36, 0.27)),
    },
    5: {
        (1000, 2000, 5): _row(84.2, (83.5, 0.53), (83.0, 0.74), (82.6, 0.83)),
        (1000, 4000, 5): _row(85.0, (84.1, 0.36), (83.8, 0.58), (83.4, 0.66)),
        (1000, 4000, 10): _row(84.4, (83.1, 0.71), (82.7, 0.73), (82.2, 0.84)),
        (2000, 4000, 10): _row(84.9, (84.2, 0.43), (83.7, 0.64), (83.4, 0.77)),
        (2000, 6000, 10): _row(85.2, (84.5, 0.34), (84.1, 0.54), (83.7, 0.67)),
        (4000, 6000, 10): _row(85.7, (84.8, 0.24), (84.3, 0.48), (83.9, 0.61)),
    },
}
# Table 4: how often the paper's own attack failed, by setting and noise.
ATTACKED: dict[Setting, dict[float, float]] = {
    (1000, 2000, 5): {0.03: 0.44, 0.04: 0.78, 0.05: 0.84},
    (1000, 4000, 5): {0.03: 0.19, 0.04: 0.50, 0.05: 0.73},
    (1000, 4000, 10): {0.03: 0.45, 0.04: 0.78, 0.05: 0.79},
    (2000, 4000, 10): {0.03: 0.34, 0.04: 0.65, 0.05: 0.74},
    (2000, 6000, 15): {0.03: 0.55, 0.04: 0.81, 0.05: 0.87},
    (4000, 6000, 15): {0.03: 0.36, 0.04: 0.60, 0.05: 0.71},
}
