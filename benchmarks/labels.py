"""Private labels: what classifiers learn from them, what privatising and the posterior cost, what mechanisms tell.

`python -m benchmarks labels` takes half an hour to an hour on two cores, most of it for Diabetes; `--quick` leaves that
out. Parts by name: `python -m benchmarks.labels logistic boosting limit costs information`.
"""

from __future__ import annotations

import inspect
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler

from benchmarks.records import record, slug
from leakcap import datasets, labels

EPSILONS = (0.5, 1.0, 2.0, 4.0)
GRID = {"C": [1.0, 0.03, 0.003, 0.0003]}
LINEAR = LogisticRegression(max_iter=300)
# 32 bins: scikit-learn's binning takes most of a fit once rows have weights.
BOOSTED = HistGradientBoostingClassifier(
    max_iter=60, max_leaf_nodes=15, max_bins=32, early_stopping=False, random_state=0
)
SPLIT = 7  # into rows to learn from and rows to judge by; this one was not looked at while the method was shaped
BOOSTED_ROWS = 20_000  # boosting is refitted about 16 times: this keeps the whole within a quarter of an hour


@dataclass(frozen=True)
class Task:
    """Rows to learn from and rows to judge by."""

    name: str
    train: np.ndarray
    train_kinds: np.ndarray
    test: np.ndarray
    test_kinds: np.ndarray

    @property
    def classes(self) -> int:
        return int(self.train_kinds.max()) + 1

    def first(self, rows: int) -> Task:
        return Task(self.name, self.train[:rows], self.train_kinds[:rows], self.test, self.test_kinds)

    def judged(self, model: ClassifierMixin) -> tuple[float, float]:
        """Accuracy and AUC (one class against the others, averaged) on the rows to judge by, in %."""
        chances = model.predict_proba(self.test)
        right = (chances.argmax(axis=1) == self.test_kinds).mean()
        two = chances.shape[1] == 2
        auc = roc_auc_score(self.test_kinds, chances[:, 1] if two else chances, multi_class="raise" if two else "ovr")
        return 100 * float(right), 100 * float(auc)


def task(name: str, table: pd.DataFrame, kinds: np.ndarray, test: np.ndarray) -> Task:
    """Features standardised by the training rows (features are public); training rows in random order."""
    filled = pd.get_dummies(table, dtype=float).to_numpy()
    filled = filled[:, filled[~test].std(axis=0) > 0]
    filled = StandardScaler().fit(filled[~test]).transform(filled).astype(np.float32)
    order = np.random.default_rng(1).permutation(np.flatnonzero(~test))
    return Task(name, filled[order], kinds[order], filled[test], kinds[test])


def adult() -> Task:
    people = datasets.adult()
    table = people.drop(columns=["income", "split", "education", "fnlwgt"])
    table[["capital_gain", "capital_loss"]] = np.log1p(table[["capital_gain", "capital_loss"]])
    return task("Adult", table, (people["income"] == ">50K").to_numpy(int), (people["split"] == "test").to_numpy())


def dry_bean() -> Task:
    beans = datasets.dry_bean()
    test = np.random.default_rng(SPLIT).permutation(len(beans)) >= int(0.7 * len(beans))
    return task("Dry Bean", beans.drop(columns="Class"), pd.factorize(beans["Class"], sort=True)[0], test)


def diabetes() -> Iterator[Task]:
    """Readmission: no, later than 30 days, within 30 days; and whether within 30 days. No patient on both sides."""
    stays = datasets.diabetes130()
    numbers = stays[[name for name in stays.columns if name.startswith(("num", "time_"))]].astype(float)
    visits = ["number_outpatient", "number_emergency", "number_inpatient"]
    numbers[visits] = np.log1p(numbers[visits])
    words = ["race", "gender", "age", "admission_type_id", "discharge_disposition_id", "admission_source_id"]
    words += ["max_glu_serum", "A1Cresult", "metformin", "glipizide", "glyburide", "insulin", "change", "diabetesMed"]
    named = pd.get_dummies(stays[words].astype(str), dtype=float)
    table = pd.concat([numbers, named.loc[:, named.sum() >= 50]], axis=1)
    patients = stays["patient_nbr"].unique()
    aside = np.random.default_rng(SPLIT).permutation(patients)[: int(0.3 * len(patients))]
    test = stays["patient_nbr"].isin(aside).to_numpy()
    again = stays["readmitted"].map({"NO": 0, ">30": 1, "<30": 2}).to_numpy()
    yield task("Diabetes, 3 classes", table, again, test)
    yield task("Diabetes, < 30 days", table, (again == 2).astype(int), test)


