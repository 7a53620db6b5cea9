"""The desk of an account whose secret is one of a list of worlds, which are drawn again from its key."""

from __future__ import annotations

import numpy as np

from leakcap.caps import Cap, Membership
from leakcap.custody.ledger import Account
from leakcap.custody.ledger.accounts import Secret
from leakcap.errors import InputError
from leakcap.noise import Randomness
from leakcap.sessions.cohorts import Cohorts
from leakcap.sessions.listed_worlds.cells import REACH
from leakcap.sessions.listed_worlds.charges import Clocks
from leakcap.sessions.listed_worlds.desk import WorldsDesk
from leakcap.sessions.listed_worlds.engine import ListedWorlds, SessionRule
from leakcap.sessions.listed_worlds.potentials import potentials_of
from leakcap.sessions.listed_worlds.rules import CLOSED, AlwaysRule
from leakcap.worlds import draw_worlds

__all__ = ["worlds_desk"]


def worlds_desk(
    account: Account,
    caps: tuple[Cap, ...],
    *,
    people: int,
    worlds: int,
    cohorts: Cohorts | None,
    secret: Secret,
    world: int | None,
    always: bool,
    version: str,
    analyst: str,
    randomness: Randomness,
) -> WorldsDesk:
    """The desk of an account, with the worlds that its secret key draws; `world` is None in simulations.

    Where people share a bit, it is cohorts that have clocks: each person's is that of their cohort.
    """
    units = people if cohorts is None else cohorts.count
    listed = draw_worlds(units, worlds, np.random.default_rng(list(secret.key("worlds"))))
    potentials = potentials_of(caps, listed.rate)
    rule: SessionRule = Clocks(potentials)
    if always:
        if len(caps) > 1 or not isinstance(caps[0], Membership):
            raise InputError("always=True is for one membership cap, such as cap=0.6")
        rule = AlwaysRule(caps[0].success)
    engine = ListedWorlds(listed, rule, CLOSED if always else REACH)
    chosen = randomness.below(listed.m) if world is None else world
    square = potentials[0].start
    return WorldsDesk(
        account,
        engine,
        chosen,
        square=square,
        always=always,
        version=version,
        analyst=analyst,
        randomness=randomness,
        cohorts=cohorts,
    )
