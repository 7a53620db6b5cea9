"""Any classifier by its votes on public rows: how often a student is right, beside its teacher and other ways.

`python -m benchmarks.distilled [adult] [cifar] [networks] [noised-pool]`; `benchmarks.distilled_attacks` attacks the
votes. A third of the rows is public, without labels; a sixth is held back to score on; the rest is private. Splits,
coins and noise differ from fit to fit. Settings of `Distilled` were chosen on another split of each: of Adult, rows
that these splits deal out anew; of CIFAR-10, looking at its test rows, of which about a sixth is held back here.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

import leakcap as lc
from benchmarks.encoded_sets import embeddings
from benchmarks.records import record
from benchmarks.session_networks import one_hidden_layer
from leakcap import estimators
from leakcap.datasets import adult as adult_table
from leakcap.kernels.gpu.device import load

FITS, FIRST = 3, 11
CAPS = {"55": lc.membership(0.55), "60": lc.membership(0.6), "pool-55": lc.pool_membership(0.55)}
WORDS = {"55": "membership .55, bits", "60": "membership .60, bits", "pool-55": "pool .55, all rows"}
COMPONENTS, WORLDS = 128, 128


@dataclass(frozen=True)
class Split:
    """Private, public and held-back rows; as teachers see them, and as linear models do."""

    X: Any
    y: Any
    public: Any
    test: Any
    right: Any
    linear: Any
    linear_test: Any
    linear_public: Any


@dataclass(frozen=True)
class Case:
    """A set of rows, the models on it, and what stands beside them."""

    words: str
    chosen_on: str  # rows by which settings of `Distilled` were chosen
    split: Callable[[int], Split]
    whole: Any
    teacher: Any
    student: Any
    beside: dict[str, Callable[[Split, Any, int], Any]]


def main(*names: str) -> None:
    warnings.simplefilter("ignore")
    for name in names or (*PARTS, *FLAGS):
        if name in FLAGS:
            FLAGS[name]()
            continue
        for cap in CAPS:
            measure(name, cap)


def measure(name: str, cap: str) -> None:
    case = PARTS[name]
    ways = {"teacher on all rows": _plain, "distilled": _distilled} | case.beside
    seen: dict[str, list[float]] = {way: [] for way in ways}
    seconds, blocks = [], 0
    for seed in range(FIRST, FIRST + FITS):
        split = case.split(seed)
        for way, fit in ways.items():
            began = time.process_time()
            found = fit(case, split, CAPS[cap], seed) if way in ("teacher on all rows", "distilled") else None
            predicted = found if found is not None else case.beside[way](split, CAPS[cap], seed)
            if way == "distilled":
                seconds.append(time.process_time() - began)
                predicted, blocks = predicted
            if predicted is not None:
                seen[way].append(float(np.mean(predicted == split.right)))
    told = [f"{way} {_percent(found)}" for way, found in seen.items() if found]
    best = max((way for way in seen if seen[way] and way != "teacher on all rows"), key=lambda way: np.mean(seen[way]))
    text = f"{', '.join(told)}. Best of the private ones: {best}. {blocks} blocks, {np.mean(seconds):.0f} CPU seconds"
    print(name, cap, text, flush=True)
    record(
        f"distilled-{name}-{cap}",
        text,
        topic="Private estimators",
        claim=claim(case, cap),
        command=f"python -m benchmarks.distilled {name}",
        asked="told beside teacher, noised and session-trained",
    )


def networks() -> None:
    """A network trained in a session, on the first of the splits of CIFAR-10."""
    split, found = PARTS["cifar"].split(FIRST), []
    for cap, held in CAPS.items():
        right = 100 * float(np.mean(_session_network(split, held, FIRST) == split.right))
        found.append(f"{WORDS[cap]}: {right:.1f} %")
        print(found[-1], flush=True)
    record(
        "distilled-cifar-networks",
        "; ".join(found),
        topic="Private estimators",
        claim="CIFAR-10 embeddings, 30,000 private rows, a network of 64 trained in a session, beside `Distilled`: "
        "right about rows held back, one split",
        command="python -m benchmarks.distilled networks",
        asked="-",
    )


def noised_pool() -> None:
    """The noised estimator where everybody takes part."""
    found = []
    for case in PARTS.values():
        splits = {seed: case.split(seed) for seed in range(FIRST, FIRST + FITS)}
        right = [
            float(np.mean(_noised_means(split, CAPS["pool-55"], seed) == split.right)) for seed, split in splits.items()
        ]
        found.append(f"{case.words.split(',')[0]} {_percent(right)}")
        print(found[-1], flush=True)
    record(
        "distilled-noised-pool",
        "; ".join(found),
        topic="Private estimators",
        claim="Noised class means under pool .55, beside `Distilled`: right about rows held back, mean of "
        f"{FITS} splits",
        command="python -m benchmarks.distilled noised-pool",
        asked="-",
    )


def claim(case: Case, cap: str) -> str:
    """What is measured, and on what settings were chosen."""
    return (
        f"{case.words}, {WORDS[cap]}: right about rows held back, mean of {FITS} splits. Settings of `Distilled` were "
        f"chosen looking at {case.chosen_on}"
    )


def _percent(found: list[float]) -> str:
    return f"{100 * np.mean(found):.1f} % ± {100 * np.std(found):.1f}"


def _plain(case: Case, split: Split, cap: Any, seed: int) -> Any:
    return clone(case.whole).set_params(random_state=seed).fit(split.X, split.y).predict(split.test)


def _distilled(case: Case, split: Split, cap: Any, seed: int) -> Any:
    classes = np.unique(split.right).tolist()
    model = estimators.Distilled(
        case.teacher, case.student, queries=split.public, classes=classes, cap=cap, random_state=seed
    ).fit(split.X, split.y)
    return model.predict(split.test), model.blocks_


def _is_pool(cap: Any) -> bool:
    return isinstance(cap, type(CAPS["pool-55"]))


def _session_logistic(split: Split, cap: Any, seed: int) -> Any:
    """Gradients of rows, cut to a length that is the root of the number of columns: they are scaled."""
    columns = split.linear.shape[1]
    session = lc.Session((split.linear, split.y), cap=cap, seed=seed)
    model = estimators.LogisticRegression(classes=np.unique(split.right).tolist())
    names = [str(place) for place in range(columns)]
    return session.fit(model, names, str(columns), norm=float(np.sqrt(columns)), share=1.0).predict(split.linear_test)


def _session_boosting(split: Split, cap: Any, seed: int) -> Any:
    low, high = split.public.min(axis=0) - 1, split.public.max(axis=0) + 1
    made = estimators.HistGradientBoostingClassifier(
        classes=np.unique(split.right).tolist(), cap=cap, random_state=seed, options={"bounds": (low, high)}
    )
    return made.fit(split.X, split.y).predict(split.test)


def _noised_logistic(split: Split, cap: Any, seed: int) -> Any:
    """In the first game alone: one of a list of halves, of which an attacker may know a few members."""
    if _is_pool(cap):
        return None
    model = estimators.LogisticRegression(C=0.01, cap=cap, worlds=WORLDS, random_state=seed)
    return model.fit(split.linear, split.y).predict(split.linear_test)


def _noised_means(split: Split, cap: Any, seed: int) -> Any:
    """In the first game one of a list of halves; under a pool cap sums of everybody within bounds by public rows."""
    settings: dict[str, Any] = {"worlds": WORLDS}
    if _is_pool(cap):
        low, high = split.linear_public.min(axis=0), split.linear_public.max(axis=0) + 0.01  # some are alike
        settings = {"classes": np.unique(split.right).tolist(), "options": {"bounds": (low, high)}}
    model = estimators.NearestClassMean(cap=cap, random_state=seed, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that some rows lie outside of the bounds
        return model.fit(split.linear, split.y).predict(split.linear_test)


def _session_network(split: Split, cap: Any, seed: int) -> Any:
    """A hidden layer of 64, as the teachers have."""
    columns, classes = split.linear.shape[1], np.unique(split.right).tolist()
    load().manual_seed(seed)
    module = one_hidden_layer(columns, len(classes))
    session = lc.Session((split.linear, split.y), cap=cap, seed=seed)
    names = [str(place) for place in range(columns)]
    network = estimators.NeuralNetwork(module, classes=classes)
    fitted = session.fit(network, names, str(columns), norm=float(np.sqrt(columns)), share=1.0)
    return fitted.predict(split.linear_test)


def _parts(rows: int, seed: int) -> tuple[Any, Any, Any]:
    order = np.random.default_rng(seed).permutation(rows)
    return np.split(order, [rows // 2, rows // 2 + rows // 3])


def adult(seed: int) -> Split:
    """Categories as numbers for trees, in columns of their own for linear models, scaled by the public rows."""
    table = adult_table()
    y = table["income"].astype(str).str.contains(">").to_numpy().astype(int)
    table = table.drop(columns=["income", "split"])
    kinds = [name for name in table if table[name].dtype.kind not in "iuf"]
    table[kinds] = table[kinds].fillna("none").astype("category")
    wide = pd.get_dummies(table).to_numpy(dtype=float)
    cells = table.assign(**{name: table[name].cat.codes for name in kinds}).to_numpy(dtype=float)
    own, public, test = _parts(len(y), seed)
    scaled = np.log1p(np.abs(wide))
    scaled = (scaled - scaled[public].mean(axis=0)) / np.maximum(scaled[public].std(axis=0), 0.05)
    return Split(cells[own], y[own], cells[public], cells[test], y[test], scaled[own], scaled[test], scaled[public])


def cifar(seed: int) -> Split:
    """128 components of the embeddings, by the public rows."""
    X, y, Xt, yt = embeddings()
    rows, labels = np.vstack([X, Xt]).astype(np.float32), np.concatenate([y, yt])
    own, public, test = _parts(len(labels), seed)
    found = PCA(COMPONENTS, svd_solver="randomized", random_state=0).fit(rows[public[:8000]])
    cells = found.transform(rows).astype(np.float64)
    cells /= cells[public].std()
    return Split(
        cells[own], labels[own], cells[public], cells[test], labels[test], cells[own], cells[test], cells[public]
    )


PARTS = {
    "adult": Case(
        "Adult, 24,421 private rows, boosted trees",
        "another split of the same rows",
        adult,
        HistGradientBoostingClassifier(),
        HistGradientBoostingClassifier(max_iter=30, min_samples_leaf=10, max_leaf_nodes=6),
        HistGradientBoostingClassifier(max_iter=50),
        {
            "session-trained boosting": _session_boosting,
            "session-trained logistic": _session_logistic,
            "noised logistic, first game": _noised_logistic,
        },
    ),
    "cifar": Case(
        "CIFAR-10 embeddings, 30,000 private rows, networks of 64 (also on all rows), the student logistic regression",
        "test rows of CIFAR-10, of which about a sixth is held back here",
        cifar,
        MLPClassifier((64,), max_iter=20, alpha=1e-2),
        MLPClassifier((64,), max_iter=40, learning_rate_init=0.01, alpha=1e-2),
        LogisticRegression(max_iter=200),
        {"session-trained logistic": _session_logistic, "noised class means": _noised_means},
    ),
}

FLAGS = {"networks": networks, "noised-pool": noised_pool}

if __name__ == "__main__":
    main(*sys.argv[1:])
