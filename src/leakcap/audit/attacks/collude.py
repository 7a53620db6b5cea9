"""Participants who pool what they know: some memberships are told to the attacker."""

from __future__ import annotations

import numpy as np

from leakcap.audit.attacks.posterior import Belief, blocks
from leakcap.audit.trials import Known, Trials
from leakcap.audit.verdicts import Finding, judged
from leakcap.ground.arrays import Ints

__all__ = ["collude"]


def collude(
    attack: str, known: Known, judge: Trials, belief: Belief, unit: int, told: int, alpha: float, seed: int = 0
) -> Finding:
    """Success against a unit fixed before, for an attacker who is told `told` other memberships at random."""
    assert known.worlds is not None
    masks, rng, wins = np.ascontiguousarray(known.worlds.masks().T), np.random.default_rng(seed), 0
    for rows in blocks(len(judge)):
        part = judge.part(rows)
        given = _others(known.units, unit, rows=len(part), told=told, rng=rng)
        likely, truth = belief.block(judge, rows).astype(np.float64), part.inside()
        for k in range(told):  # worlds that contradict what is told fall out
            likely *= masks[given[:, k]] == np.take_along_axis(truth, given[:, k : k + 1], axis=1)
        mass = likely.sum(axis=1)
        share = np.divide(likely @ masks[unit], mass, out=np.full(len(part), 0.5), where=mass > 0)
        wins += int(((share > 0.5) == truth[:, unit]).sum())
    question = f"whether a person took part, knowing of {told} other{'s' if told > 1 else ''}"
    return judged(
        attack, question, wins=wins, trials=len(judge), prior=0.5, certified=known.certificate.given(told), alpha=alpha
    )


def _others(units: int, unit: int, rows: int, told: int, rng: np.random.Generator) -> Ints:
    """`(rows, told)`: different units in each row, none of them the one that is attacked."""
    found = rng.integers(0, units - 1, size=(rows, told))
    while (again := np.flatnonzero((np.diff(np.sort(found, axis=1), axis=1) == 0).any(axis=1))).size:
        found[again] = rng.integers(0, units - 1, size=(len(again), told))
    return np.asarray(found + (found >= unit), dtype=np.intp)
