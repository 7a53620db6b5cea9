"""In `confidence` mode nothing that the function raises in the secret world gets out, in whatever way it is raised.

The function behaves in the 64 simulated worlds and on the whole pool; what it does in the next one, the secret, must
show nowhere: a release comes out as if it had behaved. In exact mode it is not run again at all.
"""

from __future__ import annotations

import functools
import logging
import os
import signal
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.planning import job
from tests.leaks.rigged import new_token
from tests.refusals import texts_of

MARK = "777123"  # in every number of the pool
X = 777123.25 + np.round(np.random.default_rng(7).random((24, 2)), 2) / 10
OPTIONS: dict[str, Any] = {"cap": lc.mutual_information(0.3), "mode": "confidence", "worlds": 64, "confidence": 0.9}


class Telling(BaseException):
    """Of no kind that anybody expects."""

    def __init__(self, x: Any) -> None:
        super().__init__(f"cannot handle {x}")
        self.rows = x


class Incomparable:
    """An answer whose own code fails when it is looked at."""

    def __init__(self, x: Any) -> None:
        self.x = x

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise Telling(self.x)

    def __getattr__(self, name: str) -> Any:
        raise Telling(self.x)


class Loud:
    """Fails when it is thrown away, which is late: it holds itself."""

    def __init__(self, x: Any) -> None:
        self.x, self.itself = x, self

    def __del__(self) -> None:
        raise ValueError(f"cannot close {self.x}")


def raising(kind: type[BaseException]) -> Callable[[Any], Any]:
    def raises(x: Any) -> Any:
        raise kind(f"cannot handle {x[0, 0]}")

    return raises


def chained(x: Any) -> Any:
    try:
        raise KeyError(x[0, 0])
    except KeyError as error:
        error.add_note(f"row {x[0]}")
        raise Telling(x) from error


def grouped(x: Any) -> Any:
    raise BaseExceptionGroup(f"in {x}", [KeyboardInterrupt(str(x)), SystemExit(str(x))])


def loud(x: Any) -> Any:
    Loud(x[0, 0])
    return x.mean(axis=0)


def loud_and_raising(x: Any) -> Any:
    held = Loud(x[0, 0])
    raise Telling(held.x)


def closes(x: Any) -> Any:
    """The places to which output is led back."""
    kept = [number for number in range(3, 64) if _leads_where(number) in (_leads_where(1), _leads_where(2))]
    for number in kept:
        os.close(number)
    raise Telling(x)


def _leads_where(number: int) -> Any:
    try:
        return os.fstat(number).st_ino
    except OSError:
        return number


def speaks(x: Any) -> Any:
    print(x[0, 0])
    print(x[0, 0], file=sys.stderr)
    logging.getLogger("analysis").error("row %s", x[0])
    logging.getLogger("analysis").exception("in %s", x[0], exc_info=Telling(x))
    warnings.warn(f"row {x[0]}", stacklevel=1)
    raise Telling(x)


ACTS: dict[str, Callable[[Any], Any]] = {
    **{kind.__name__: raising(kind) for kind in (ValueError, MemoryError, RecursionError, StopIteration)},
    **{kind.__name__: raising(kind) for kind in (KeyboardInterrupt, SystemExit, GeneratorExit, AssertionError)},
    "ours": raising(lc.AlreadyReleased),
    "unknown": lambda x: (_ for _ in ()).throw(Telling(x)),
    "chained": chained,
    "a group": grouped,
    "an answer that fails": Incomparable,
    "keys that fail": lambda x: {Incomparable(x): 1.0},
    "thrown away": loud,
    "thrown away late": loud_and_raising,
    "speaks": speaks,
    "other numbers": lambda x: x[:3].sum(axis=0) / 0,
}


ACT: list[Callable[[Any], Any]] = []  # what the function does in the secret world, and only there
CALLS: list[int] = []


def moody(x: Any) -> Any:
    CALLS.append(1)
    return ACT[-1](x) if len(CALLS) > 65 else x.mean(axis=0)


@functools.cache
def planned() -> lc.Plan:
    return lc.plan(moody, X, **OPTIONS)


def released_with(act: Callable[[Any], Any]) -> Any:
    """What comes out where the function does something else in the secret world."""
    plan = planned()
    plan._token = new_token()
    ACT[:] = [act]
    assert len(CALLS) >= 65
    before = len(CALLS)
    release = plan.release()
    assert len(CALLS) == before + 1
    return release


def everything_said(act: Callable[[Any], Any], caplog: Any, capfd: Any) -> str:
    """All that can be heard of a release, errors included."""
    planned()
    error = ""
    with caplog.at_level(logging.DEBUG), warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            released_with(act)
        except BaseException as raised:
            error = f"raised {texts_of(raised)}"
    shown = capfd.readouterr()
    return error + caplog.text + shown.out + shown.err + "".join(str(one.message) for one in heard)


@pytest.mark.parametrize("name", ACTS)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_nothing_that_the_function_raises_in_the_secret_world_gets_out(
    name: str, caplog: Any, capfd: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(sys, "unraisablehook", sys.__unraisablehook__)  # pytest would keep it from the terminal
    assert everything_said(ACTS[name], caplog, capfd) == ""


def test_a_failure_gives_a_release_like_any_other() -> None:
    good = released_with(lambda x: x.mean(axis=0))
    for act in (ACTS["KeyboardInterrupt"], ACTS["an answer that fails"]):
        bad = released_with(act)
        assert bad.value.shape == good.value.shape
        assert bad.not_rebuilt is None


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_function_that_closes_the_way_back_is_not_heard_either(capfd: Any) -> None:
    """Run apart: it leaves the process without its streams."""
    child = os.fork()
    if not child:
        try:
            released_with(closes)
        except BaseException:
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_ctrl_c_of_the_user_stops_the_release_without_telling_where() -> None:
    def interrupted(x: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return x.mean(axis=0)

    planned()
    found = signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore interrupts
    try:
        with pytest.raises(KeyboardInterrupt) as caught:
            released_with(interrupted)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, found)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert not any(entry.name == "interrupted" for entry in caught.traceback)
    assert MARK not in texts_of(caught.value)


def test_in_exact_mode_the_function_is_not_run_on_the_secret() -> None:
    """Its failures are those of simulated worlds, seen before anything is drawn."""
    options = {"mode": "exact", "worlds": 16, "draws": 256}
    calls = []

    def fn(x: Any) -> Any:
        calls.append(1)
        return x.mean(axis=0)

    plan = lc.plan(fn, X, **(OPTIONS | options))
    made = len(calls)
    plan.release()
    assert len(calls) == made


@pytest.mark.parametrize("name", ["KeyboardInterrupt", "chained", "speaks"])
def test_the_check_hears_a_function_that_is_let_through(name: str, caplog: Any, capfd: Any, monkeypatch: Any) -> None:
    """The planted twin."""
    monkeypatch.setattr(job, "unheard", lambda compute: compute())  # looked up at every call
    assert everything_said(ACTS[name], caplog, capfd) != ""