def plain(base: ClassifierMixin, X: np.ndarray, y: np.ndarray) -> ClassifierMixin:
    """The base as one would fit it to ordinary labels; its penalty chosen by cross-validation on these labels."""
    if base is LINEAR:
        base = GridSearchCV(base, GRID, scoring="neg_log_loss", cv=3)
    return base.fit(X, y)


def compared(work: Task, base: ClassifierMixin, epsilon: float, seed: int) -> tuple[tuple[float, float], ...]:
    """Naive training on randomised labels, and `Classifier` with `auto`: from the same draw where it is the same."""
    krr, best = labels.KRR(epsilon, work.classes), labels.auto(epsilon, work.classes)
    randomised = krr.privatize(work.train_kinds)
    observed = randomised if isinstance(best, labels.KRR) else best.privatize(work.train_kinds)
    model = labels.Classifier(base, best, grid=GRID if base is LINEAR else None, random_state=seed)
    return work.judged(plain(base, work.train, randomised)), work.judged(model.fit(work.train, observed))


def logistic(quick: bool) -> None:
    """Logistic regression, accuracy and AUC in %: mean and spread (standard deviation) over draws of the noise."""
    works = [dry_bean(), adult()] + ([] if quick else list(diabetes()))
    table("logistic", LINEAR, works, draws=2 if quick else 3, quick=quick)


def boosting(quick: bool) -> None:
    """Boosted trees, accuracy and AUC in %: mean and spread (standard deviation) over draws of the noise."""
    works = [dry_bean(), adult()] + ([] if quick else list(diabetes()))
    few = [one.first(BOOSTED_ROWS) for one in works]
    table("boosting", BOOSTED, few, draws=1 if quick else 2, quick=quick)


