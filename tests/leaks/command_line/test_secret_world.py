"""What the function does in the secret world shows nowhere; planted leaks do."""

from __future__ import annotations

import logging
import os
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.custody import checkpoint, folders, signing
from leakcap.noise import OperatingSystem
from leakcap.planning import plans as releases
from leakcap.report.release import files as answers
from tests.leaks.command_line.runs import ACT, CALLS, FRESH, MEANS, NOW, SECRETS, Seen, panics, raises, telling


@pytest.fixture
def _known_figures(monkeypatch: Any) -> None:
    """Figures of a certificate are pure functions of it: computed once, where many runs share one certificate."""
    for name in ("posterior", "true_positive_rate"):
        figure = getattr(lc.Certificate, name)

        def known(self: Any, at: Any, figure: Any = figure, name: str = name) -> Any:
            asked = name, self.to_json(), repr(at)
            if asked not in KNOWN:
                KNOWN[asked] = figure(self, at)
            return KNOWN[asked]

        monkeypatch.setattr(lc.Certificate, name, known)


KNOWN: dict[Any, Any] = {}

# What the function does in the secret world


class Careless:
    def __init__(self, value: float) -> None:
        self.value = value

    def __del__(self) -> None:
        raise ValueError(f"cannot close {self.value}")


def _in_a_thread(table: Any) -> Any:
    thread = threading.Thread(target=raises, args=(table,))
    thread.start()
    thread.join()
    return table["age"].mean()


def _drops(table: Any) -> Any:
    Careless(table["age"].iloc[0])
    return table["age"].mean()


def _takes_long(table: Any) -> Any:
    NOW[0] += 1000.0
    return table["age"].mean()


def _writes(table: Any) -> Any:
    os.write(2, f"{len(table)} rows, the first {table['age'].iloc[0]}\n".encode())
    return table["age"].mean()


def _loud(table: Any) -> Any:
    print("the first is", table["age"].iloc[0])
    return table["age"].mean()


def _logs(table: Any) -> Any:
    logging.getLogger("analysis").warning("the first is %s", table["age"].iloc[0])
    return table["age"].mean()


def _warns(table: Any) -> Any:
    warnings.warn(f"the first is {table['age'].iloc[0]}", stacklevel=1)
    return table["age"].mean()


ACTS = {
    "raises": raises,
    "leaves": lambda table: sys.exit(int(table["age"].iloc[0])),
    "answers in another form": lambda table: table["age"].iloc[:2].to_numpy(),
    "answers with text": lambda table: str(table["age"].iloc[0]),
    "answers NaN": lambda table: float("nan"),
    "answers something huge": lambda table: 1e308,
    "divides by zero": lambda table: float(np.float64(1) / np.float64(0)),
    "warns": _warns,
    "prints": _loud,
    "logs": _logs,
    "writes to the terminal": _writes,
    "fails in a thread": _in_a_thread,
    "fails when it is thrown away": _drops,
    "panics": panics,
    "takes long": _takes_long,
}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("_known_figures")
@pytest.mark.parametrize("act", ACTS.values(), ids=list(ACTS))
def test_what_happens_in_the_fresh_secret_world_stays_there(act: Any, watch: Any, monkeypatch: Any) -> None:
    """Others behave: then whatever is seen of a misbehaviour tells that the secret was one of the misbehaving."""
    monkeypatch.setattr(threading, "excepthook", threading.__excepthook__)  # pytest would keep it from the terminal
    monkeypatch.setattr(sys, "unraisablehook", sys.__unraisablehook__)
    if not PLAIN:
        PLAIN.extend(watch(FRESH, secrets_=SECRETS[:1]))
        assert len(CALLS) == 66
        Path("out").rename("plain")
    ACT.append(act)
    acted = watch(FRESH, secrets_=SECRETS[1:])
    assert len(CALLS) == 66
    assert not telling([*PLAIN, *acted])


PLAIN: list[Seen] = []  # a run in which nothing happens

# The planted twins


def _planted(name: str, monkeypatch: Any) -> None:
    page, publish, commit, release = (
        answers.public_page,
        folders.Folders.publish,
        checkpoint.Checkpoint.commit,
        releases.Plan.release,
    )
    world: Callable[[], int] = lambda: OperatingSystem().below(16)  # noqa: E731

    def careless_release(self: Any) -> Any:
        found = release(self)
        odd = world() % 2
        {
            "out": lambda: print(f"world {world()}"),
            "err": lambda: print(f"world {world()}", file=sys.stderr),
            "log": lambda: logging.getLogger("leakcap").info("secret %d", world()),
            "warned": lambda: warnings.warn(f"world {world()}", stacklevel=1),
            "code": lambda: sys.exit(3 + odd),
            "writes": lambda: self._checkpoint.keep("form", self._checkpoint.kept("form")) if odd else None,
        }[name]()
        return found

    if name == "public/certificate.html":
        monkeypatch.setattr(answers, "public_page", lambda *a: page(*a) + f"<!-- world {world()} -->")
    elif name == "custodian/plan/release":
        monkeypatch.setattr(checkpoint.Checkpoint, "commit", lambda self, **a: commit(self, secret=world(), **a))
    elif name == "public/answer.csv":

        def open_to_all(self: Any, files: Any) -> None:
            publish(self, files)
            (self.public / "answer.csv").chmod(0o600 + world() % 2)

        monkeypatch.setattr(folders.Folders, "publish", open_to_all)
    elif name == "public/SHA256SUMS.sig":
        sign = signing.Signer.signed

        def salted(self: Any, files: Any) -> Any:
            return sign(self, files) | {"SHA256SUMS.sig": sign(self, {"salt": str(world())})["SHA256SUMS.sig"]}

        monkeypatch.setattr(signing.Signer, "signed", salted)
    elif name == "public/extra":
        monkeypatch.setattr(
            folders.Folders, "publish", lambda self, files: publish(self, files | ({"extra": ""} if world() else {}))
        )
    elif name == "custodian/report.html":
        page = answers.custodian_page
        monkeypatch.setattr(answers, "custodian_page", lambda *a: page(*a) + f"<!-- world {world()} -->")
    else:
        monkeypatch.setattr(releases.Plan, "release", careless_release)


PLANTED = [
    "public/certificate.html",
    "public/answer.csv",
    "public/extra",
    "public/SHA256SUMS.sig",
    "custodian/report.html",
    "custodian/plan/release",
    "out",
    "err",
    "log",
    "warned",
    "code",
    "writes",
]


@pytest.mark.usefixtures("_known_figures")
@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_trace_of_the_world_is_caught(name: str, watch: Any, monkeypatch: Any) -> None:
    _planted(name, monkeypatch)
    assert name in telling(watch(MEANS))
