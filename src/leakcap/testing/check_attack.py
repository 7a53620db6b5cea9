"""Does a user's attack play by the rules, find what is there, and keep quiet where there is nothing?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.audit.run import run
from leakcap.audit.trials import Known, Trials, knowledge, releases
from leakcap.caps import membership
from leakcap.errors import InputError
from leakcap.planning.entry import plan
from leakcap.planning.plans import Plan

__all__ = ["check_attack"]

Attack = Callable[[Known, Trials], Callable[[npt.NDArray[np.float64]], npt.ArrayLike]]
PEOPLE, TRIALS, LOOSE = 40, 3_000, 0.9


def check_attack(attack: Attack, *, seed: int = 0) -> None:
    """Try a user's attack on small releases of which everything is known; an error says what is wrong.

    The attack must give a finite score for every release and every unit, larger where a unit is likelier to have taken
    part. It must give the same scores again for the same releases and leave its arguments unchanged. It must recognise
    participants where hardly any noise protects them, and recognise nobody where the releases have nothing to do with
    who took part.

    Args:
        attack: `attack(known, learn)`, from a `Known` and the `Trials` to learn from to a function. That function takes
            released numbers `(releases, d)` and returns scores `(releases, units)`.
        seed: seed of the small releases.

    Raises:
        InputError: the attack breaks one of these rules; the message says which.
    """
    loose = _loose(seed)
    known, trials = knowledge(loose), releases(loose, TRIALS)
    learn, judge = trials.split(0.5, 0.5)
    before = learn.seen.tobytes(), judge.seen.tobytes()
    score = attack(known, learn)
    scores = np.asarray(score(judge.seen), dtype=np.float64)
    if scores.shape != (len(judge), known.units):
        raise InputError(f"an attack gives a score for each of {len(judge)} releases and {known.units} units")
    if not np.isfinite(scores).all():
        raise InputError("scores must be finite: give 0 where nothing is known")
    if not np.array_equal(scores, np.asarray(attack(known, learn)(judge.seen))):
        raise InputError("an attack must give the same scores for the same releases: seed its randomness")
    if (learn.seen.tobytes(), judge.seen.tobytes()) != before:
        raise InputError("an attack must not change what it is given: copy first")
    if _gain(scores, judge) < 0.1:
        raise InputError("the attack finds nothing although there is hardly any noise: do members get larger scores?")
    # The same releases with the secrets of other releases: now there is nothing to find.
    mixed = replace(learn, seen=np.random.default_rng(seed).permutation(learn.seen))
    chance = _gain(np.asarray(attack(known, mixed)(judge.seen[np.argsort(judge.seen[:, 0])])), judge)
    if abs(chance) > 0.05:
        raise InputError(
            "the attack claims to know where nothing can be known: does it see the secrets it is judged on?"
        )
    run(_loose(seed), attacks=[attack], trials=1_000)


def _loose(seed: int) -> Plan:
    rows = np.random.default_rng(seed).standard_normal((PEOPLE, 3))
    rows[0] *= 10.0
    return plan(_means, rows, cap=membership(LOOSE), worlds=64, seed=seed, draws=1024)


def _means(rows: Any) -> Any:
    return rows.mean(axis=0)


def _gain(scores: npt.NDArray[np.float64], judge: Trials) -> float:
    """How much likelier a participant's score is above a non-participant's, for the unit that stands out."""
    inside = judge.inside()[:, 0]
    ranks = scores[:, 0].argsort().argsort()
    return float(ranks[inside].mean() - ranks[~inside].mean()) / len(ranks)
