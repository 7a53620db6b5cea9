"""Votes of distilled models attacked: `python -m benchmarks.distilled_attacks [adult-60] [cifar-pool-55] ...`.

Two targets under each cap. *A person*: of 48, 40 of them those of whom the released model believes the least, the one
that moves the votes of their block most. *A dedicated target*: one who brings 60 rows of one wrong class, as many as
all others of a block who take part; everybody may then bring so many, and the noise is no larger for it. The attacker
knows all blocks, all coins but the target's, what would leave in either case, and the noise, and takes the likelier.
`--kept=FOLDER`: what teachers said is kept there, and a call that was stopped goes on; CPU seconds are the last call's.
"""

from __future__ import annotations

import hashlib
import sys
import time
import warnings
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import leakcap as lc
from benchmarks.distilled import CAPS, PARTS, WORDS, Case, Split
from benchmarks.records import record
from leakcap import estimators
from leakcap.estimators.taught_blocks import TaughtBlocks
from leakcap.sessions import desk
from leakcap.sessions.linear import STEP

TRIALS, OF_FAULT, SPLIT = 500, 200, 11
BROUGHT, WRONG = 60, {"adult": 1, "cifar": 3}  # rows of a dedicated target, and their class
FLAGS = tuple(f"{name}-{cap}" for name in PARTS for cap in CAPS)
KEPT = "--kept="
TOO_LITTLE = 1 / 20  # of the noise: the planted fault


def main(*given: str) -> None:
    warnings.simplefilter("ignore")
    (kept,) = [Path(one.removeprefix(KEPT)) for one in given if one.startswith(KEPT)] or [None]
    for wanted in [one for one in given if not one.startswith(KEPT)] or FLAGS:
        name, cap = wanted.split("-", 1)
        attack(name, cap, PARTS[name].split(SPLIT), kept)


def attack(name: str, cap: str, split: Split, kept: Path | None = None) -> None:
    """Both targets under one cap, and the planted fault for the second."""
    case, began = PARTS[name], time.process_time()
    folder = None if kept is None else kept / f"{name}-{cap}"
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    with mock.patch.object(TaughtBlocks, "_vector", told_once(TaughtBlocks._vector, folder)):
        _attack(name, cap, split, case, began)


def _attack(name: str, cap: str, split: Split, case: Case, began: float) -> None:
    model = fitted(case, cap, split)
    person = lc.audit.run(model, data=(split.X, split.y), trials=TRIALS).worst
    rows, classes, whose = with_target(split, WRONG[name])
    other = fitted(case, cap, split, (rows, classes, whose), blocks=model.blocks_)
    dedicated = lc.audit.run(other, data=(rows, classes, whose), trials=TRIALS).worst
    with mock.patch.object(desk, "with_noise", noised_too_little(desk.with_noise)):
        fault = lc.audit.run(other, data=(rows, classes, whose), trials=OF_FAULT).worst
    told = (
        f"a person {_ends(person)}, a dedicated target {_ends(dedicated)}; with a twentieth of the noise "
        f"{100 * fault.measured:.0f} %, {fault.verdict}. {time.process_time() - began:.0f} CPU seconds"
    )
    print(name, cap, told, flush=True)
    record(
        f"distilled-{name}-{cap}-attacked",
        told,
        topic="Private estimators",
        claim=claim(case, cap),
        command=f"python -m benchmarks.distilled_attacks {name}-{cap}",
        asked=f"below {person.certified:.3f}; refuted with too little noise",
    )


def claim(case: Case, cap: str) -> str:
    """What is attacked, and by whom."""
    return (
        f"{case.words}, {WORDS[cap]}: {TRIALS:,} releases of votes, attacked by whoever knows everybody else. "
        f"A person: of 48 the one who moves votes most. A dedicated target: one with {BROUGHT} rows of one wrong class"
    )


def fitted(case: Case, cap: str, split: Split, data: Any = None, **settings: Any) -> Any:
    rows, classes, whose = data or (split.X, split.y, None)
    options = None if whose is None else {"rows_per_unit": BROUGHT}
    model = estimators.Distilled(
        case.teacher,
        case.student,
        queries=split.public,
        classes=np.unique(split.right).tolist(),
        cap=CAPS[cap],
        random_state=SPLIT,
        options=options,
        **settings,
    )
    return model.fit(rows, classes, unit=whose)


def with_target(split: Split, wrong: int) -> tuple[Any, Any, Any]:
    """Rows, classes and whose they are, with one more person, whose rows are others' with a class not theirs."""
    others = np.flatnonzero(split.y != wrong)
    copied = np.random.default_rng(SPLIT).choice(others, BROUGHT, replace=False)
    whose = np.append(np.arange(len(split.y)), np.full(BROUGHT, len(split.y)))
    return np.vstack([split.X, split.X[copied]]), np.append(split.y, np.full(BROUGHT, wrong)), whose


def told_once(taught: Any, folder: Path | None) -> Any:
    """A teacher of the same rows says the same: it is asked once, for person, target and fault together.

    In the folder, if there is one, it is kept for later calls too.
    """
    said: dict[str, Any] = {}

    def told(self: TaughtBlocks, own: Any, place: int) -> Any:
        facts = f"{self.features.shape} {self.asked.shape} {self.basis.shape} {self.blocks} {self.seed} {place}"
        key = hashlib.sha256(facts.encode() + own.tobytes() + self.codes[own].tobytes()).hexdigest()
        path = None if folder is None else folder / f"{key}.npy"
        if key not in said:
            said[key] = np.load(path) if path is not None and path.is_file() else taught(self, own, place)
            if path is not None and not path.is_file():
                np.save(path, said[key])
        return said[key]

    return told


def noised_too_little(honest: Any) -> Any:
    """The planted fault: most of the noise is taken away again."""

    def noised(total: Any, grains: Any, deviations: Any, randomness: Any) -> Any:
        bare = np.asarray(total) / np.asarray(grains) * STEP * deviations
        return bare + TOO_LITTLE * (honest(total, grains, deviations, randomness) - bare)

    return noised


def _ends(found: Any) -> str:
    low, high = found.interval
    return f"right in {100 * found.measured:.1f} % ({100 * low:.1f} to {100 * high:.1f}), {found.verdict}"


if __name__ == "__main__":
    main(*sys.argv[1:])
