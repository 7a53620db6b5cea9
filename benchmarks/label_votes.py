"""PATE on CIFAR-10 embeddings: accuracy against epsilon, hundreds of teachers at once, and accounting.

`python -m benchmarks.label_votes [threshold] [alone] [with-sums] [speed] [networks] [accounting]`. `alone` and
`with-sums` need the embeddings, `networks` needs torch.
"""

from __future__ import annotations

import inspect
import itertools
import sys
import time
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from benchmarks.encoded_sets import embeddings
from benchmarks.label_statistics import made
from benchmarks.labels import Task, dry_bean
from benchmarks.records import record
from leakcap import labels
from leakcap.kernels.linear.parts import ridge_votes, shared_ridge_votes
from leakcap.labels.learning.teachers import votes_of
from leakcap.labels.learning.vote_costs import VoteCosts, apart_for
from leakcap.labels.learning.votes import NoisedVotes

DRAWS = 5
TOPIC = "Private labels"
SELECTION = 1.5  # questions for each answer
SUMS_SHARE = 0.7  # of epsilon, for the sums that teachers learn from


def task() -> Task:
    return Task("CIFAR-10 embeddings", *embeddings())


def accuracies(work: Task, teacher: Any, student: Any, **settings: Any) -> list[float]:
    found = []
    for seed in range(DRAWS):
        model = labels.PATE(teacher, student, n_classes=10, random_state=seed, **settings)
        model.fit(work.train, work.train_kinds)
        found.append(100 * float(model.score(work.test, work.test_kinds)))
    print(f"{settings}: {np.mean(found):.1f} % +- {np.std(found):.2f}", flush=True)
    return found


def told(found: list[list[float]]) -> str:
    return f"{', '.join(f'{np.mean(one):.2f}' for one in found)} %, spread {max(map(np.std, found)):.2f} at most"


def alone() -> None:
    """Teachers that learn from 128 public components, and nothing else."""
    work, one = task(), labels.LinearTeacher()
    parts = make_pipeline(Normalizer(), PCA(128, random_state=0)).fit(work.train)
    made = Task(work.name, parts.transform(work.train), work.train_kinds, parts.transform(work.test), work.test_kinds)
    found = [
        accuracies(made, one, one, epsilon=epsilon, n_teachers=count, semi_supervised=True)
        for epsilon, count in ((0.29, 2500), (1.6, 1600))
    ]
    record(
        "labels-votes-alone",
        told(found),
        topic=TOPIC,
        claim="`labels.PATE` on 50,000 CIFAR-10 embeddings, 128 components, linear teachers (2,500 at .29, 1,600 at "
        f"1.6) and student; delta 1e-5, at epsilon .29, 1.6; {DRAWS} draws each",
        command="python -m benchmarks.label_votes alone",
        asked="beside PATE with sums",
    )


def with_sums() -> None:
    """Teachers that learn from the scores of noised sums."""
    work, found = task(), []
    for epsilon in (0.29, 1.6):
        prior = labels.Ridge(SUMS_SHARE * epsilon, random_state=0)
        count = 2000 if epsilon < 1 else 1000
        student = LogisticRegression(max_iter=300)
        found.append(accuracies(work, RidgeClassifier(), student, epsilon=epsilon, prior=prior, n_teachers=count))
    record(
        "labels-votes-with-sums",
        told(found),
        topic=TOPIC,
        claim=f"`labels.PATE` with `prior=labels.Ridge({SUMS_SHARE:g} * epsilon)` on 50,000 CIFAR-10 embeddings, delta "
        f"1e-5, at epsilon .29, 1.6; {DRAWS} draws each",
        command="python -m benchmarks.label_votes with-sums",
        asked="at least 85 % at .29 and 88 % at 1.6",
    )


def speed() -> None:
    """800 linear teachers at once, and one by one: CPU seconds, in turn, in one process."""
    rng = np.random.default_rng(0)
    table, codes = rng.standard_normal((50_000, 256)), rng.integers(10, size=50_000)
    parts = np.array_split(rng.permutation(50_000), 800)
    alone = beside(
        "apart",
        "800 ridge teachers (`RidgeClassifier`) on parts of 50,000 rows of 256 components, with their votes on 1,000 "
        "rows: at once, beside a loop of fits (40 of them, scaled)",
        "-",
        lambda: ridge_votes(table, codes, parts, table[:1000], classes=10, alpha=1.0, intercept=True),
        lambda part: RidgeClassifier().fit(table[part], codes[part]),
    )
    beside(
        "whole",
        "800 linear teachers (`LinearTeacher`), each of them on 50,000 rows of 256 components and 62 labels, with "
        "their votes on 1,000 rows: at once, beside a loop of fits (40 of them, scaled)",
        "50 times",
        lambda: shared_ridge_votes(table, codes, parts, table[:1000], classes=10, alpha=0.1),
        lambda part: labels.LinearTeacher().fit(table, np.where(np.isin(np.arange(50_000), part), codes, -1)),
        f"; teachers that see their own part alone: {alone:.0f} times",
    )


def beside(name: str, claim: str, asked: str, once: Any, one: Any, more: str = "") -> float:
    """How many times faster, recorded with what else is to be said of it."""
    table = np.random.default_rng(0).standard_normal((1000, 256))
    parts, ratios = np.array_split(np.arange(50_000), 800)[:40], []
    for _ in range(3):
        began = time.process_time()
        once()
        taken, began = time.process_time() - began, time.process_time()
        for part in parts:
            one(part).predict(table)
        ratios.append((time.process_time() - began) * 20 / taken)
        print(f"{name}: at once {taken:.2f} s, one by one {ratios[-1]:.0f} times that", flush=True)
    record(
        f"labels-votes-speed-{name}",
        f"{np.median(ratios):.0f} times (median of three){more}",
        topic=TOPIC,
        claim=claim,
        command="python -m benchmarks.label_votes speed",
        asked=asked,
    )
    return float(np.median(ratios))


