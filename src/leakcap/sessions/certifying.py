"""What the answers of a session add up to, as a certificate."""

from __future__ import annotations

import math

from leakcap.caps import Cap, PoolMembership, TruePositiveRate
from leakcap.certificates.session import SessionCertificate, spoken
from leakcap.ground.proofs import proves
from leakcap.modes.about_one import rate_of_recognised
from leakcap.modes.designed import LISTED_ONLY
from leakcap.modes.interface import capped_figures
from leakcap.sessions.clock import TICKS, Clock, success_within, surest_of, told_after
from leakcap.sessions.cohorts import Cohorts
from leakcap.version import __version__

__all__ = ["certificate_of", "certificate_of_worlds"]

PEOPLE = (2_000, 50_000, 1_000_000)  # for whom it is told how sure somebody picked afterwards is known
CENTRE = "The pool's own statistic, around which the coins move the answer, and the size of people's contributions: "
OUTPUTS = "Noise, prices and refusals follow from what would be answered in every half of the list."
OWN_ROWS_ALONE = "The function sees the rows of the half it is run on, and nothing else."
SIZES = "How many people a cohort has, on average and at most."
DEALT = "Cohorts come from a keyed function (SipHash) of people's names, which behaves like a random one."
MATES = (
    "People of one cohort share a bit, which the custodian chose for speed: whoever learns of one of them whether they "
    "take part has learnt it of all of them, without any answer."
)
OWN_ROWS = "The most rows that one person has."
ASSUMED = (
    "Nobody but the custodian learns the noise and the secret key; both come from the operating system.",
    "Other releases of these data go through the same ledger.",
)
KEYED = "Coins come from a keyed function (SipHash) of people's names, which behaves like a random one."
BLOCKS = "A function that was asked in blocks keeps nothing from one block to the next."
QUERIES = "Rows that teachers were asked about are public: none of them was taken from these data."
TEACHERS = "A teacher learns from the rows of its own block alone, and keeps nothing from one block to the next."
DISTILLED = '"estimator": "Distilled"'  # in the words of a question
DECLARED = "Bounds, groups and conditions were written down without looking at the data."
NOT_PROMISED = (
    "It does not hide what is true of people in general: answers may be applied to anybody, as they are meant.",
    "Questions about several people at once, such as a household, are not bounded by this figure.",
    "Nothing else that the custodian lets out is covered: timing, memory use, remarks.",
)
NOT_IN_POOL = "It does not hide that somebody is in the data: the promise is about who of them takes part."


@proves("linear-sessions", "retire")
def certificate_of(
    caps: tuple[Cap, ...],
    clock: Clock,
    *,
    allowance: int,
    groups: int,
    answers: list[tuple[str, float]],
    answered: int,
    pool_made: list[str],
    own_rows: bool,
    alone: bool,
    seeded: bool,
) -> SessionCertificate:
    """The certificate of a session in which nobody spends more than `allowance` ticks.

    Guarantee: certain, nothing is sampled. After any number of answers, each asked in the light of those before, no
    attacker who knows everybody else guesses about a person named before with a larger success than stated.
    """
    everybody = isinstance(caps[0], PoolMembership)
    square = clock.square * allowance / TICKS
    success = told_after(square, clock.distance)
    values = tuple(
        rate_of_recognised(math.sqrt(square), cap.fpr, clock.distance) if isinstance(cap, TruePositiveRate) else success
        for cap in caps
    )
    pool_public = tuple(CENTRE + spoken(question) for question in dict.fromkeys(pool_made)) + (
        (OWN_ROWS,) if own_rows else ()
    )
    in_blocks = any('"kind": "blocks"' in question for question, _ in answers)
    distilled = any(DISTILLED in question for question, _ in answers)
    in_pool = success if everybody else None if pool_public else _in_the_pool(success)
    return SessionCertificate(
        kind="simulation" if seeded else "session",
        design="pool" if everybody else "bits",
        capped=capped_figures(caps, caps, values, (0.5, 2)),
        membership_success=success,
        square=square,
        sampler_distance=clock.distance,
        answered=answered,
        questions=tuple(answers),
        surest=tuple((people, surest_of(square, people)) for people in PEOPLE),
        groups=groups,
        groups_success=told_after(groups * square, groups * clock.distance),
        alone=alone,
        pool_public=pool_public,
        assumptions=(
            *ASSUMED,
            *(() if everybody else (KEYED,)),
            DECLARED,
            *((BLOCKS,) if in_blocks else ()),
            *((QUERIES, TEACHERS) if distilled else ()),
        ),
        not_promised=NOT_PROMISED + ((NOT_IN_POOL,) if in_pool is None else ()),
        theorems=("linear-sessions", "retire", "sampler") + (("pool",) if everybody else ()),
        leakcap_version=__version__,
        pool_membership_success=in_pool,
    )


@proves("clock", "every-transcript", "cohorts")
def certificate_of_worlds(
    caps: tuple[Cap, ...],
    *,
    worlds: int,
    square: float,
    answers: list[tuple[str, float]],
    always: bool,
    alone: bool,
    seeded: bool,
    cohorts: Cohorts | None = None,
) -> SessionCertificate:
    """The certificate of a session on a list of worlds, in which no clock ran out.

    Guarantee: certain, nothing is sampled. After any number of answers, each asked in the light of those before, no
    attacker who knows the pool and the list guesses about a person named before with a larger success than stated.
    Cohorts, too, are known to that attacker; who of them takes part is not.
    """
    success = success_within(caps)
    return SessionCertificate(
        kind="simulation" if seeded else "session",
        design="worlds" if cohorts is None else "cohorts",
        capped=capped_figures(caps, caps, tuple(cap.limit for cap in caps), (0.5, worlds)),
        membership_success=success,
        square=square,
        sampler_distance=0.0,
        answered=len(answers),
        questions=tuple(answers),
        surest=(),
        groups=1,
        groups_success=success,
        alone=alone,
        pool_public=(OUTPUTS,) if cohorts is None else (OUTPUTS, SIZES),
        assumptions=(*ASSUMED, OWN_ROWS_ALONE) if cohorts is None else (*ASSUMED, OWN_ROWS_ALONE, DEALT),
        not_promised=(*NOT_PROMISED, NOT_IN_POOL) + (() if cohorts is None else (MATES, LISTED_ONLY)),
        theorems=("clock", "cells", "log-m")
        + (("every-transcript",) if always else ())
        + (() if cohorts is None else ("cohorts", "designed-worlds")),
        leakcap_version=__version__,
        worlds=worlds,
        always=always,
        cohorts=None if cohorts is None else cohorts.count,
        in_cohort=None if cohorts is None else cohorts.average,
        in_largest=None if cohorts is None else cohorts.most,
    )


@proves("linear-sessions")
def _in_the_pool(success: float) -> float:
    """Success at telling whether a person is in the pool, of which a fair coin then decides whether they take part."""
    return min(1.0, (0.5 + 0.25 * (2 * success - 1)) * (1 + 1e-12))
