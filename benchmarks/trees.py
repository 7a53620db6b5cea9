"""Trees, forests and boosting: what each promise leaves of them, beside plain scikit-learn; and what is refused.

`python -m benchmarks.trees [breast] [bean] [moons]`. A quarter of the rows is held back to score on; splits and noise
differ from fit to fit, and none of these data were used to choose defaults (those were chosen on heart disease, wine,
rice, a part of Adult and made-up data). `moons` was made last. Bounds under a pool cap stand for declared ones: the
range of each column, rounded outwards to one digit.
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import numpy as np
from sklearn import datasets, ensemble, tree
from sklearn.base import clone

import leakcap as lc
from benchmarks.records import record, slug
from leakcap import estimators
from leakcap.datasets import dry_bean

CAP, FITS, FIRST, WORLDS = 0.55, 5, 1000, 256
TOPIC = "Private estimators"
TWINS: dict[str, tuple[Any, Any]] = {
    "tree": (tree.DecisionTreeClassifier(random_state=0), estimators.DecisionTreeClassifier()),
    "forest": (ensemble.RandomForestClassifier(random_state=0), estimators.RandomForestClassifier()),
    "boosting": (
        ensemble.HistGradientBoostingClassifier(random_state=0),
        estimators.HistGradientBoostingClassifier(),
    ),
}
REFUSED = {"tree": "ExtraTree*", "forest": "ExtraTrees*, Bagging*", "boosting": "GradientBoosting*, AdaBoost*"}


def breast() -> tuple[str, Any, Any]:
    found = datasets.load_breast_cancer()
    return "breast cancer, 569 x 30", found.data, found.target


def bean() -> tuple[str, Any, Any]:
    table = dry_bean()
    kinds = np.unique(table.pop("Class"), return_inverse=True)[1]
    return "Dry Bean, 13,611 x 16", table.to_numpy(dtype=float), kinds


def moons() -> tuple[str, Any, Any]:
    rng = np.random.default_rng(20)
    X, y = datasets.make_moons(4000, noise=0.3, random_state=20)
    return "two moons and four columns of noise, 4,000 x 6", np.hstack([X, rng.normal(size=(4000, 4))]), y


PARTS = {"breast": breast, "bean": bean, "moons": moons}


def rounded_outwards(X: Any) -> tuple[Any, Any]:
    def out(values: Any, way: Any) -> Any:
        digit = 10.0 ** np.floor(np.log10(np.maximum(np.abs(values), 1e-12)))
        return way(values / digit) * digit

    low, high = out(X.min(axis=0), np.floor), out(X.max(axis=0), np.ceil)
    return low, np.where(high > low, high, low + 1)


def promises(kind: str, X: Any, y: Any) -> dict[str, dict[str, Any]]:
    declared = {"options": {"bounds": rounded_outwards(X)}, "classes": np.unique(y).tolist()}
    found = {
        "bits": {"cap": lc.membership(CAP), "options": {"design": "bits"}},
        "pool": {"cap": lc.pool_membership(CAP), **declared},
    }
    if kind == "forest":  # the others learn in rounds: many answers, of which listed worlds allow few
        found["worlds"] = {"cap": lc.membership(CAP), "worlds": WORLDS}
    return found


def measured(part: str) -> None:
    name, X, y = PARTS[part]()
    for kind, (plain, private) in TWINS.items():
        settings = promises(kind, X, y)
        found: dict[str, list[float]] = {"plain": []} | {promise: [] for promise in settings}
        seconds = dict.fromkeys(found, 0.0)
        for fit in range(FIRST, FIRST + FITS):
            test, train = np.split(np.random.default_rng(fit).permutation(len(X)), [len(X) // 4])
            tries = {"plain": clone(plain)} | {
                promise: clone(private).set_params(random_state=fit, **given) for promise, given in settings.items()
            }
            for promise, model in tries.items():
                began = time.process_time()
                model.fit(X[train], y[train])
                seconds[promise] += (time.process_time() - began) / FITS
                found[promise].append(float(model.score(X[test], y[test])))
        shown = [f"plain {np.mean(found['plain']):.3f}"]
        shown += [f"{how} {np.mean(found[how]):.3f} ± {np.std(found[how]):.3f}" for how in settings]
        if kind != "forest":
            shown.append("worlds refused")
        shown.append(f"inside Private refused, as are {REFUSED[kind]}")
        took = ", ".join(f"{how} {spent:.1f}" for how, spent in seconds.items())
        print(f"{name}, {kind}: {', '.join(shown)}; CPU s {took}", flush=True)
        record(
            f"trees-{part}-{slug(kind)}",
            f"{', '.join(shown)}. CPU seconds of a fit: {took}",
            topic=TOPIC,
            claim=f"{name}: {kind}, cap {CAP:.2f}, defaults: accuracy on rows held back, mean of {FITS} splits",
            command=f"python -m benchmarks.trees {part}",
            asked="within .06 of plain under bits" if kind == "forest" and part != "moons" else "-",
        )


def main(wanted: list[str]) -> None:
    warnings.simplefilter("ignore")
    for part in wanted:
        measured(part)


if __name__ == "__main__":
    main(sys.argv[1:] or list(PARTS))
