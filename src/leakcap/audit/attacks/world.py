"""Naming the very world, somebody in it, or most of it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from leakcap.audit.attacks.membership import Scorer
from leakcap.audit.attacks.posterior import Belief, blocks
from leakcap.audit.trials import Known, Trials
from leakcap.audit.verdicts import Finding, judged
from leakcap.certificates.inputs_text import likeliest, named

__all__ = ["certified_naming", "everybody", "identify", "prior_of_most"]

MAX_NAMED = 2048  # people among whom one is named, the most exposed first
MAX_COMPLETE = 8192  # releases of which all memberships are guessed: everybody's take time
MIN_SHARE_RIGHT = 0.9  # share of all memberships that one guess has to get right


def identify(attack: str, known: Known, judge: Trials, belief: Belief, alpha: float) -> Finding:
    """Guess which world it was."""
    assert judge.secret is not None and known.worlds is not None
    wins = sum(
        int((belief.block(judge, rows).argmax(axis=1) == judge.secret[rows]).sum()) for rows in blocks(len(judge))
    )
    prior, certified = certified_naming(known)
    return judged(
        attack,
        "which of the worlds was the secret one" if known.units else "which of the inputs was used",
        wins=wins,
        trials=len(judge),
        prior=prior,
        certified=certified,
        alpha=alpha,
    )


def certified_naming(known: Known) -> tuple[float, float]:
    """How often the world is named without the release, and with it at most."""
    assert known.worlds is not None
    if known.certificate.of_inputs:
        return likeliest(known.certificate), named(known.certificate)
    prior = 1 / known.worlds.m
    return prior, float(known.certificate.posterior(prior))


def everybody(
    attack: str, known: Known, judge: Trials, score: Scorer, prior: float, alpha: float, share: float = MIN_SHARE_RIGHT
) -> list[Finding]:
    """Name one person who took part, chosen after the release; get at least this share of all memberships right.

    `prior` bounds how often the latter succeeds without the release: see `prior_of_most`.
    """
    named = most = 0
    exposed = np.sort(known.exposed[:MAX_NAMED])
    for rows in blocks(len(judge)):
        likely, truth = score(judge, rows, exposed), judge.part(rows).inside(exposed)
        named += int(truth[np.arange(len(truth)), likely.argmax(axis=1)].sum())
    count = min(len(judge), MAX_COMPLETE)
    for rows in blocks(count):
        likely, truth = score(judge, rows), judge.part(rows).inside()
        most += int((((likely > 0.5) == truth).mean(axis=1) >= share).sum())
    bound = float(known.certificate.posterior(prior)) if prior < 1 else 1.0
    naming, question = known.certificate.name_a_member_success, f"at least {share:.0%} of all memberships at once"
    return [
        judged(
            attack,
            "naming somebody who took part",
            wins=named,
            trials=len(judge),
            prior=known.rate,
            certified=naming,
            alpha=alpha,
        ),
        judged(attack, question, wins=most, trials=count, prior=prior, certified=bound, alpha=alpha),
    ]


def prior_of_most(masks: npt.NDArray[np.bool_], share: float = MIN_SHARE_RIGHT) -> float:
    """An upper bound on how often a guess made without the release gets so many memberships right.

    Worlds that agree with one guess in all but r units differ among themselves in at most 2r: the largest number of
    worlds so near to any one world bounds how many a guess can serve.
    """
    m, n = masks.shape
    off = n - int(np.ceil(share * n - 1e-9))
    signs = np.where(masks, 1.0, -1.0).astype(np.float32)
    nearest = 1
    for rows in blocks(m):
        differ = (n - signs[rows] @ signs.T) / 2
        nearest = max(nearest, int((differ <= 2 * off + 0.5).sum(axis=1).max()))
    return nearest / m
