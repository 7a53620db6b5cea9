"""What the paper says about its figures, in numbers, with the place of each. Nothing is read off a picture."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ANISOTROPIC", "BASELINE", "BUDGETS", "QUOTES", "SPREADS", "Quote", "quotes"]

BUDGETS = tuple(2.0**power for power in range(-7, 3))  # section 6.2: mutual information, in nats
LOWEST, HIGHEST = BUDGETS[0], BUDGETS[-1]
BASELINE, ANISOTROPIC = "the paper: baseline", "the paper: anisotropic"


@dataclass(frozen=True)
class Quote:
    """A number in the paper's text, about budgets from `low` to `high`; `says` is "=", "≈", "<", "≤", ">" or "≥"."""

    figure: str
    data: str
    series: str
    says: str
    value: float
    place: str
    low: float = LOWEST
    high: float = HIGHEST


QUOTES = (
    Quote("3", "Iris", BASELINE, ">", 0.90, "section 6.4"),
    Quote("3", "Rice", BASELINE, ">", 0.90, "section 6.4"),
    Quote("3", "Dry Bean", BASELINE, "≈", 0.70, "section 6.4"),
    Quote("4", "Dry Bean", BASELINE, "≈", 0.85, "caption of Figure 4"),
    Quote("4", "Dry Bean", ANISOTROPIC, ">", 0.80, "section 6.4", low=2**-2),
    Quote("5", "Iris", BASELINE, ">", 0.90, "section 6.5"),
    Quote("5", "Iris", ANISOTROPIC, "≈", 0.41, "section 6.5", low=2**-4, high=2**-4),
    Quote("5", "Rice", ANISOTROPIC, ">", 0.90, "section 6.5", low=2**-1, high=2**-1),
    Quote("5", "Dry Bean", ANISOTROPIC, "≤", 0.50, "section 6.5", high=2.0),
    Quote("6", "Iris", BASELINE, "≈", 0.75, "section 6.5"),
    Quote("6", "Iris", ANISOTROPIC, "≈", 0.75, "section 6.5: minimal losses", low=2**-4),
    Quote("8", "Rice", ANISOTROPIC, "<", 0.20, "caption of Figure 8"),
    Quote("8", "Dry Bean", ANISOTROPIC, "<", 0.20, "caption of Figure 8"),
    Quote("8", "CIFAR-10", ANISOTROPIC, "≈", 0.40, "caption of Figure 8"),
    Quote("9", "Rice", ANISOTROPIC, "≤", 0.05, "section 6.6", low=2**-2),
    Quote("9", "Dry Bean", ANISOTROPIC, "≤", 0.05, "section 6.6", low=2**-3, high=2**-3),
    Quote("9", "CIFAR-10", ANISOTROPIC, "≈", 0.55, "section 6.6", high=2**-7),
    Quote("9", "CIFAR-10", ANISOTROPIC, "≈", 0.33, "section 6.6", low=2**2),
    Quote("10", "Iris", BASELINE, ">", 0.90, "caption of Figure 10"),
    Quote("10", "Iris", ANISOTROPIC, "<", 0.50, "caption of Figure 10", high=2**-3),
    Quote("10", "Rice", BASELINE, "≈", 0.93, "caption of Figure 10"),
    Quote("10", "Rice", ANISOTROPIC, "≈", 0.73, "caption of Figure 10", low=2**-4, high=2**-4),
    Quote("11", "Iris", ANISOTROPIC, "≥", 0.70, "section 6.7", low=2**-2),
    Quote("11", "Rice", BASELINE, "≈", 0.87, "caption of Figure 11"),
    Quote("11", "Rice", ANISOTROPIC, "≈", 0.87, "section 6.7: a negligible loss at all values"),
    Quote("14", "Dry Bean, naive", BASELINE, "=", 0.82, "caption of Figure 14"),
    Quote("14", "Dry Bean, regularised", BASELINE, "=", 0.70, "caption of Figure 14"),
    Quote("14", "Dry Bean, regularised", ANISOTROPIC, "≈", 0.70, "caption of Figure 14: negligible losses", low=2**-3),
)

# Appendix B.3: least and largest sum of the noise variances over 100 sets of worlds, at mutual information 1/2.
SPREADS = {
    ("K-Means", 2): (0.01, 0.27),
    ("K-Means", 128): (0.10, 0.20),
    ("decision tree", 2): (0.06, 1.16),
    ("decision tree", 128): (0.64, 0.86),
}


def quotes(figure: str, data: str) -> list[Quote]:
    """What the text says about one panel of a figure."""
    return [quote for quote in QUOTES if (quote.figure, quote.data) == (figure, data)]
