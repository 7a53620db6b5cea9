"""Every mechanism for labels."""

from __future__ import annotations

from leakcap import labels

PRIOR = [0.5, 0.3, 0.15, 0.05]


def made(epsilon, n_classes=4):
    return {
        "krr": labels.KRR(epsilon, n_classes),
        "unary": labels.UnaryBits(epsilon, n_classes),
        "optimised": labels.UnaryBits(epsilon, n_classes, optimised=True),
        "subset": labels.SubsetSelection(epsilon, n_classes, size=2),
        "prior": labels.RRWithPrior(epsilon, PRIOR),
    }
