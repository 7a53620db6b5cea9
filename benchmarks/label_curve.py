"""Accuracy against epsilon on CIFAR-10 embeddings, by noised sums, votes, and labels privatised one by one.

`python -m benchmarks.label_curve [points] [picture]`. Points that are kept are not measured again; `picture` draws
those that are there, with the epsilons at which one way overtakes another.
"""

from __future__ import annotations

import json
import sys
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from benchmarks.encoded_sets import embeddings
from benchmarks.labels import Task
from benchmarks.records import record
from leakcap import labels
from leakcap.errors import InputError

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # after the choice of a drawing back end

EPSILONS = (0.05, 0.1, 0.18, 0.29, 0.5, 1.0, 1.6, 2.0, 4.0, 8.0)
DRAWS = 2
COMPONENTS = 256  # public, for labels privatised one by one
TEACHERS = ((1.0, 1000), (0.18, 2000), (0.0, 5000))  # by epsilon: more are heard where noise is louder
KEPT = Path(__file__).parent / "curves" / "label-methods.json"
PICTURE = Path(__file__).parents[1] / "docs" / "images" / "label-methods.svg"
NAMES = {
    "ridge": "noised sums (Ridge)",
    "votes": "votes after sums (PATE)",
    "responses": "one by one (Classifier, auto)",
}
WORDS = {"ridge": "sums", "votes": "votes"}


def model_of(method: str, work: Task, epsilon: float, seed: int) -> Any:
    if method == "ridge":
        return labels.Ridge(epsilon, 10, random_state=seed).fit(work.train, work.train_kinds)
    if method == "votes":
        return labels.PATE(
            RidgeClassifier(),
            LogisticRegression(max_iter=300),
            epsilon=epsilon,
            prior=labels.Ridge(0.7 * epsilon, random_state=seed),
            n_teachers=next(count for least, count in TEACHERS if epsilon >= least),
            n_classes=10,
            random_state=seed,
        ).fit(work.train, work.train_kinds)
    seen = labels.auto(epsilon, 10)
    base = LogisticRegression(max_iter=100)
    return labels.Classifier(base, seen, random_state=seed).fit(work.train, seen.privatize(work.train_kinds))


def points() -> None:
    """Every point that is not kept yet."""
    held: dict[str, dict[str, list[float]]] = json.loads(KEPT.read_text()) if KEPT.is_file() else {}
    whole = Task("CIFAR-10 embeddings", *embeddings())
    made = make_pipeline(Normalizer(), PCA(COMPONENTS, random_state=0), StandardScaler()).fit(whole.train)
    few = Task(whole.name, made.transform(whole.train), whole.train_kinds, made.transform(whole.test), whole.test_kinds)
    for method in NAMES:
        for epsilon in EPSILONS:
            found = held.setdefault(method, {}).setdefault(f"{epsilon:g}", [])
            work = few if method == "responses" else whole
            while len(found) < DRAWS:
                try:
                    model = model_of(method, work, epsilon, len(found))
                except InputError:  # so small an epsilon is refused before anything is spent, whatever the seed
                    break
                found.append(round(100 * float(np.mean(model.predict(work.test) == work.test_kinds)), 2))
                KEPT.parent.mkdir(exist_ok=True)
                KEPT.write_text(json.dumps(held, indent=1), encoding="utf-8")
            print(f"{method} {epsilon:g}: {found}", flush=True)


def crossings(first: dict[float, float], second: dict[float, float]) -> list[float]:
    """Epsilons, between those measured, at which the second overtakes the first."""
    shared = sorted(set(first) & set(second))
    found = []
    for low, high in pairwise(shared):
        before, after = second[low] - first[low], second[high] - first[high]
        if before < 0 <= after:
            found.append(float(np.exp(np.interp(0, [before, after], np.log([low, high])))))
    return found


def means() -> dict[str, dict[float, float]]:
    held = json.loads(KEPT.read_text())
    return {name: {float(e): float(np.mean(one)) for e, one in held[name].items() if one} for name in held}


def picture() -> None:
    """The curves, and where they cross."""
    found = means()
    figure, axes = plt.subplots(figsize=(7, 4.6))
    for name, mark in zip(NAMES, ("o-", "s--", "^:"), strict=True):
        axes.plot(list(found[name]), list(found[name].values()), mark, label=NAMES[name])
    overtaken = {name: crossings(found[name], found["responses"]) for name in ("ridge", "votes")}
    for (name, places), side in zip(overtaken.items(), ("left", "right"), strict=True):
        for place in places:
            axes.axvline(place, color="grey", lw=1)
            said = f"one by one level with {WORDS[name]}: ε = {place:.2g}"
            beside = place * (1.03 if side == "left" else 0.97)
            axes.annotate(said, (beside, 70), rotation=90, ha=side, va="center", fontsize=8)
    axes.set(xscale="log", xlabel="ε (delta 1e-5; one by one: 0)", ylabel="test accuracy, %", ylim=(55, 92))
    axes.set_xticks(EPSILONS, [f"{one:g}" for one in EPSILONS], fontsize=8)
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, loc="lower left")
    figure.tight_layout()
    figure.savefig(PICTURE, metadata={"Date": None})
    plt.close(figure)
    listed = "; ".join(
        f"{NAMES[name]} {', '.join(f'{told:.1f} at {e:g}' for e, told in one.items())}" for name, one in found.items()
    )
    record(
        "labels-curve",
        f"{listed}. One by one comes level at epsilon "
        + ", ".join(f"{place:.2g} with {WORDS[name]}" for name, places in overtaken.items() for place in places),
        topic="Private labels",
        claim=f"CIFAR-10 embeddings, 50,000 labels, accuracy against epsilon, {DRAWS} draws each; one by one on "
        f"{COMPONENTS} components",
        command="python -m benchmarks.label_curve",
        asked="crossing points, .05 to 8",
    )


PARTS = {"points": points, "picture": picture}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
