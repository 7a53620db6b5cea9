"""Logistic regression trained in a session: how often it is right, beside plain scikit-learn on the same rows.

`python -m benchmarks.session_training [training] [fresh] [--rehearse]`. "training": ten classes of CIFAR-10 from stored
embeddings, with 1,280 numbers a picture. "fresh": data on which nobody tuned the fit. `--rehearse` looks at other
training rows in place of the test rows, and stores nothing.
"""

from __future__ import annotations

import sys
import time
import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import leakcap as lc
from benchmarks.records import record
from leakcap import datasets
from leakcap.errors import BoundsWarning

SEEDS, SPLITS = 5, 10
REHEARSAL = slice(20_000, 30_000)
TOPIC = "Sessions"
ASKED = {
    (10_000, 0.6): "at least 84 %",
    (10_000, 0.55): "at least 83 %",
    (2_000, 0.6): "at least 78 %",
}
C = 10.0  # of the plain fit of embeddings: best of 1, 10 and 100 in rehearsals
FLAGS = ("--rehearse",)
Rows = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Seen:
    """How often fits are right, in per cent, and the CPU seconds of one."""

    right: list[float]
    seconds: float

    @property
    def words(self) -> str:
        return f"{np.mean(self.right):.1f} % ({min(self.right):.1f} to {max(self.right):.1f})"


def embeddings(rehearse: bool) -> tuple[Rows, Rows]:
    """Training and test rows: every row less its own mean, over its own length."""
    with np.load(datasets.data_path("cifar10_effnet_lite0_224.npz")) as held:
        rows, labels = held["q_train"], held["y_train"].astype(np.int64)
        test = (rows[REHEARSAL], labels[REHEARSAL])
        if not rehearse:
            test = (held["q_test"], held["y_test"].astype(np.int64))
        return (_level(rows[:10_000]), labels[:10_000]), (_level(test[0]), test[1])


def _level(rows: np.ndarray) -> np.ndarray:
    cells = rows / 255.0
    cells -= cells.mean(axis=1, keepdims=True)
    return cells / np.linalg.norm(cells, axis=1, keepdims=True)


def in_session(train: Rows, test: Rows, cap: float, seed: int, **declared: Any) -> tuple[float, float]:
    """Per cent right, and CPU seconds, of one fit that may take the whole clock."""
    (X, y), estimator = train, lc.estimators.LogisticRegression(classes=np.unique(train[1]).tolist())
    began = time.process_time()
    session = lc.Session((X, y), cap=cap, seed=seed)
    fitted = session.fit(estimator, target=str(X.shape[1]), share=1.0, **declared)
    seconds = time.process_time() - began
    return 100 * float((fitted.predict(test[0]) == test[1]).mean()), seconds


def plain(train: Rows, test: Rows, seed: int | None, model: Any) -> float:
    """The same for scikit-learn, on all rows, or on those of a fair coin."""
    (X, y), taken = train, slice(None)
    if seed is not None:
        taken = np.flatnonzero(np.random.default_rng(seed).random(len(y)) < 0.5)
    return 100 * float(model.fit(X[taken], y[taken]).score(*test))


def training(rehearse: bool = False) -> None:
    train, test = embeddings(rehearse)
    for (rows, cap), asked in ASKED.items():
        some = (train[0][:rows], train[1][:rows])
        pairs = [in_session(some, test, cap, seed, norm=1.0) for seed in range(SEEDS)]
        seen = Seen([right for right, _ in pairs], float(np.median([seconds for _, seconds in pairs])))
        model = partial(plain, some, test, model=LogisticRegression(C=C, max_iter=500))
        beside = f"{model(seed=None):.1f} % on all rows, {model(seed=0):.1f} % on a half" if cap == 0.6 else ""
        print(f"{rows} rows at {cap}: {seen.words}, {seen.seconds:.1f} CPU s a fit; plain {beside}", flush=True)
        if not rehearse:
            record(
                f"session-training-{rows}-{round(100 * cap)}",
                f"{seen.words}; {seen.seconds:.0f} CPU s a fit"
                + (f"; scikit-learn without a cap: {beside}" * (cap == 0.6)),
                topic=TOPIC,
                claim=f"CIFAR-10 embeddings, 10 classes, {rows:,} training rows of 1,280 numbers: logistic regression "
                f"trained in a session with a whole clock at a membership cap of {cap:.2f}; right on 10,000 test rows, "
                f"mean of {SEEDS} seeds",
                command="python -m benchmarks.session_training training",
                asked=asked,
            )


def _digits() -> tuple[Rows, dict[str, Any]]:
    found = load_digits()
    return (found.data, found.target), {"bounds": (0, 16)}


def _cancer() -> tuple[Rows, dict[str, Any]]:
    found = load_breast_cancer()
    return (found.data, found.target), {}


def _rice() -> tuple[Rows, dict[str, Any]]:
    table = pd.read_csv(datasets.data_path("rice_cammeo_osmancik.csv.gz"))
    rows = table.drop(columns="Class").to_numpy(float)
    return (rows, (table["Class"] == "Osmancik").to_numpy(int)), {}


FRESH = {"digits": _digits, "breast cancer": _cancer, "rice": _rice}


def fresh(rehearse: bool = False) -> None:
    """Three quarters of the rows are trained on; no rehearsal, because nothing is chosen."""
    warnings.simplefilter("ignore", BoundsWarning)  # digits go from 0 to 16, whoever wrote them
    for name, made in FRESH.items():
        (X, y), declared = made()
        found: dict[str, list[float]] = {"session": [], "all": [], "half": []}
        seconds = []
        for seed in range(SPLITS):
            parts = train_test_split(X, y, test_size=0.25, random_state=seed, stratify=y)
            train, test = (parts[0], parts[2]), (parts[1], parts[3])
            right, took = in_session(train, test, 0.6, seed, **declared)
            found["session"].append(right)
            seconds.append(took)
            model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
            found["all"].append(plain(train, test, None, model))
            found["half"].append(plain(train, test, seed, model))
        seen = {kind: Seen(right, float(np.median(seconds))) for kind, right in found.items()}
        words = (
            f"{seen['session'].words}; scikit-learn without a cap {seen['all'].words} on all training rows, "
            f"{seen['half'].words} on half of them; {seen['session'].seconds:.2g} CPU s a fit"
        )
        print(f"{name}: {words}", flush=True)
        if not rehearse:
            record(
                f"session-training-fresh-{name.replace(' ', '-')}",
                words,
                topic=TOPIC,
                claim=f"Fresh data, {name}, {len(train[1]):,} rows of {X.shape[1]} numbers: logistic regression "
                f"trained in a session with a whole clock at a membership cap of .60; right on {len(test[1]):,} other "
                f"rows, mean of {SPLITS} splits",
                command="python -m benchmarks.session_training fresh",
                asked="-",
            )


PARTS = {"training": training, "fresh": fresh}

if __name__ == "__main__":
    for part in [one for one in sys.argv[1:] if one not in FLAGS] or PARTS:
        PARTS[part]("--rehearse" in sys.argv)
