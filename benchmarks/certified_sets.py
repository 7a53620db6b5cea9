"""What is learnt from encoded sets under a cap that every row of the pool keeps, beside the rows themselves.

`python -m benchmarks.certified_sets [NAME ...] [torch:cuda]`: an encoder finds its noise and certifies it; five encoded
sets with that noise are drawn, and a network of three layers and ridge regression learn from each. Accuracy is told on
test rows of odd places; the penalty of the ridge is that which does best on even ones.

On pools of unequal classes `balanced_sets` tells more, by the mean of the classes' accuracies.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.linear_model import Ridge
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

import leakcap as lc
from benchmarks.encoded_sets import PENALTIES, embeddings
from benchmarks.records import record
from benchmarks.three_layers import three_layers
from leakcap import datasets

TRIALS = 5
DRAWS = 1024
PUBLIC = 1000  # rows that are nobody's secret, and not in the pool


@dataclass(frozen=True)
class Rows:
    """A pool, and test rows."""

    X: Any
    y: Any
    asked: Any
    answers: Any


@dataclass(frozen=True)
class Case:
    """A setting: arguments of the encoder, and whose rows."""

    rows: Callable[[], Rows]
    words: str
    cap: float
    settings: dict[str, Any]
    asked: str = "-"
    public: bool = False
    trials: int = TRIALS
    queries: int = field(default=10_000)


def main(*words: str) -> None:
    warnings.simplefilter("ignore", lc.RepeatedReleaseWarning)
    backend = next((word for word in words if word.startswith("torch:")), None)
    for name in [word for word in words if word != backend] or [one for one in PARTS if not one.startswith("cifar")]:
        measure(name, PARTS[name], backend)


def measure(name: str, case: Case, backend: str | None) -> None:
    rows, device = case.rows(), "cpu" if backend is None else backend.removeprefix("torch:")
    X, y, public = rows.X, rows.y, None
    if case.public:
        some = np.random.default_rng(0).permutation(len(X))
        public, X, y = (X[some[:PUBLIC]], y[some[:PUBLIC]]), X[some[PUBLIC:]], y[some[PUBLIC:]]
    began = time.perf_counter()
    encoder = lc.obfuscation.Encoder(**case.settings, cap=case.cap, public=public, draws=DRAWS, backend=backend)
    first = encoder.encode(X, y)
    seconds, certificate = time.perf_counter() - began, encoder.certificate
    network, ridge = [], []
    for trial in range(case.trials):
        made, encoded = encoder, first
        if trial:
            made = lc.obfuscation.Encoder(**case.settings, noise=certificate.noise, public=public, draws=0)
            encoded = made.encode(X, y)
        found = _accuracies(made, encoded, rows, case.queries, device)
        network.append(found[0])
        ridge.append(found[1])
        print(f"{name} {trial}: network {found[0]:.1%}, ridge {found[1]:.1%}", flush=True)
    plain = _un_encoded(rows, device)
    seen = (
        f"certified {100 * certificate.membership_success:.2f} % about the worst of {len(X):,} rows "
        f"({100 * certificate.mean_success:.1f} % on average), noise {certificate.noise:.4g}, {seconds:.0f} s; network "
        f"{told_of(network)}, ridge {told_of(ridge)}; un-encoded {100 * plain[0]:.1f} % and {100 * plain[1]:.1f} %"
    )
    print(f"{name}: {seen}", flush=True)
    record(
        f"encoded-{name}",
        seen,
        machine=None if backend is None else "one H200",
        topic="Encoded sets",
        claim=f"{case.words}, cap {case.cap:g}: {case.trials} encoded sets, confidence 1 - 1e-6",
        command=f"python -m benchmarks.certified_sets {name} {backend or ''}".strip(),
        asked=case.asked,
    )


def _accuracies(encoder: Any, encoded: Any, rows: Rows, queries: int, device: str) -> tuple[float, float]:
    """Of the network, and of ridge regression."""
    asked, answers = rows.asked[:queries], rows.answers[:queries]
    network = three_layers(*encoded, classes=encoder.design.classes, device=device)
    told = float(np.mean(encoder.predict(network, asked[1::2]) == answers[1::2]))
    hits = [encoder.predict(Ridge(size).fit(*encoded), asked) == answers for size in PENALTIES]
    best = max(hits, key=lambda one: one[0::2].mean())
    return told, float(best[1::2].mean())


def _un_encoded(rows: Rows, device: str) -> tuple[float, float]:
    """The same models on all rows of the pool as they are, each of length 1."""
    unit = [one / np.maximum(np.linalg.norm(one, axis=1), 1e-12)[:, None] for one in (rows.X, rows.asked)]
    names, codes = np.unique(rows.y, return_inverse=True)
    shares = np.eye(len(names))[codes]
    network = three_layers(unit[0], shares, classes=len(names), epochs=20, device=device)
    import torch  # noqa: PLC0415

    with torch.no_grad():
        scores = network(torch.as_tensor(unit[1], dtype=torch.float32, device=device)).cpu().numpy()
    hits = [names[Ridge(size).fit(unit[0], shares).predict(unit[1]).argmax(axis=1)] for size in PENALTIES]
    best = max(hits, key=lambda one: (one == rows.answers)[0::2].mean())
    return tuple(float(np.mean((one == rows.answers)[1::2])) for one in (names[scores.argmax(axis=1)], best))  # type: ignore[return-value]


def told_of(found: list[float]) -> str:
    """Median, least and most."""
    return f"{100 * np.median(found):.1f} % ({100 * min(found):.1f} to {100 * max(found):.1f})"


def cifar() -> Rows:
    return Rows(*embeddings())


def beans() -> Rows:
    table = datasets.dry_bean()
    return _split(table.drop(columns="Class"), table["Class"])


def adult() -> Rows:
    table = datasets.adult()
    return _split(table.drop(columns=["income", "split", "fnlwgt"], errors="ignore"), table["income"].astype(str))


def _split(table: Any, labels: Any) -> Rows:
    """Two thirds are the pool; columns from 0 to 1, categories as columns of their own, by the pool's own scale."""
    numbers = [name for name in table.columns if table[name].dtype.kind in "iuf"]
    others = [name for name in table.columns if name not in numbers]
    test = np.arange(len(table)) % 3 == 2
    parts = [MinMaxScaler().fit(table.loc[~test, numbers]).transform(table[numbers])]
    if others:
        told = OneHotEncoder(handle_unknown="ignore", sparse_output=False).fit(table.loc[~test, others].astype(str))
        parts.append(told.transform(table[others].astype(str)))
    rows, answers = np.hstack(parts), labels.to_numpy()
    return Rows(rows[~test], answers[~test], rows[test], answers[test])


