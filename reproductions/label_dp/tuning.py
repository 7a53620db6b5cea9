"""Lists of runs: those of the tables, and short ones to choose settings by.

Tuning is judged on the last 5,000 *training* pictures, never on test pictures. Choosing by their true labels costs
privacy in principle (as in the paper, which leaves it out of its epsilon too); `held_out_gain` in a run's file is a
judge that costs none, as it reads privatised labels only, but it is noisier.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from reproductions.label_dp import recipe as presets
from reproductions.label_dp.recipe import Recipe

SEEDS = (0, 1, 2)
HELD_OUT = 5_000
TUNING_EPOCHS = 16


def table() -> list[Recipe]:
    """The runs of the main comparison: epsilon 1 and 2, the ceiling, then 8 and 4, then the paper's own method."""
    runs = [presets.ours(epsilon, seed) for epsilon in (1.0, 2.0) for seed in SEEDS]
    runs += [presets.ceiling(seed=seed) for seed in SEEDS]
    runs += [presets.ours(epsilon, seed) for epsilon in (8.0, 4.0) for seed in SEEDS]
    return runs + alibi()


def alibi() -> list[Recipe]:
    """The paper's method at the levels of its Table 1."""
    return [presets.alibi(epsilon, seed) for epsilon in (1.0, 2.1, 8.0) for seed in SEEDS]


def agibi() -> list[Recipe]:
    """Gaussian noise at the levels of Table 6."""
    return [presets.agibi(epsilon, seed) for epsilon in (3.7, 7.7, 19.0) for seed in SEEDS[:1]]


def agibi_as_run() -> list[Recipe]:
    """The same as the paper's public code ran it."""
    return [presets.agibi_as_run(epsilon) for epsilon in (3.7, 7.7, 19.0)]


def naive() -> list[Recipe]:
    """Randomised labels taken at their word."""
    return [presets.naive(epsilon, seed) for epsilon in (1.0, 2.0, 4.0, 8.0) for seed in SEEDS[:1]]


def memorisation() -> list[Recipe]:
    """1,000 planted labels: the last column of Tables 1 and 6."""
    runs = [presets.alibi(epsilon) for epsilon in (1.0, 2.1, 8.0)] + [presets.ours(e) for e in (1.0, 2.0, 8.0)]
    runs += [presets.ceiling(), *agibi()]
    return [replace(run, canaries=1000) for run in runs]


def planted() -> list[Recipe]:
    """1,000 planted labels under mechanisms other than the paper's, in the recipe of `ours`."""
    return [replace(presets.ours(2.0), mechanism=name, canaries=1000) for name in ("unary", "krr")]


def table5(epsilon: float = 2.1) -> list[Recipe]:
    """Table 5: 1,000 planted labels in one training, beside ten trainings of 100."""
    one = presets.alibi(epsilon)
    return [replace(one, canaries=1000), *(replace(one, canaries=100, seed=seed) for seed in range(10))]


def cifar100() -> list[Recipe]:
    """Table 2, and the CIFAR-100 rows of Tables 1 and 6."""
    runs = [presets.ours(epsilon, seed, "cifar100") for epsilon in (3.0, 4.0, 5.0, 6.0, 8.0) for seed in SEEDS]
    runs += [presets.ceiling(seed=seed, data="cifar100") for seed in SEEDS]
    levels = (3.0, 4.0, 5.0, 6.0, 8.0, 8.1, 6.3, 2.0)
    runs += [presets.alibi(epsilon, seed, "cifar100") for epsilon in levels for seed in SEEDS]
    return runs + [presets.agibi(epsilon, 0, "cifar100") for epsilon in (17.0, 8.4, 5.4)]


VARIANTS: tuple[tuple[float, dict[str, Any]], ...] = (
    # epsilon, what is changed; the first line of each epsilon is the default
    (1.0, {}),
    (2.0, {}),
    (1.0, {"prior_power": 2.0, "balance": True}),
    (2.0, {"prior_power": 2.0, "balance": True}),
    (1.0, {"mixup": 1.0}),
    (2.0, {"mixup": 1.0}),
    (1.0, {"prior": "teacher", "ema_decay": 0.98}),
    (1.0, {"views": ("strong",), "epochs": 24}),
    (8.0, {}),
    (8.0, {"width": 1.5, "epochs": 9}),
    (8.0, {"strength": 0.6}),
    (1.0, {"weight_decay": 5e-4}),
    (2.0, {"prior": "teacher", "ema_decay": 0.98}),
)


def tuning() -> list[Recipe]:
    """Short runs, most telling first; each takes about as long as its neighbours."""
    return [
        replace(presets.ours(epsilon), held_out=HELD_OUT, **{"epochs": TUNING_EPOCHS, **change})
        for epsilon, change in VARIANTS
    ]


LISTS = {
    "table": table,
    "alibi": alibi,
    "agibi": agibi,
    "agibi-as-run": agibi_as_run,
    "naive": naive,
    "memorisation": memorisation,
    "planted": planted,
    "table5": table5,
    "cifar100": cifar100,
    "tuning": tuning,
}
