"""What is learnt from encoded sets where classes are of unequal size: accuracy of each class, on average.

Encoded sets have as many rows of every class, so that on Dry Bean and Adult plain accuracy compares unlike things. A
network of three layers and ridge regression learn from five encoded sets, and from the rows themselves with every class
weighing alike; the ridge's penalty is that which does best on test rows of even places, both are told on odd ones.

`python -m benchmarks.balanced_sets [NAME ...]`: with the noise that `certified_sets` certified and recorded, which is
not certified again. Names with `suggested`: `Encoder.suggest` chooses the sizes, and a cap is certified for them here.
"""

from __future__ import annotations

import json
import re
import sys
import time
import warnings
from typing import Any

import numpy as np
from sklearn.linear_model import Ridge

import leakcap as lc
from benchmarks import certified_sets
from benchmarks.certified_sets import DRAWS, Case, Rows, adult, beans, told_of
from benchmarks.encoded_sets import PENALTIES
from benchmarks.records import FOLDER, record
from benchmarks.three_layers import three_layers

EPOCHS = 20  # of the network that learns from the rows themselves


def main(*names: str) -> None:
    warnings.simplefilter("ignore", lc.RepeatedReleaseWarning)
    for name in names or PARTS:
        if name in SUGGESTED:
            suggested(name, SUGGESTED[name])
        else:
            recorded(name, certified_sets.PARTS[name])


def recorded(name: str, case: Case) -> None:
    """Sizes that were chosen by hand, with the noise that was certified for them."""
    rows, noise = case.rows(), recorded_noise(name)
    seen = f"{accuracies(rows, case, noise)}; noise {noise:.4g} as recorded"
    print(f"{name}: {seen}", flush=True)
    record(
        f"encoded-{name}-balanced",
        seen,
        topic="Encoded sets",
        claim=f"{case.words}, cap {case.cap:g}: accuracies balanced on both sides, {case.trials} encoded sets",
        command=f"python -m benchmarks.balanced_sets {name}",
        asked="-",
    )


def suggested(name: str, case: Case) -> None:
    """Sizes that the encoder suggests for the cap, beginning with those of `case`; then certified and encoded."""
    rows = case.rows()
    began = time.perf_counter()
    found = lc.obfuscation.Encoder(**case.settings, cap=case.cap, draws=DRAWS).suggest(rows.X, rows.y)
    looked = time.perf_counter() - began
    print(found, flush=True)
    sizes = found.best.arguments
    encoder = lc.obfuscation.Encoder(**sizes, cap=case.cap, draws=DRAWS)
    encoder.encode(rows.X, rows.y)
    certificate = encoder.certificate
    chosen = Case(case.rows, case.words, case.cap, sizes, trials=case.trials, queries=case.queries)
    seen = (
        f"{', '.join(f'{size} {value:,}' for size, value in sizes.items())}, of {len(found.tried)} settings in "
        f"{looked:.0f} s: {accuracies(rows, chosen, certificate.noise)}; certified "
        f"{100 * certificate.membership_success:.2f} % about the worst of {len(rows.X):,} rows "
        f"({100 * certificate.mean_success:.1f} % on average), noise {certificate.noise:.4g}; the suggestion expected "
        f"{100 * found.best.accuracy:.1f} % of a linear model"
    )
    print(f"{name}: {seen}", flush=True)
    record(
        f"encoded-{name}",
        seen,
        topic="Encoded sets",
        claim=f"{case.words}, cap {case.cap:g}: sizes as `suggest()` has them, accuracies balanced on both sides",
        command=f"python -m benchmarks.balanced_sets {name}",
        asked="-",
    )