def table(which: str, base: ClassifierMixin, works: list[Task], *, draws: int, quick: bool) -> None:
    print("| data | epsilon | naive accuracy | Classifier | gain | naive AUC | Classifier | gain | s |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for work in works:
        name, means = f"| {work.name}, {len(work.train):,} rows ", []
        for epsilon in (1.0,) if quick else EPSILONS:
            began = time.perf_counter()
            found = np.array([compared(work, base, epsilon, seed) for seed in range(draws)])
            means.append(found.mean(axis=0))
            shown = (found[:, 0], found[:, 1], found[:, 1] - found[:, 0])
            cells = [
                f"{one[:, which].mean():.1f} ± {one[:, which].std(ddof=draws > 1):.1f}"
                for which in (0, 1)
                for one in shown
            ]
            seconds = (time.perf_counter() - began) / draws
            print(f"{name}| {epsilon:g} | {' | '.join(cells)} | {seconds:.0f} |", flush=True)
        accuracy, auc = work.judged(plain(base, work.train, work.train_kinds))
        print(f"{name}| none | {accuracy:.1f} | | | {auc:.1f} | | | |", flush=True)
        if not quick:
            record(f"labels-{which}-{slug(work.name)}", _seen(np.array(means), (accuracy, auc)))


def _seen(means: np.ndarray, ceilings: tuple[float, float]) -> str:
    """Naive / `Classifier` for each epsilon, and what true labels give; accuracy, then AUC."""
    parts = []
    for place, (measure, ceiling) in enumerate(zip(("accuracy", "AUC"), ceilings, strict=True)):
        cells = ", ".join(f"{naive:.1f} / {ours:.1f}" for naive, ours in means[:, :, place])
        parts.append(f"{measure} {cells}, ceiling {ceiling:.1f}")
    return "; ".join(parts)


def limit(quick: bool) -> None:
    """What refining can gain over naive training at best, where labels follow a logistic law of the features.

    Noise of the ranking score per variance of the score, for maximum likelihood (the least of all unbiased methods:
    the inverse of Fisher's information) and for naive training (sandwich formula); and what naive training loses even
    with endless rows, as it fits a curve of the wrong shape: 1 less the squared correlation with the true score.
    Where these two are together below the first, maximum likelihood ranks no better than naive training does.
    """
    print("| data, 20 components | epsilon | least noise | noise of naive training | its error of shape |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for work in [adult()] if quick else [adult(), list(diabetes())[1]]:
        parts = PCA(20, whiten=True, random_state=0).fit_transform(work.train.astype(float))
        table = np.column_stack([parts, np.ones(len(parts))])
        law = LogisticRegression(C=1e3, max_iter=1000).fit(parts, work.train_kinds)
        true = law.decision_function(parts)
        yes = expit(true)
        for epsilon in EPSILONS:
            told = np.tanh(epsilon / 2)  # randomised response with two classes: kept minus changed
            seen = told * yes + (1 - told) / 2
            slope = told * yes * (1 - yes)
            least = np.linalg.inv((table.T * (slope**2 / (seen * (1 - seen)))) @ table)
            weights = np.zeros(table.shape[1])
            for _ in range(30):  # Newton's method: where naive training ends with endless rows
                fitted = expit(table @ weights)
                inverse = np.linalg.inv((table.T * (fitted * (1 - fitted))) @ table)
                weights += inverse @ (table.T @ (seen - fitted))
            spread = inverse @ (table.T * (seen * (1 - seen) + (seen - fitted) ** 2)) @ table @ inverse
            noises = [_noise(table, least, true), _noise(table, spread, table @ weights)]
            shape = 1 - np.corrcoef(table @ weights, true)[0, 1] ** 2
            print(f"| {work.name} | {epsilon:g} | {noises[0]:.4f} | {noises[1]:.4f} | {shape:.4f} |", flush=True)
            if not quick and epsilon == 1 and work.name.startswith("Diabetes"):
                record("labels-limit", f"{noises[0]:.3f} of the score's variance, {noises[1]:.3f}, {shape:.3f}")


def _noise(table: np.ndarray, covariance: np.ndarray, score: np.ndarray) -> float:
    """Mean variance of a score whose weights have this covariance, per variance of the score over rows."""
    centred = table - table.mean(axis=0)
    return float(((centred @ covariance) * centred).sum(axis=1).mean() / score.var())


def naively(mechanism: labels.Mechanism, y: np.ndarray, rng: np.random.Generator) -> None:
    """The same law with numpy's generator and floating-point chances, a block of rows at a time."""
    n, classes, eps = len(y), mechanism.n_classes, mechanism.epsilon
    if isinstance(mechanism, labels.KRR | labels.RRWithPrior):
        count = int(mechanism.sizes[0]) if isinstance(mechanism, labels.RRWithPrior) else classes
        kept = rng.random(n) < np.exp(eps) / (np.exp(eps) + count - 1)
        np.where(kept, y, (y + rng.integers(1, max(count, 2), n)) % classes)
        return
    for block in np.array_split(y, max(1, n // 1_000_000)):
        hot = np.eye(classes, dtype=np.float32)[block]
        if isinstance(mechanism, labels.UnaryBits):
            _ = (hot == 1) ^ (rng.random(hot.shape, dtype=np.float32) < 1 / (1 + np.exp(eps / 2)))
        elif isinstance(mechanism, labels.Laplace):
            hot += rng.laplace(scale=2 / eps, size=hot.shape)
        elif isinstance(mechanism, labels.Gaussian):
            hot += rng.normal(scale=mechanism.sigma, size=hot.shape)
        else:
            key = rng.random(hot.shape, dtype=np.float32)
            inside = rng.random(len(block)) < mechanism.chances.probabilities[0]
            key[np.arange(len(block)), block] = np.where(inside, -1, 2)
            np.argpartition(key, mechanism.size, axis=1)[:, : mechanism.size]


POSTERIOR = """
import resource, sys, numpy as np
from leakcap import labels
n, classes, kind = int(sys.argv[1]), 100, sys.argv[2]
mechanism = labels.UnaryBits(1.0, classes) if kind == "bits" else labels.KRR(1.0, classes)
size = (n, classes) if kind == "bits" else n
observed = np.random.default_rng(0).integers(0, 2 if kind == "bits" else classes, size, dtype=np.uint8)
prior = np.zeros(classes, dtype=np.float32)
mechanism.posterior(observed[:10], prior)
def now():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()
before = now()
found = mechanism.posterior(observed, prior)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print((peak - before) / found.nbytes)
"""


def costs(quick: bool) -> None:
    """Memory of the posterior for 1,000,000 x 100 labels; seconds to privatise 10,000,000 labels of 10 classes."""
    for kind in ("krr", "bits"):
        command = [sys.executable, "-c", POSTERIOR, str(10**5 if quick else 10**6), kind]
        ratio = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        print(f"posterior, {'10^5' if quick else '10^6'} x 100, {kind}: peak memory {ratio:.2f} times the result")
        if not quick and kind == "bits":
            record("labels-costs-posterior", f"{ratio:.2f} times the result (float32)")
    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, 10**6 if quick else 10**7)
    print(
        f"\n| {len(y):,} labels of 10 classes, epsilon 1 | s | plain numpy, s | ratio |\n| --- | ---: | ---: | ---: |"
    )
    offered = (labels.KRR, labels.UnaryBits, labels.SubsetSelection, labels.Laplace)
    mechanisms = [one(1.0, 10) for one in offered]
    mechanisms += [labels.Gaussian(1.0, 10, delta=1e-6), labels.RRWithPrior(1.0, np.arange(10, 0, -1) / 55)]
    seen = []
    for mechanism in mechanisms:
        took = [_seconds(lambda m=mechanism: m.privatize(y)), _seconds(lambda m=mechanism: naively(m, y, rng))]
        print(f"| {mechanism.name} | {took[0]:.2f} | {took[1]:.2f} | {took[0] / took[1]:.2f} |", flush=True)
        seen.append(f"{mechanism.name} {took[0]:.1f} s ({took[0] / took[1]:.1f} times plain numpy)")
    if not quick:
        record("labels-costs-privatize", ", ".join(seen))


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def information(quick: bool) -> None:
    """Nats that one observation tells about a label when all classes are even."""
    del quick
    for classes in (10, 100):
        epsilons = range(1, 9)
        print(f"\n| {classes} classes, epsilon | {' | '.join(map(str, epsilons))} |\n| --- |{' ---: |' * 8}")
        makers: dict[str, Callable[[float], labels.Mechanism]] = {
            "k-ary randomised response": lambda eps, c=classes: labels.KRR(eps, c),
            "unary bits": lambda eps, c=classes: labels.UnaryBits(eps, c),
            "unary bits, optimised": lambda eps, c=classes: labels.UnaryBits(eps, c, optimised=True),
            "subset selection": lambda eps, c=classes: labels.SubsetSelection(eps, c),
            "Laplace": lambda eps, c=classes: labels.Laplace(eps, c),
            "Gaussian, delta 1e-6": lambda eps, c=classes: labels.Gaussian(eps, c, delta=1e-6),
            "auto": lambda eps, c=classes: labels.auto(eps, c),
        }
        nats = {}
        for name, maker in makers.items():
            nats[name] = told = [maker(float(eps)).mutual_information() for eps in epsilons]
            print(f"| {name} | {' | '.join(f'{one:.4f}' for one in told)} |", flush=True)
        few = ("Laplace", "unary bits", "subset selection")
        at = [", ".join(f"{name} {nats[name][place]:.3f}" for name in few) for place in (0, -1)]
        record(f"labels-information-{classes}", f"epsilon 1: {at[0]}; epsilon 8: {at[1]}")


PARTS = {"information": information, "costs": costs, "limit": limit, "logistic": logistic, "boosting": boosting}


def main() -> None:
    quick = "--quick" in sys.argv
    warnings.simplefilter("ignore", ConvergenceWarning)
    for name in [one for one in PARTS if one in sys.argv] or list(PARTS):
        print(f"\n{inspect.cleandoc(str(PARTS[name].__doc__))}\n")
        PARTS[name](quick)


if __name__ == "__main__":
    main()
