"""Statistics, votes, or labels privatised one by one: which of them learns most from secret labels, where.

`python -m benchmarks.label_methods [beans] [adult] [diabetes-3] [diabetes-30] [cifar] [made] [fresh-SHAPE]`.
Accuracies on rows to judge by, a mean over draws (AUC where naming the largest class alone is as accurate as anything);
beside them the best of all and what `labels.advise` says, which sees public facts alone. Sets with `fresh` in their
names came together with one of its rules, or before it; those of `later` were measured when today's rule stood.

What a record holds already is not measured again: new methods come beside it, and advice is that of today. Delete the
record to measure all of it anew, or name a method: `--again=logistic`. The best of many means of a few draws is partly
luck: `--judge` measures it and what is advised anew, by twenty draws each, where it is ahead by more than a point and
its error.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, RidgeClassifier

from benchmarks.encoded_sets import embeddings
from benchmarks.label_fresh_sets import LATER, SHAPES, fresh
from benchmarks.label_statistics import made
from benchmarks.labels import LINEAR, Task, adult, diabetes, dry_bean, plain
from benchmarks.records import FOLDER, record, seen
from leakcap import labels
from leakcap.errors import InputError

EPSILONS = (0.1, 0.5, 1.0, 2.0)
DRAWS, DRAWS_OF_SUMS = 3, 5  # the latter on sets of so few rows that they take seconds
DRAWS_TO_JUDGE = 20
SMALL = 20_000
SUMS = ("ridge", "lda", "either", "logistic")
RARE = 0.11  # share of the smaller class of Diabetes, as its publishers say
SUMS_SHARE = 0.7  # of epsilon, for the sums that teachers learn from


def ridge(work: Task, epsilon: float, seed: int) -> Any:
    return labels.Ridge(epsilon, work.classes, random_state=seed).fit(work.train, work.train_kinds)


def lda(work: Task, epsilon: float, seed: int) -> Any:
    return labels.LDA(epsilon, work.classes).fit(work.train, work.train_kinds)


def logistic(work: Task, epsilon: float, seed: int) -> Any:
    """What is advised where sums tell more than noise."""
    return labels.Logistic(epsilon, work.classes, random_state=seed).fit(work.train, work.train_kinds)


def either(work: Task, epsilon: float, seed: int) -> Any:
    """Whichever of ridge and discriminants the sums are nearer to."""
    return labels.LDA(epsilon, work.classes, random_state=seed, readout="auto").fit(work.train, work.train_kinds)


def bayes(work: Task, epsilon: float, seed: int) -> Any:
    return labels.NaiveBayes(epsilon, work.classes).fit(work.train, work.train_kinds)


def votes(work: Task, epsilon: float, seed: int) -> Any:
    prior = labels.Ridge(SUMS_SHARE * epsilon, random_state=seed)
    teacher, student = RidgeClassifier(), LogisticRegression(max_iter=300)
    count = min(2000, len(work.train) // (10 * work.classes))
    return labels.PATE(
        teacher, student, epsilon=epsilon, prior=prior, n_teachers=count, n_classes=work.classes, random_state=seed
    ).fit(work.train, work.train_kinds)


def responses(work: Task, epsilon: float, seed: int) -> Any:
    mechanism = labels.auto(epsilon, work.classes)
    return labels.Classifier(LINEAR, mechanism, random_state=seed).fit(
        work.train, mechanism.privatize(work.train_kinds)
    )


def naive(work: Task, epsilon: float, seed: int) -> Any:
    """Randomised labels taken for the labels."""
    return plain(LINEAR, work.train, labels.KRR(epsilon, work.classes).privatize(work.train_kinds))


METHODS: dict[str, Callable[[Task, float, int], Any]] = {
    "ridge": ridge,
    "lda": lda,
    "either": either,
    "logistic": logistic,
    "naive Bayes": bayes,
    "votes after sums": votes,
    "responses": responses,
    "naive": naive,
}


Told = tuple[float, float]  # mean and error of the mean
TAKEN = {"LDA": "either", "Logistic": "logistic", "Classifier": "responses"}  # by advice


def measured(name: str) -> dict[float, dict[str, Told]]:
    """What the record holds, by epsilon and method: mean and error of the mean."""
    parts = re.findall(r"epsilon ([\d.]+): (.*?); best:", seen(f"labels-methods-{name}"))
    figure = r"([A-Za-z ]+) (-?[\d.]+) \(±([\d.]+)\)"
    return {
        float(epsilon): {one.strip(): (float(mean), float(error)) for one, mean, error in re.findall(figure, told)}
        for epsilon, told in parts
    }


def judged_before(name: str) -> dict[str, set[str]]:
    """By epsilon, what was measured by twenty draws."""
    (told,) = re.findall(r"draws each: (.*)$", seen(f"labels-methods-{name}")) or [""]
    parts = re.findall(r"epsilon ([\d.]+) \((.*?)\)", told)
    return {epsilon: set(methods.split(", ")) for epsilon, methods in parts}


def judge(work: Task, epsilon: float, known: dict[str, Told], advised: str, by_auc: bool) -> set[str]:
    """Measure what is advised and whatever is ahead of it anew, until nothing is that was not; which these were."""
    again: set[str] = set()
    while True:
        best = max(known, key=lambda one: known[one][0])
        if known[best][0] - known[advised][0] <= 1 + np.hypot(known[best][1], known[advised][1]) or best in again:
            return again
        for one in {best, advised} - again:
            said = score(work, one, epsilon, by_auc, draws=DRAWS_TO_JUDGE)
            assert said is not None
            known[one] = said
        again |= {best, advised}


def score(work: Task, method: str, epsilon: float, by_auc: bool, draws: int | None = None) -> Told | None:
    """Mean and error of the mean, in %; None where the method refuses so small an epsilon."""
    few = DRAWS_OF_SUMS if method in SUMS and len(work.train) <= SMALL else DRAWS
    first, draws = (0, few) if draws is None else (100, draws)  # other seeds, where there are any, than at first
    found = []
    for seed in range(first, first + draws):
        try:
            model = METHODS[method](work, epsilon, seed)
        except InputError as error:
            print(f"  {method} at {epsilon:g}: {str(error)[:80]}", flush=True)
            return None
        found.append(judged(work, model, by_auc))
    return float(np.mean(found)), float(np.std(found, ddof=1) / np.sqrt(draws))


def judged(work: Task, model: Any, by_auc: bool) -> float:
    if by_auc:
        return work.judged(model)[1]
    return 100 * float(np.mean(model.predict(work.test) == work.test_kinds))


def compare(
    name: str,
    work: Task,
    skipped: tuple[str, ...] = (),
    *,
    by_auc: bool = False,
    epsilons: tuple[float, ...] = EPSILONS,
) -> None:
    best_model = plain(LINEAR, work.train, work.train_kinds)  # its score is that of its grid, no accuracy
    ceiling = judged(work, best_model, by_auc)
    share = 100 * float(np.bincount(work.test_kinds).max() / len(work.test_kinds))
    rows, columns = work.train.shape
    lines, again = [], {part.removeprefix("--again=") for part in sys.argv}
    held = {at: {one: said for one, said in known.items() if one not in again} for at, known in measured(name).items()}
    tried = set[str]().union(*held.values())  # also where it refused so small an epsilon
    sure = judged_before(name)
    for epsilon in epsilons:
        known = held.get(epsilon, {})
        for one in METHODS:
            if one not in tried | set(skipped) and (said := score(work, one, epsilon, by_auc)) is not None:
                known[one] = said
        prior = [1 - RARE, RARE] if by_auc else None
        advised = TAKEN[labels.advise(epsilon, work.classes, rows=rows, columns=columns, prior=prior).model]
        if "--judge" in sys.argv and (anew := judge(work, epsilon, known, advised, by_auc)):
            sure[f"{epsilon:g}"] = sure.get(f"{epsilon:g}", set()) | anew
        best = max(known, key=lambda one: known[one][0])
        taken = known[advised]
        short = max(0.0, known[best][0] - taken[0])
        told = ", ".join(f"{one} {mean:.1f} (±{error:.1f})" for one, (mean, error) in known.items())
        error = np.hypot(taken[1], known[best][1])
        line = f"epsilon {epsilon:g}: {told}; best: {best}; advised: {advised}, {short:.1f} short (±{error:.1f})"
        print(f"{work.name}, {line}", flush=True)
        lines.append(line)
    (FOLDER / f"labels-methods-{name}.json").unlink(missing_ok=True)  # its claim tells of other draws, perhaps
    record(
        f"labels-methods-{name}",
        "; ".join(lines)
        + f". Logistic regression on the labels themselves {ceiling:.1f}"
        + ("" if by_auc else f", the largest class {share:.1f}")
        + (f". Kept from before: {', '.join(sorted(tried))}" if tried else "")
        + (f". By {DRAWS_TO_JUDGE} draws each: {_listed(sure)}" if sure else ""),
        topic="Private labels",
        claim=f"{work.name}, {len(work.train):,} rows to learn from: {'AUC' if by_auc else 'accuracy'} by method, mean "
        + (f"of {DRAWS_OF_SUMS} draws of sums, {DRAWS} of others" if rows <= SMALL else f"of {DRAWS} draws"),
        command=f"python -m benchmarks.label_methods {name}",
        asked="who wins where",
    )


def _listed(sure: dict[str, set[str]]) -> str:
    return ", ".join(f"epsilon {epsilon} ({', '.join(sorted(methods))})" for epsilon, methods in sorted(sure.items()))


def compare_fresh(shape: str) -> None:
    """On a set that was made to judge a rule of advice by."""
    skipped = ("naive Bayes", "votes after sums", "naive")
    compare(f"fresh-{shape}", fresh(shape), skipped, epsilons=(*EPSILONS, 4.0) if shape in LATER else EPSILONS)


PARTS: dict[str, Callable[[], Any]] = {
    "beans": lambda: compare("beans", dry_bean()),
    "adult": lambda: compare("adult", adult()),
    "diabetes-3": lambda: compare("diabetes-3", next(diabetes())),
    "diabetes-30": lambda: compare("diabetes-30", list(diabetes())[1], by_auc=True),
    "cifar": lambda: compare("cifar", Task("CIFAR-10 embeddings", *embeddings())),
    "made": lambda: compare("made", made()),
}
PARTS |= {f"fresh-{shape}": partial(compare_fresh, shape) for shape in (*SHAPES, *LATER)}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for part in [one for one in sys.argv[1:] if one in PARTS] or PARTS:
        PARTS[part]()