BIG = {"rows_sampled": 40_000, "rows_released": 2_000, "mix": 200}
WHITE = {**BIG, "mask_dim": 1280, "whiten": 100}
PLAIN = {**BIG, "mask_dim": 500}
LEARNT = {"rows_sampled": 39_000, "rows_released": 2_000, "mix": 200, "mask_dim": 500}
FORTY = "CIFAR-10 embeddings, 40,000 rows drawn, 2,000 means of 400"
FLAGS = ("torch:cuda", "torch:cpu")
PARTS = {
    "cifar-white-60": Case(cifar, f"{FORTY}, whitened to 100, masked to 1,280", 0.60, WHITE, "80 %"),
    "cifar-white-55": Case(cifar, f"{FORTY}, whitened to 100, masked to 1,280", 0.55, WHITE, "77 %"),
    "cifar-60": Case(cifar, f"{FORTY}, as they are, masked to 500", 0.60, PLAIN, "80 %"),
    "cifar-55": Case(cifar, f"{FORTY}, as they are, masked to 500", 0.55, PLAIN, "77 %"),
    "cifar-public-60": Case(
        cifar,
        "CIFAR-10 embeddings, 39,000 rows drawn of 49,000, 2,000 means of 400, masked to 500, 1,000 public rows added",
        0.60,
        LEARNT,
        public=True,
        trials=3,
        queries=2_000,
    ),
    "cifar-white-public-60": Case(
        cifar,
        "CIFAR-10 embeddings, 39,000 rows drawn of 49,000, 2,000 means of 400, whitened to 100, masked to 1,280, 1,000 "
        "public rows added",
        0.60,
        {**LEARNT, "mask_dim": 1280, "whiten": 100},
        public=True,
        trials=3,
        queries=2_000,
    ),
}
MIXED = {"rows_released": 980}
PARTS |= {
    "beans-60": Case(beans, "Dry Bean", 0.60, {"rows_released": 980, "mask_dim": 16, "mix": 60}),
    "beans-white-60": Case(beans, "Dry Bean, whitened to 8", 0.60, {**MIXED, "mask_dim": 16, "mix": 60, "whiten": 8}),
    "beans-white-55": Case(beans, "Dry Bean, whitened to 8", 0.55, {**MIXED, "mask_dim": 16, "mix": 60, "whiten": 8}),
    "adult-60": Case(adult, "Adult", 0.60, {"rows_released": 400, "mask_dim": 100, "mix": 400}),
    "adult-white-60": Case(
        adult, "Adult, whitened to 30", 0.60, {"rows_released": 400, "mask_dim": 100, "mix": 400, "whiten": 30}
    ),
    "adult-white-55": Case(
        adult, "Adult, whitened to 30", 0.55, {"rows_released": 400, "mask_dim": 100, "mix": 400, "whiten": 30}
    ),
}

if __name__ == "__main__":
    main(*sys.argv[1:])