def accuracies(rows: Rows, case: Case, noise: float) -> str:
    """Of both models, from encoded sets with this noise and from the rows themselves."""
    asked, answers = rows.asked[: case.queries], rows.answers[: case.queries]
    network, ridge = [], []
    for _ in range(case.trials):
        encoder = lc.obfuscation.Encoder(**case.settings, noise=noise, draws=0)
        encoded = encoder.encode(rows.X, rows.y)
        module = three_layers(*encoded, classes=encoder.design.classes)
        network.append(by_class(encoder.predict(module, asked)[1::2], answers[1::2]))
        ridge.append(best_by_class([encoder.predict(Ridge(size).fit(*encoded), asked) for size in PENALTIES], answers))
    classes, smallest = encoder.design.classes, int(np.unique(rows.y, return_counts=True)[1].min())
    each = encoder.design.sampled_per_class
    return (
        f"network {told_of(network)}, ridge {told_of(ridge)} of each class on average; un-encoded and balanced "
        f"{100 * bare_network(rows, asked, answers):.1f} % and {100 * bare_ridge(rows, asked, answers):.1f} %, by "
        f"chance {100 / classes:.1f} %; {each:,} of each class drawn, of {smallest:,} in the smallest"
    )


def by_class(given: Any, right: Any) -> float:
    """Accuracy of each class, on average."""
    return float(np.mean([(given == one)[right == one].mean() for one in np.unique(right)]))


def best_by_class(guesses: list[Any], answers: Any) -> float:
    """The guesses that do best on even places, told on odd ones."""
    best = max(guesses, key=lambda one: by_class(one[0::2], answers[0::2]))
    return by_class(best[1::2], answers[1::2])


def bare_ridge(rows: Rows, asked: Any, answers: Any) -> float:
    """On the rows as they are, every class weighing as much as any other."""
    (X, queries), (names, codes, counts) = _unit(rows.X, asked), _classes(rows.y)
    weights = 1 / counts[codes]
    weights *= len(codes) / weights.sum()
    fitted = (Ridge(size).fit(X, np.eye(len(names))[codes], sample_weight=weights) for size in PENALTIES)
    return best_by_class([names[one.predict(queries).argmax(axis=1)] for one in fitted], answers)


def bare_network(rows: Rows, asked: Any, answers: Any) -> float:
    """On as many rows as the pool has, as many of every class, drawn again and again where a class is small."""
    import torch  # noqa: PLC0415

    (X, queries), (names, codes, _) = _unit(rows.X, asked), _classes(rows.y)
    rng = np.random.default_rng(0)
    each = len(codes) // len(names)
    some = np.concatenate([rng.choice(np.flatnonzero(codes == one), each) for one in range(len(names))])
    module = three_layers(X[some], np.eye(len(names))[codes[some]], classes=len(names), epochs=EPOCHS)
    with torch.no_grad():
        scores = module(torch.as_tensor(queries, dtype=torch.float32)).numpy()
    return by_class(names[scores.argmax(axis=1)][1::2], answers[1::2])


def recorded_noise(name: str) -> float:
    """That which was certified, to the digits of its record."""
    seen = json.loads((FOLDER / f"encoded-{name}.json").read_text(encoding="utf-8"))["seen"]
    return float(re.search(r"noise ([0-9.e-]+),", seen).group(1))  # type: ignore[union-attr]


def _unit(*tables: Any) -> list[Any]:
    return [one / np.maximum(np.linalg.norm(one, axis=1), 1e-12)[:, None] for one in tables]


def _classes(labels: Any) -> tuple[Any, Any, Any]:
    names, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    return names, codes, counts


BEANS, ADULT = (certified_sets.PARTS[name].settings for name in ("beans-white-60", "adult-white-60"))
SUGGESTED = {
    "beans-suggested-60": Case(beans, "Dry Bean", 0.60, BEANS),
    "beans-suggested-55": Case(beans, "Dry Bean", 0.55, BEANS),
    "adult-suggested-60": Case(adult, "Adult", 0.60, ADULT),
    "adult-suggested-55": Case(adult, "Adult", 0.55, ADULT),
}
PARTS = [*(name for name in certified_sets.PARTS if not name.startswith("cifar")), *SUGGESTED]

if __name__ == "__main__":
    main(*sys.argv[1:])
