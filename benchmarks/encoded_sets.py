"""Encoded sets: how long 50,000 rows take to encode, and what a model loses by learning from encoded rows.

Accuracy is on CIFAR-10 embeddings, by ridge regression, the simplest model that a server can train. Its penalty is
chosen on one half of the test rows and told on the other, for encoded rows and for the same rows un-encoded alike.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import Ridge

import leakcap as lc
from benchmarks.records import record
from leakcap.noise.entropy import Seeded
from leakcap.obfuscation.design import Sizes
from leakcap.obfuscation.mixing import mixed_rows, pair_labels, pairs, sampled_rows
from leakcap.obfuscation.rows import RowRule

PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
# Rows sampled, rows released, rows of a class in a mean, noise.
CASES = ((1_000, 2_000, 5, 0.0), (40_000, 2_000, 200, 0.0), (40_000, 2_000, 200, 0.0159))


def main(*parts: str) -> None:
    warnings.simplefilter("ignore", lc.RepeatedReleaseWarning)
    for part in parts or PARTS:
        PARTS[part]()


def speed(rounds: int = 3) -> None:
    """A table of 50,000 rows, and as many rows of an embedding, beside the products that masking them all takes."""
    seen = []
    for columns, width in ((20, 20), (1280, 500)):
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(50_000, columns)), np.arange(50_000) % 10
        mask = rng.normal(size=(columns, width))
        encoding, masking = [], []
        for _ in range(rounds):
            encoder = lc.obfuscation.Encoder(width, rows_sampled=40_000, mix=200, noise=0.0159)
            encoding.append(_seconds(encoder.encode, X, y))
            masking.append(_seconds(np.matmul, X, mask))
        taken, beside = float(np.median(encoding)), float(np.median(masking))
        seen.append(
            f"{columns:,} columns: {taken:.1f} s ({taken / beside:.1f} times one product of all rows with a mask)"
        )
        print(seen[-1])
    record(
        "obfuscation-speed",
        "; ".join(seen),
        topic="Encoded sets",
        claim="50,000 rows of ten classes encoded: 40,000 drawn, 2,000 means of 400, no ledger",
        command="python -m benchmarks.encoded_sets speed",
        asked="seconds",
    )


def accuracy() -> None:
    """Encoded rows beside the same rows un-encoded: sampled and mixed alike, neither masked nor noised."""
    X, y, Xt, yt = embeddings()
    unit = RowRule()
    for sampled, released, mix, noise in CASES:
        encoder = lc.obfuscation.Encoder(500, rows_sampled=sampled, rows_released=released, mix=mix, noise=noise)
        encoded = encoder.encode(X, y)
        found = _best(*encoded, lambda model, encoder=encoder: encoder.predict(model, Xt) == yt)
        sizes = Sizes.of(mask_dim=500, mix=mix, rows_sampled=sampled, rows_released=released, blocks=1)
        design, randomness = sizes.design(X.shape[1], np.bincount(y)), Seeded(1)
        halves = pairs(design)
        mixed = mixed_rows(unit(X), sampled_rows(y, design, randomness), halves, mix=mix, randomness=randomness)
        labels = pair_labels(*halves, design.classes)
        plain = _best(mixed, labels, lambda model: model.predict(unit(Xt)).argmax(axis=1) == yt)
        print(f"{sampled:,} {released:,} {mix} noise {noise}: encoded {found:.1%}, un-encoded {plain:.1%}")
        record(
            f"obfuscation-accuracy-{sampled}-{mix}-{str(noise).partition('.')[2]}",
            f"{100 * found:.1f} %; the same rows un-encoded {100 * plain:.1f} %",
            topic="Encoded sets",
            claim=f"CIFAR-10 embeddings, ridge: {sampled:,} drawn, {released:,} means of {2 * mix}, noise {noise:g}",
            command="python -m benchmarks.encoded_sets accuracy",
            asked="within 3 points" if noise == 0 else "-",
        )


def _best(rows: Any, labels: Any, right: Any) -> float:
    """Accuracy on one half of the test rows, with the penalty that does best on the other."""
    hits = np.array([right(Ridge(penalty).fit(rows, labels)) for penalty in PENALTIES])
    return float(hits[hits[:, ::2].mean(axis=1).argmax(), 1::2].mean())


def embeddings() -> tuple[Any, Any, Any, Any]:
    stored = np.load(Path(os.environ["LEAKCAP_DATA"]) / "cifar10_effnet_lite0_224.npz")
    X, Xt = (((stored[name] / np.float32(255)) ** 2 * 6).astype(np.float64) for name in ("q_train", "q_test"))
    return X, stored["y_train"].astype(np.intp), Xt, stored["y_test"].astype(np.intp)


def _seconds(work: Any, *given: Any) -> float:
    began = time.perf_counter()
    work(*given)
    return time.perf_counter() - began


PARTS = {"speed": speed, "accuracy": accuracy}

if __name__ == "__main__":
    main(*sys.argv[1:])
