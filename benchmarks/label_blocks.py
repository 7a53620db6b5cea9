"""BlockRR (Liu and Ding, arXiv 2602.03277) beside randomised response with a prior, for classes of unequal shares.

`python -m benchmarks.label_blocks [kept] [beans] [adult]`. One prior, the classes' shares, taken as public, for all
labels; a response is then a table of chances, a row for each label. The tables are compared by how many labels they
keep, and by what logistic regression learns from the responses.

BlockRR as in its authors' public code (github.com/yuyin132/BlockRR, `randomized.py`; the paper's own text was not read
beyond its abstract): classes are major if their share is at least `e^(-1/sigma)` times the largest, else minor. A
major label answers like randomised response among major classes; a minor one has a fixed chance `1/C` for each of the
`alike` largest classes. Two chances, `beta` and `gamma`, follow from rows that sum to 1. `sigma = 1` and `alike = 1`
are the code's defaults. Differs from that code: its prior is counted on 1 % of the labels with Laplace noise; here all
tables have the same public one.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog
from scipy.special import xlogy

from benchmarks.labels import LINEAR, Task, adult, diabetes, dry_bean, plain
from benchmarks.records import record
from leakcap import labels
from leakcap.errors import InputError

Table = npt.NDArray[np.float64]
EPSILONS = (0.5, 1.0, 2.0, 3.0)
DRAWS = 3
# Pictures of each class in the two imbalanced variants of CIFAR-10 that BlockRR was judged by.
PICTURES = {
    "CIFAR-10 variant 1": (5000, 4900, 4700, 4600, 4500, 4800, 1000, 1500, 1000, 1500),
    "CIFAR-10 variant 2": (5000, 4900, 4700, 4600, 4500, 4800, 600, 500, 700, 400),
}


def randomised(epsilon: float, prior: Table) -> Table:
    """Plain randomised response."""
    return _normal(np.where(np.eye(len(prior), dtype=bool), np.exp(epsilon), 1.0))


def with_prior(epsilon: float, prior: Table) -> Table:
    """Randomised response among the likeliest classes; how many of them, as leakcap takes it."""
    likely = labels.RRWithPrior(epsilon, prior).sizes[0]
    inside = np.argsort(-prior, kind="stable")[:likely]
    found = np.zeros((len(prior), len(prior)))
    found[:, inside] = 1.0
    found[inside, inside] = np.exp(epsilon)
    return _normal(found)


def blocks(epsilon: float, prior: Table, sigma: float = 1.0, alike: int = 1) -> Table:
    """BlockRR."""
    count, grown = len(prior), np.exp(epsilon)
    major = prior >= np.exp(-1 / sigma) * prior.max()
    first, second = int(major.sum()), int((~major).sum())
    alike = min(alike, first) if second else 0
    # A major row: (grown + first - 1) beta + second gamma = 1. A minor one: alike/C + (first - alike) beta
    # + (grown + second - 1) gamma = 1.
    rows = [[grown + first - 1, second], [first - alike, grown + second - 1]]
    beta, gamma = np.linalg.solve(rows, [1.0, 1 - alike / count])
    found = np.where(major, beta, gamma) * np.where(np.eye(count, dtype=bool), grown, 1.0)
    same = np.argsort(-prior, kind="stable")[:alike]
    found[np.ix_(~major, same)] = 1 / count
    return np.asarray(found)


def best(epsilon: float, prior: Table) -> Table:
    """Of all tables that are epsilon-private, one that keeps most labels: a linear programme."""
    count = len(prior)
    cell = np.arange(count * count).reshape(count, count)
    above = [(cell[a, o], cell[b, o]) for o in range(count) for a in range(count) for b in range(count) if a != b]
    bounds = np.zeros((len(above), count * count))
    for place, (one, other) in enumerate(above):
        bounds[place, one], bounds[place, other] = 1.0, -np.exp(epsilon)
    sums = np.kron(np.eye(count), np.ones(count))
    found = linprog(
        -np.diag(prior).ravel(), A_ub=bounds, b_ub=np.zeros(len(above)), A_eq=sums, b_eq=np.ones(count), method="highs"
    )
    return np.asarray(found.x.reshape(count, count))


TABLES: dict[str, Callable[[float, Table], Table]] = {
    "randomised response": randomised,
    "BlockRR": blocks,
    "with a prior": with_prior,
}


def loss(table: Table) -> float:
    """The epsilon of a table."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.log(table.max(axis=0) / table.min(axis=0))
    return float(ratios[table.max(axis=0) > 1e-12].max())


def kept(table: Table, prior: Table) -> float:
    """Share of labels that stay, in %."""
    return 100 * float(prior @ np.diag(table))


def kept_by_class(table: Table) -> float:
    """Mean over classes of the share that stays, in %."""
    return 100 * float(np.diag(table).mean())


def nats(table: Table, prior: Table) -> float:
    """What a response tells about its label."""
    seen = prior @ table
    return float(prior @ xlogy(table, table).sum(axis=1) - xlogy(seen, seen).sum())


