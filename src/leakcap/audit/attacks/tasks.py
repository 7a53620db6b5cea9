"""Any question about the secret world: who wins with which guess."""

from __future__ import annotations

from leakcap.audit.attacks.posterior import Belief, blocks
from leakcap.audit.trials import Known, Trials
from leakcap.audit.verdicts import Finding, judged
from leakcap.ground.arrays import Floats
from leakcap.leakage.tasks import task_prior

__all__ = ["task"]


def task(
    attack: str, known: Known, judge: Trials, belief: Belief, wins: Floats, alpha: float, question: str = "a task"
) -> Finding:
    """Answer a question whose guess `g` is right in world `w` where `wins[w, g]` is 1."""
    assert judge.secret is not None
    right = 0
    for rows in blocks(len(judge)):
        guess = (belief.block(judge, rows) @ wins).argmax(axis=1)
        right += int(wins[judge.secret[rows], guess].sum())
    assert known.worlds is not None
    prior = task_prior(wins, known.worlds.shares)
    return judged(
        attack,
        question,
        wins=right,
        trials=len(judge),
        prior=prior,
        certified=float(known.certificate.posterior(prior)),
        alpha=alpha,
    )
