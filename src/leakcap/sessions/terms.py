"""On what terms a session is opened, and its desk: the same for one table and for partitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.custody.ledger.accounts import Opened, Secret
from leakcap.ground.arrays import Bools
from leakcap.noise import OperatingSystem, Randomness, Seeded
from leakcap.sessions.clock import Clock
from leakcap.sessions.cohorts import Cohorts, Listed
from leakcap.sessions.desk import Desk
from leakcap.sessions.listed_worlds.desk import WorldsDesk
from leakcap.sessions.listed_worlds.opening import worlds_desk

__all__ = ["Terms"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Terms:
    """Who asks, and of what design. Custodian side.

    Attributes:
        everybody: whether all take part.
        analyst: empty for the custodian.
        always: whether the promise holds for every course of answers.
        retire: whether people who cannot pay are left out.
        seed: of a simulation.
    """

    everybody: bool
    analyst: str
    always: bool
    retire: bool
    seed: int | None

    @property
    def quiet(self) -> bool:
        """Whether nothing may be said of what the data are like."""
        return self.everybody or bool(self.analyst)

    @property
    def randomness(self) -> Randomness:
        return OperatingSystem() if self.seed is None else Seeded(self.seed)

    def secret(self, of_account: Secret) -> Secret:
        """The account's, or that of a simulation."""
        return of_account if self.seed is None else Secret(np.random.default_rng(self.seed).bytes(32))

    def desk(
        self, opened: Opened, *, people: npt.NDArray[Any], coins: Bools | None, version: str, own_rows: bool
    ) -> Desk:
        """Where questions that are sums are answered, by the account's clock. Coins None: everybody takes part."""
        return Desk(
            account=opened.account,
            clock=Clock(opened.square, opened.distance),
            people=people,
            coins=np.ones(len(people), dtype=bool) if coins is None else coins,
            everybody=self.everybody,
            version=version,
            analyst=self.analyst,
            retire=self.retire,
            own_rows=own_rows,
            randomness=self.randomness,
        )

    def listed(
        self, opened: Opened, listed: Listed, *, people: int, version: str, cohorts: Cohorts | None = None
    ) -> WorldsDesk:
        """Where questions are answered in the secret one of a list of worlds."""
        return worlds_desk(
            opened.account,
            opened.caps_then,
            people=people,
            worlds=listed.worlds,
            cohorts=cohorts,
            secret=self.secret(opened.secret),
            world=opened.world if self.seed is None else None,
            always=self.always,
            version=version,
            analyst=self.analyst,
            randomness=self.randomness,
        )