class Response(labels.Mechanism):
    """A table of chances as a mechanism, to learn from; drawn without care for bits, so for benchmarks alone."""

    name = "a table of chances"

    def __init__(self, epsilon: float, table: Table, rng: np.random.Generator) -> None:
        super().__init__(epsilon, len(table))
        self.table, self._rng = table, rng

    def _observe(self, codes: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        ends = np.cumsum(self.table, axis=1)[codes]
        found = (self._rng.random(len(codes))[:, None] * ends[:, -1:] > ends).sum(axis=1)
        return np.minimum(found, self.n_classes - 1)

    def scores(self, observed: npt.ArrayLike) -> npt.NDArray[np.float32]:
        with np.errstate(divide="ignore"):
            return np.log(self.table[:, np.asarray(observed)].T).astype(np.float32)

    def _information(self, prior: Table) -> Table:
        return np.array([nats(self.table, row) for row in prior])

    def _guesses(self, prior: Table) -> Table:
        return np.array([(row[:, None] * self.table).max(axis=0).sum() for row in prior])


def keeping() -> None:
    """How many labels stay, and what a response tells: closed forms, nothing is drawn."""
    works = {one.name: np.bincount(one.train_kinds) for one in (dry_bean(), adult(), next(diabetes()))}
    lines = []
    for name, counts in {**works, **{name: np.array(counts) for name, counts in PICTURES.items()}}.items():
        prior = counts / counts.sum()
        for epsilon in EPSILONS:
            tables = {one: make(epsilon, prior) for one, make in TABLES.items()}
            most = kept(best(epsilon, prior), prior)
            told = ", ".join(
                f"{one} {kept(table, prior):.1f} / {kept_by_class(table):.1f} / {nats(table, prior):.3f}"
                for one, table in tables.items()
            )
            line = f"{name}, epsilon {epsilon:g}: {told}; best of all tables {most:.1f}"
            print(line, flush=True)
            lines.append(line)
    record(
        "labels-blocks-kept",
        "; ".join(lines),
        topic="Private labels",
        claim="BlockRR (sigma 1, one class alike) beside randomised response with and without a prior, the prior "
        "being the classes' shares: labels kept in % / mean over classes of labels kept in % / nats about a label; and "
        "the most labels that any epsilon-private table keeps, by a linear programme",
        command="python -m benchmarks.label_blocks kept",
        asked="BlockRR beside RRWithPrior",
    )


def judged(work: Task, model: Any) -> tuple[float, float]:
    """Accuracy, and its mean over classes, in %."""
    right = model.predict(work.test) == work.test_kinds
    return 100 * float(right.mean()), 100 * float(
        np.mean([right[work.test_kinds == c].mean() for c in range(work.classes)])
    )


def learnt(work: Task, table: Table, epsilon: float, seed: int) -> tuple[float, float, float, float]:
    """By likelihood (`Classifier`), then with responses taken for labels; the largest class where they say nothing."""
    response = Response(epsilon, table, np.random.default_rng(seed))
    seen = response.privatize(work.train_kinds)
    known = np.bincount(work.train_kinds, minlength=work.classes) / len(work.train_kinds)
    largest = 100 * float((work.test_kinds == known.argmax()).mean()), 100 / work.classes
    try:
        ours = judged(work, labels.Classifier(LINEAR, response, rounds=5, random_state=seed).fit(work.train, seen))
    except InputError:  # the same response for every label
        ours = largest
    taken = judged(work, plain(LINEAR, work.train, seen)) if len(np.unique(seen)) > 1 else largest
    return (*ours, *taken)


def compare(name: str, work: Task, epsilons: tuple[float, ...] = (0.5, 1.0, 2.0)) -> None:
    prior = np.bincount(work.train_kinds) / len(work.train_kinds)
    lines = []
    for epsilon in epsilons:
        told = []
        for one, make in TABLES.items():
            found = np.array([learnt(work, make(epsilon, prior), epsilon, seed) for seed in range(DRAWS)])
            means, errors = found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(DRAWS)
            told.append(f"{one} {' / '.join(f'{m:.1f} (±{e:.1f})' for m, e in zip(means, errors, strict=True))}")
        line = f"epsilon {epsilon:g}: {', '.join(told)}"
        print(f"{work.name}, {line}", flush=True)
        lines.append(line)
    record(
        f"labels-blocks-{name}",
        "; ".join(lines),
        topic="Private labels",
        claim=f"{work.name}, {len(work.train):,} rows: logistic regression on responses of one public prior, the "
        f"classes' shares. Accuracy / its mean over classes by `Classifier`, and both with responses taken for labels; "
        f"mean of {DRAWS} draws",
        command=f"python -m benchmarks.label_blocks {name}",
        asked="BlockRR beside RRWithPrior",
    )


def _normal(table: Table) -> Table:
    return np.asarray(table / table.sum(axis=1, keepdims=True))


PARTS: dict[str, Callable[[], None]] = {
    "kept": keeping,
    "beans": lambda: compare("beans", dry_bean().first(4000)),
    "adult": lambda: compare("adult", adult().first(6000)),
}


def main() -> None:
    warnings.simplefilter("ignore")
    for name in [one for one in PARTS if one in sys.argv] or list(PARTS):
        PARTS[name]()


if __name__ == "__main__":
    main()
