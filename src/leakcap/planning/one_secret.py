"""One secret world for several releases: drawn with the first of them, kept until the last, told to nobody."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.errors import AlreadyReleased, LeakcapError
from leakcap.ground.arrays import Bools
from leakcap.noise import OperatingSystem, Randomness
from leakcap.planning.released import Token
from leakcap.worlds.draw import RandomBits

__all__ = ["PartSource", "PartToken", "SharedSecret"]


class SharedSecret:
    """The secret of several parts, and the right to release them instead of the joint answer; custodian side."""

    def __init__(self, joint: Token) -> None:
        """`joint` is the right to release all at once: the first part spends it."""
        self._joint, self._begun, self._world = joint, False, -1
        self._half: Bools | None = None
        self._lock = threading.Lock()

    def begin(self) -> None:
        """With the first part, all of them are released for good: neither the joint answer nor other caps follow."""
        with self._lock:
            if not self._begun:
                self._joint.spend(quiet=False)
                self._begun = True

    def world(self, worlds: int) -> int:
        """The secret, drawn last of all: when every part has its noise."""
        with self._lock:
            if self._world < 0:
                self._world = OperatingSystem().below(worlds)
            return self._world

    def half(self, draw: Callable[[Randomness], Bools]) -> Bools:
        """The secret where it is no listed world but a fresh one, drawn last of all."""
        with self._lock:
            if self._half is None:
                self._half = draw(OperatingSystem())
            return self._half

    def refuse_joint(self) -> None:
        """AlreadyReleased if all answers left at once; not while another part, in a thread of its own, is the first."""
        with self._lock:
            if not self._begun:
                self._joint.refuse_spent()

    def refuse_begun(self, instead: str) -> None:
        """AlreadyReleased once a part was released, with what to do instead."""
        if self._begun:
            raise AlreadyReleased(f"a part was released already: {instead}")

    def __reduce__(self) -> Any:
        raise LeakcapError("a secret is neither copied nor pickled")


class PartToken(Token):
    """The right to release one part, once."""

    def __init__(self, secret: SharedSecret) -> None:
        super().__init__(lambda: ())  # the joint right knows the data, and warns of them
        self._secret, self.armed = secret, False

    def refuse_spent(self) -> None:
        super().refuse_spent()
        self._secret.refuse_joint()

    def half(self, draw: Callable[[Randomness], Bools], source: Randomness) -> Bools:
        """The secret half of all parts for the release; for trials, one of their own."""
        if not self.armed:
            return draw(source)
        self.armed = False  # seeds and noise, which come next, are this part's own
        return self._secret.half(draw)

    def spend(self, quiet: bool) -> None:
        """Trials for audits are quiet: they have worlds of their own, and never see the secret."""
        super().spend(quiet)
        if not quiet:
            self._secret.begin()
            self.armed = True


class PartSource:
    """The randomness of one part: the secret of all parts for its release, and the operating system for the rest."""

    def __init__(self, right: PartToken, secret: SharedSecret) -> None:
        self._right, self._secret, self._system = right, secret, OperatingSystem()

    def below(self, n: int) -> int:
        if not self._right.armed:
            return self._system.below(n)
        self._right.armed = False
        return self._secret.world(n)

    def normals(self, size: int) -> npt.NDArray[np.float64]:
        return self._system.normals(size)

    def bits(self) -> RandomBits:
        return self._system.bits()
