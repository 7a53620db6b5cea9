"""A process that has the libraries and does nothing else: copies of it (`fork`) run Python commands.

To start Python and to load the libraries takes most of the time of a run that is killed soon.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import runpy
import select
import signal
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

from tests.cost import count_seconds

LIBRARIES = ("numba", "pandas", "scipy.optimize", "joblib.externals.loky", "typer", "cloudpickle")
OURS = ("leakcap.cli.release", "leakcap.leakage._loops", "leakcap.report.pages")


class Copy:
    """A command that runs, as `subprocess.Popen` shows it; what it says on standard error is kept in a pipe."""

    def __init__(self, command: list[str], folder: Path, environment: dict[str, str]) -> None:
        pipe = folder / "errors"
        pipe.unlink(missing_ok=True)
        os.mkfifo(pipe)
        self._errors = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        os.set_blocking(self._errors, True)
        self._answers, self.returncode = _template(), None
        request = {"command": command[1:], "here": str(folder), "environment": environment, "errors": str(pipe)}
        os.write(self._answers.stdin.fileno(), f"{json.dumps(request)}\n".encode())
        self._pid = int(self._answers.stdout.readline())

    def poll(self) -> int | None:
        """How it has ended, or None: it runs."""
        if self.returncode is None and select.select([self._answers.stdout], [], [], 0)[0]:
            self._ended()
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self._pid, number)

    def communicate(self) -> tuple[None, bytes]:
        """Waits for its end, and until nobody holds the pipe any more."""
        if self.returncode is None:
            self._ended()
        with open(self._errors, "rb") as errors:
            return None, errors.read()

    def _ended(self) -> None:
        self.returncode, seconds = json.loads(self._answers.stdout.readline())
        count_seconds(seconds)


@functools.cache
def _template() -> Any:
    """One for all tests; it ends with them."""
    path = os.pathsep.join(map(str, [Path(__file__).parent, *filter(None, [os.environ.get("PYTHONPATH")])]))
    begun = subprocess.Popen(
        [sys.executable, "-m", "tests.kills.warm"],
        cwd=Path(__file__).parents[2],
        env=os.environ | {"PYTHONPATH": path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
    )
    assert begun.stdout
    count_seconds(float(begun.stdout.readline()))  # of its start
    return begun


def _serve() -> None:
    for name in (*LIBRARIES, *OURS):
        importlib.import_module(name)
    sys.modules["numba"].njit(lambda number: number)(0)  # reads its own tables with the first function
    spent = os.times()
    _tell(spent.user + spent.system)
    for request in sys.stdin:
        copied = os.fork()
        if not copied:
            _run(json.loads(request))
            return
        _tell(copied)
        _, status, used = os.wait4(copied, 0)
        _tell([os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime])


def _tell(what: object) -> None:
    os.write(1, f"{json.dumps(what)}\n".encode())


def _run(request: dict[str, Any]) -> None:
    """As `python` would."""
    nowhere, errors = os.open(os.devnull, os.O_RDWR), os.open(request["errors"], os.O_WRONLY)
    for number, place in enumerate((nowhere, nowhere, errors)):
        os.dup2(place, number)
    os.close(nowhere)
    os.close(errors)
    os.chdir(request["here"])
    os.environ.clear()
    os.environ.update(request["environment"])
    first, *rest = request["command"]
    if first == "-m":
        sys.path[0], sys.argv = "", rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.path[0], sys.argv = "", ["-c", *rest[1:]]
        sys.modules["__main__"] = types.ModuleType("__main__")
        exec(rest[0], sys.modules["__main__"].__dict__)
    else:
        sys.path[0], sys.argv = str(Path(first).parent), [first, *rest]
        runpy.run_path(first, run_name="__main__")


if __name__ == "__main__":
    _serve()
