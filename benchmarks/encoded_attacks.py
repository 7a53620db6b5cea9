"""Attacks on encoded sets: how often they are right at certified settings, and on what is not protected.

`python -m benchmarks.encoded_attacks [NAME ...]`. Half of the rows are drawn, which makes intervals narrowest: with
four fifths and 100 sets a first look at digits left most figures open. Rice came last, with sizes that the encoder
chooses by itself, and nothing was tuned on it.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.preprocessing import MinMaxScaler

import leakcap as lc
from benchmarks.encoded_sets import embeddings
from benchmarks.records import record
from leakcap import datasets
from leakcap.audit.encoded.similarity import matched

RELEASES, TARGETS, SIMULATED, SEED = 200, 32, 20, 1
DRAWS = 512
TOPIC = "Encoded sets"
# Rows of each of two classes, rows drawn, rows of a class in a mean, columns, noise.
TINY = ((2, 2, 1, 2, 0.3), (3, 4, 1, 2, 0.3), (3, 4, 2, 3, 0.5), (4, 4, 1, 2, 0.2))


@dataclass(frozen=True)
class Attacked:
    """A pool, and how it is encoded."""

    rows: Callable[[], tuple[Any, Any]]
    words: str
    cap: float
    settings: dict[str, Any]


def main(*names: str) -> None:
    warnings.simplefilter("ignore", lc.errors.LeakcapWarning)
    for name in names or PARTS:
        PARTS[name]()


def attack(name: str, case: Attacked) -> None:
    """An encoder finds its noise; sets with that noise are attacked."""
    X, y = case.rows()
    began = time.perf_counter()
    encoder = lc.obfuscation.Encoder(**case.settings, cap=case.cap, draws=DRAWS)
    encoder.encode(X, y)
    certificate, seconds = encoder.certificate, time.perf_counter() - began
    found = lc.audit.encoded(encoder, X, y, targets=TARGETS, releases=RELEASES, simulated=SIMULATED, seed=SEED)
    print(f"{name}: noise {certificate.noise:.4g}, {seconds:.0f} s\n{found}", flush=True)
    parts = [
        f"{one.attack} {100 * one.measured:.1f} % ({100 * one.interval[0]:.1f} to {100 * one.interval[1]:.1f})"
        for one in found.findings
        if one.kind == "share" and not one.named
    ]
    verdict = "nothing refuted" if found.holds else "REFUTED"
    record(
        f"attacked-{name}",
        f"{verdict}; certified {100 * certificate.membership_success:.1f} % about the worst row, "
        f"{100 * certificate.mean_success:.1f} % on average; {', '.join(parts)}; {found.seconds:.0f} s",
        topic=TOPIC,
        claim=f"{case.words}, cap {case.cap:g}: {RELEASES} sets, {TARGETS} rows asked about, half of them far out",
        command=f"python -m benchmarks.encoded_attacks {name}",
        asked="every attack that a certificate is about below its bound; chosen plaintexts 2/3 or more",
    )


def rival() -> None:
    """The similarity attack on an encoder by a random network, which has neither noise nor means."""
    seen = []
    for words, (X, _) in (("digits", _digits()), ("CIFAR-10 embeddings", _cifar())):
        rng = np.random.default_rng(SEED)
        rows = X[rng.permutation(len(X))[:500]]
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        order = rng.permutation(len(rows))
        share = float(np.mean(matched(random_network(rows, rng)[order], rows) == order))
        seen.append(f"{words} {100 * share:.1f} %")
    print(f"rival: {seen}")
    record(
        "attacked-random-network",
        ", ".join(seen),
        topic=TOPIC,
        claim="Rows named by similarity, of 500, where a secret network of two layers of 1,024 encodes each by itself",
        command="python -m benchmarks.encoded_attacks rival",
        asked="more than 90 %",
    )


def random_network(rows: Any, rng: np.random.Generator, width: int = 1024, layers: int = 2) -> Any:
    """One row in, one row out: dense layers and what is above 0 of them, by weights that nobody knows."""
    for _ in range(layers):
        rows = np.maximum(rows @ rng.normal(size=(rows.shape[1], width)) * np.sqrt(2 / rows.shape[1]), 0)
    return rows


def listed(releases: int = 1000) -> None:
    """The best possible attacker on pools small enough to list, beside the bound and the insider."""
    seen = []
    for each, drawn, mix, columns, noise in (
        (2, 2, 1, 2, 0.3),
        (3, 4, 1, 2, 0.3),
        (3, 4, 2, 3, 0.5),
        (4, 4, 1, 2, 0.2),
    ):
        codes = np.repeat([0, 1], each)
        X = np.random.default_rng(each).normal(size=(2 * each, columns)) + np.eye(2, columns)[codes]
        encoder = lc.obfuscation.Encoder(columns, mix=mix, rows_sampled=drawn, rows_released=4, noise=noise)
        encoder.encode(X, codes)
        how = {"attacks": ["bayes", "insider"], "targets": 2 * each, "releases": releases, "seed": SEED}
        found = lc.audit.encoded(encoder, X, codes, **how)
        best, inside = (100 * found.findings[place].measured for place in (0, 2))
        seen.append(f"{best:.1f} and {inside:.1f} % (at most {100 * encoder.certificate.mean_success:.1f})")
        assert found.holds
    print(f"listed: {seen}")
    record(
        "attacked-listed",
        "; ".join(seen),
        topic=TOPIC,
        claim="Pools of 4, 6, 6 and 8 rows: the best possible attacker and the insider, all rows on average",
        command="python -m benchmarks.encoded_attacks listed",
        asked="never above the bound",
    )


def _digits() -> tuple[Any, Any]:
    return load_digits(return_X_y=True)


def _cifar() -> tuple[Any, Any]:
    X, y, _, _ = embeddings()
    return X[:5_000], y[:5_000]


def _rice() -> tuple[Any, Any]:
    table = datasets.rice()
    numbers = [name for name in table.columns if table[name].dtype.kind in "iuf"]
    label = next(name for name in table.columns if name not in numbers)
    return MinMaxScaler().fit_transform(table[numbers]), table[label].to_numpy()


CASES = {
    "digits": Attacked(
        _digits,
        "Digits, 850 rows drawn, 400 means of 60, whitened to 40",
        0.60,
        {"mask_dim": 64, "rows_sampled": 850, "rows_released": 400, "mix": 30, "whiten": 40},
    ),
    "cifar": Attacked(
        _cifar,
        "CIFAR-10 embeddings, 2,400 rows of 5,000 drawn, 400 means of 160, whitened to 60",
        0.60,
        {"mask_dim": 100, "rows_sampled": 2_400, "rows_released": 400, "mix": 80, "whiten": 60},
    ),
    "rice": Attacked(_rice, "Rice, sizes by themselves, 400 means", 0.60, {"mask_dim": 7, "rows_released": 400}),
}
PARTS = {**{name: partial(attack, name, case) for name, case in CASES.items()}, "rival": rival, "listed": listed}

if __name__ == "__main__":
    main(*sys.argv[1:])
