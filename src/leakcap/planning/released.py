"""What leaves: a released answer with its certificate, and the right to release once."""

from __future__ import annotations

import os
import threading
import warnings
import weakref
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leakcap.certificates.display import Displayed, upstairs
from leakcap.certificates.release import Certificate
from leakcap.errors import AlreadyReleased, InputError, LeakcapError, RepeatedReleaseWarning
from leakcap.ground import checks
from leakcap.ground.arrays import Floats
from leakcap.ground.callers import frames_of_ours
from leakcap.ground.processes import this_process
from leakcap.planning.accuracy import interval_at

__all__ = ["Release", "Token", "forget_released", "plan_of", "remember_plan", "warn_of_second_secret"]

_prints_of_released_data: set[str] = set()
_lock_of_prints = [threading.Lock()]
# Beside the releases, never in them: what is saved, copied or published of a release holds no plan.
_plans: weakref.WeakKeyDictionary[Release, Any] = weakref.WeakKeyDictionary()


def _in_a_child() -> None:
    _lock_of_prints[0] = threading.Lock()  # a thread that is not here may seem to hold it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_a_child)


@dataclass(frozen=True, eq=False)
class Release(Displayed):
    """A released answer and its certificate. Public side only: safe to pickle and to publish.

    Attributes:
        value: the answer, in the form that the function returns.
        certificate: what holds, against whom, under which assumptions, with what confidence.
        names: names of the outputs, in the order of `interval`; empty where they are too many to list.
        labels: the same in words for people: those of `outputs=`, and which outputs are of a part of the pool alone.
        notes: what could be misread: outputs that are of a part of the pool, or that leave without noise.
        not_rebuilt: None; or why the answer could not be given its form: then `value` is the numbers, flattened.
    """

    value: Any
    certificate: Certificate
    names: tuple[str, ...]  # of the outputs, in the order of `interval`; none where they are too many to list
    _vector: Floats
    _widths: tuple[tuple[float, Floats], ...]
    not_rebuilt: str | None = None
    labels: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Where the answer on the whole pool lies, per output (flattened), with at least this probability.

        The interval covers both errors: the answer used part of the pool, and it was noised. Widths were fixed before
        the secret was drawn. Under a pool cap everybody is used, and they follow from what was released; of an average
        over blocks (`leakcap.blocks`) it is then the average on the whole pool, not the function's own answer there.
        Over given inputs it holds the answer on the input that was used.

        Args:
            level: probability that the interval holds, above 0 and below 1.

        Returns:
            Lower and upper ends, each `(outputs,)`.

        Raises:
            InputError: the level is higher than those kept, or the function has no such answer on the whole pool.
        """
        checks.fraction(level=level)
        if not self._widths:
            raise InputError("no interval: the function has no answer of this form on the whole pool")
        return interval_at(self._vector, self._widths, level)

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        allow_simulation: bool = False,
        title: str = "Released answer",
        issuer: str = "",
        data_set: str = "",
    ) -> None:
        """Write the release to a folder, as `leakcap release` does; or to one file, by its ending: `.html`.

        The folder gets a `public` part: the answer, the certificate and its page, signed where the `vault` extra is
        installed. In the process that released, it also gets a `custodian` part, for its owner alone: what the answer
        costs and hides. `leakcap.load(folder)` reads the public part again.

        Args:
            path: a folder that holds no release yet, named without an ending; or a file whose ending says the form.
            allow_simulation: writes a simulation too.
            title: what was asked, for people to read.
            issuer: who publishes it.
            data_set: the name of the data set.

        Raises:
            InputError: it is a simulation, and that was not allowed; or the folder cannot be written.
            AlreadyReleased: the folder holds a release.
        """
        if Path(path).suffix:
            super().save(path, allow_simulation=allow_simulation)
            return
        self._refuse_simulation(allow_simulation)
        upstairs().keep(self, Path(path), title=title, issuer=issuer, data_set=data_set)

    @property
    def outputs(self) -> Floats:
        """The released numbers, flattened."""
        return self._vector.copy()

    @property
    def widths(self) -> tuple[tuple[float, Floats], ...]:
        """Half-widths of `interval`, for each level that is kept."""
        return self._widths

    def __repr__(self) -> str:
        notes = f", notes={self.notes!r}" if self.notes else ""
        return f"Release(kind={self.certificate.kind!r}, value={self.value!r}{notes})"


class Token:
    """The right to release once, shared by a plan and all its recaps, in the process that made it."""

    def __init__(self, fingerprints: Callable[[], Collection[str]]) -> None:
        """`fingerprints` of the data, one for each argument that tells whose they are."""
        self._lock = threading.Lock()
        self._spent = False
        self._fingerprints = fingerprints
        self._process = this_process()

    def refuse_child(self) -> None:
        """A LeakcapError in a process that was forked off since: a copy of this token cannot know of the others."""
        if self._process != this_process():
            raise LeakcapError(
                "this plan was made in another process, and this one has a copy of it: each would release a value of "
                "its own. Release it where it was made; or plan here, with the same checkpoint if it has one"
            )

    def refuse_spent(self) -> None:
        """AlreadyReleased if it is spent."""
        if self._spent:
            raise AlreadyReleased(
                "this plan, or a recap of it, was released already: releases of one simulation share one secret. "
                "Keep the released value; for more answers about the same data use a session"
            )

    def spend(self, quiet: bool) -> None:
        """Spend first, release after: a crash wastes a release, it never makes two.

        `quiet` where no new secret leaves: simulations, and releases that were stored.
        """
        if not quiet:
            self.refuse_child()
        with self._lock:
            self.refuse_spent()
            self._spent = True
        if not quiet:
            warn_of_second_secret(self._fingerprints())

    def __reduce__(self) -> Any:
        raise LeakcapError("the right to release is neither copied nor pickled: it is spent once")


def remember_plan(release: Release, plan: Any) -> Release:
    """The release, of whose plan this process knows as long as there is the release."""
    _plans[release] = plan
    return release


def plan_of(release: Release) -> Any:
    """The plan of a release that was made in this process, or None. Custodian side."""
    return _plans.get(release)


def warn_of_second_secret(prints: Collection[str], remember: bool = True) -> None:
    """A warning if something was released of data with one of these fingerprints, in this process and in no ledger."""
    with _lock_of_prints[0]:
        known = bool(_prints_of_released_data & set(prints))
        if remember:
            _prints_of_released_data.update(prints)
    if known:
        warnings.warn(
            "these data were released before in this process. Certificates stand alone: two releases with two "
            "secrets are bounded by neither. Use a session with a ledger for several answers",
            RepeatedReleaseWarning,
            stacklevel=1 + frames_of_ours(),
        )


def forget_released() -> None:
    """Forget which data were released in this process: the next release of any of them gives no warning."""
    _prints_of_released_data.clear()
