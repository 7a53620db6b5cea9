"""Sets of rows with labels to judge `labels.advise` by: five are as old as its second rule, `last-...` as its third.

`later-...` were first measured when today's rule stood.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from benchmarks.labels import SPLIT, Task, task
from leakcap import datasets

ROWS, JUDGED = 8000, 4000


def fresh(shape: str) -> Task:
    """The set of one of `SHAPES`: several kinds of classes, rows and columns."""
    if shape in LATER:
        return LATER[shape]()
    made = SHAPES[shape]
    rows, kinds = made(np.random.default_rng(2026))
    rows = (rows - rows[:ROWS].mean(axis=0)) / np.maximum(rows[:ROWS].std(axis=0), 1e-6)
    return Task(str(made.__doc__).rstrip("."), rows[:ROWS], kinds[:ROWS], rows[ROWS:], kinds[ROWS:])


def gaussian(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Five Gaussian classes, each with a spread of its own."""
    kinds = rng.integers(5, size=ROWS + JUDGED)
    turns = rng.standard_normal((5, 20, 20)) / np.sqrt(20)
    noise = rng.standard_normal((len(kinds), 20))
    return 0.4 * rng.standard_normal((5, 20))[kinds] + np.einsum("ni,nij->nj", noise, turns[kinds]), kinds


def bent(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Four classes with bent borders."""
    rows = rng.standard_normal((ROWS + JUDGED, 12))
    height = rows[:, 0] + 0.7 * rows[:, 1] ** 2 + rows[:, 2] * rows[:, 3] + 0.5 * rng.standard_normal(len(rows))
    return rows, np.digitize(height, [-0.5, 0.5, 1.6])


def unequal(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Six unequal classes that overlap."""
    shares = 1.0 / np.arange(1, 7) ** 1.5
    kinds = rng.choice(6, ROWS + JUDGED, p=shares / shares.sum())
    return 0.35 * rng.standard_normal((6, 30))[kinds] + rng.standard_normal((len(kinds), 30)), kinds


def many(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Thirty classes."""
    kinds = rng.integers(30, size=ROWS + JUDGED)
    return 0.8 * rng.standard_normal((30, 25))[kinds] + rng.standard_normal((len(kinds), 25)), kinds


def words(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Counts of 100 words in texts of six topics."""
    kinds = rng.integers(6, size=ROWS + JUDGED)
    usual = rng.gamma(0.5, size=100)
    topics = usual * np.exp(0.5 * rng.standard_normal((6, 100)))
    lengths = rng.gamma(4.0, 8.0, size=len(kinds))
    return rng.poisson(lengths[:, None] * (topics / topics.sum(axis=1, keepdims=True))[kinds]).astype(float), kinds


def ordered(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Seven steps of a score with noise."""
    rows = rng.standard_normal((ROWS + JUDGED, 18)) @ rng.standard_normal((18, 18))
    score = rows @ rng.standard_normal(18)
    score = score / score.std() + 0.3 * rng.standard_normal(len(rows))
    return rows, np.digitize(score, np.quantile(score, np.arange(1, 7) / 7))


def mixed(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Three classes of yes-or-no columns and heavy tails, a tenth of the labels wrong."""
    count = ROWS + JUDGED
    rows = np.hstack([rng.random((count, 30)) < rng.uniform(0.05, 0.6, 30), rng.standard_t(3, (count, 10))]).astype(
        float
    )
    kinds = (rows @ rng.standard_normal((40, 3)) + rng.gumbel(size=(count, 3))).argmax(axis=1)
    return rows, np.where(rng.random(count) < 0.1, rng.integers(3, size=count), kinds)


SHAPES: dict[str, Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]] = {
    "gaussian": gaussian,
    "bent": bent,
    "unequal": unequal,
    "many": many,
    "words": words,
    "last-ordered": ordered,
    "last-mixed": mixed,
}


def _aside(count: int) -> np.ndarray:
    return np.random.default_rng(SPLIT).permutation(count) >= int(0.7 * count)


def rice() -> Task:
    grains = datasets.rice()
    return task("Rice", grains.drop(columns="Class"), pd.factorize(grains["Class"], sort=True)[0], _aside(len(grains)))


def heart() -> Task:
    people = datasets.heart_disease().dropna()
    sick = (people["num"] > 0).to_numpy(int)
    return task("Heart disease", people.drop(columns="num"), sick, _aside(len(people)))


def few() -> Task:
    """Nine classes by scores of 80 columns that go together, and few rows."""
    rng, count, trained = np.random.default_rng(2027), 6000, 2000
    rows = rng.standard_normal((count, 80)) @ (rng.standard_normal((80, 80)) / np.arange(1, 81) ** 0.5)
    rows = (rows - rows[:trained].mean(axis=0)) / rows[:trained].std(axis=0)
    kinds = (0.5 * rows @ rng.standard_normal((80, 9)) + rng.gumbel(size=(count, 9))).argmax(axis=1)
    return Task("Nine classes, 80 columns", rows[:trained], kinds[:trained], rows[trained:], kinds[trained:])


LATER: dict[str, Callable[[], Task]] = {"later-rice": rice, "later-heart": heart, "later-few": few}