def networks() -> None:
    """100 networks as teachers: at once, one by one, and scikit-learn's, in turn, in one process and one thread."""
    import torch  # noqa: PLC0415

    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    table, codes = rng.standard_normal((2500, 64)), rng.integers(10, size=2500)
    table[:, :10] += 2 * np.eye(10)[codes]
    parts, asked = np.array_split(rng.permutation(2500), 100), np.arange(1000)
    given: dict[str, Any] = {"seeds": range(100), "asked": asked, "classes": 10, "whole": False}
    own, theirs = labels.MLPTeacher((64,), steps=200, device="cpu"), MLPClassifier((64,), solver="sgd", max_iter=200)
    single, ratios = type("SingleTeacher", (labels.MLPTeacher,), {})(**own.get_params()), []  # the kernel knows it not
    for _ in range(3):
        taken = []
        for teacher, some in ((own, parts), (single, parts[:20]), (theirs, parts[:20])):
            began = time.process_time()
            votes_of(teacher, table, codes, parts=some, **given | {"seeds": range(len(some))})
            taken.append((time.process_time() - began) * len(parts) / len(some))
        ratios.append([taken[1] / taken[0], taken[2] / taken[0]])
        print(f"at once {taken[0]:.2f} s, one by one {taken[1]:.2f} s, scikit-learn's {taken[2]:.2f} s", flush=True)
    middle = np.median(ratios, axis=0)
    record(
        "labels-votes-speed-networks",
        f"{middle[0]:.1f} times faster than one by one, {middle[1]:.1f} times than `MLPClassifier` (medians of three)",
        topic=TOPIC,
        claim="100 networks of 64 neurons as teachers (`MLPTeacher`, 200 steps) on 25 rows of 64 columns each, with "
        "their votes on 1,000 rows: at once, beside a loop of the same fits and of scikit-learn's `MLPClassifier` "
        "(sgd, 200 passes); 20 of either, scaled; CPU seconds of one thread",
        command="python -m benchmarks.label_votes networks",
        asked="-",
    )


def accounting() -> None:
    """The epsilon of 10,000 questions by all three accounts."""
    costs, taken = VoteCosts(10_000, 6_000, 300.0, 400.0), []
    for _ in range(20):
        began = time.process_time()
        said = [costs.epsilon(1e-5, one) for one in ("exact", "newer", "classical")]
        taken.append(time.process_time() - began)
    record(
        "labels-votes-accounting",
        f"{1e3 * np.median(taken):.2f} ms (epsilon {said[0]:.3f}, {said[1]:.3f}, {said[2]:.3f})",
        topic=TOPIC,
        claim="Accounting of 10,000 questions, 6,000 of them answered: exact, newer and classical conversion together",
        command="python -m benchmarks.label_votes accounting",
        asked="under 50 ms",
    )


def threshold() -> None:
    """Selection by agreement, paid for from the same epsilon, beside answering all: ridge teachers."""
    lines = []
    for work in (dry_bean(), made()):
        rows, rng = work.train.astype(np.float64), np.random.default_rng(0)
        parts, asked = np.array_split(rng.permutation(len(rows)), 300), rng.permutation(len(rows))
        votes = ridge_votes(rows, work.train_kinds, parts, rows[asked], classes=work.classes, alpha=1.0, intercept=True)
        for epsilon in (1.0, 2.0, 4.0):
            apart = apart_for(epsilon, 1e-5)
            most = int(min(len(rows), (apart * len(parts) / 5) ** 2 / 2))
            more = int(min(len(rows), SELECTION * most))
            rules = [(VoteCosts(most, most, None, np.sqrt(2 * most) / apart), 0.0)]
            for share, agreed in itertools.product((0.2, 0.4), (0.4, 0.6)):
                sigmas = np.sqrt(more / share) / apart, np.sqrt(2 * most / (1 - share)) / apart
                rules.append((VoteCosts(more, most, *sigmas), agreed * len(parts)))
            found = [_taught(work, votes, asked, NoisedVotes(*rule, work.classes)) for rule in rules]
            lines.append(f"{work.name} at {epsilon:g}: all {found[0]:.1f}, best of four rules {max(found[1:]):.1f}")
            print(lines[-1], flush=True)
    record(
        "labels-votes-threshold",
        "; ".join(lines),
        topic=TOPIC,
        claim="PATE of 300 ridge teachers at epsilon alone: a student's accuracy where all questions are answered, "
        "beside answering those with .4 or .6 of the votes, for .2 or .4 of the squared budget; mean of 3 draws",
        command="python -m benchmarks.label_votes threshold",
        asked="whether a default threshold helps",
    )


def _taught(work: Task, votes: Any, asked: Any, rule: NoisedVotes) -> float:
    found = []
    for _ in range(3):
        said = rule.release(votes[: rule.costs.questions])
        known = np.flatnonzero(said >= 0)
        student = LogisticRegression(max_iter=100).fit(work.train[asked[known]], said[known])
        found.append(100 * float(student.score(work.test, work.test_kinds)))
    return float(np.mean(found))


PARTS = {
    "threshold": threshold,
    "alone": alone,
    "with-sums": with_sums,
    "speed": speed,
    "networks": networks,
    "accounting": accounting,
}


def main() -> None:
    for name in [one for one in PARTS if one in sys.argv] or list(PARTS):
        print(f"\n{inspect.cleandoc(str(PARTS[name].__doc__))}\n")
        PARTS[name]()


if __name__ == "__main__":
    main()
