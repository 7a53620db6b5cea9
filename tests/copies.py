"""Processes that tests start by the hundred, as copies of one that has loaded what each of them loads.

Every question in SQL has a process of its own, and so has every piece of long work of a server; most of what they cost
in a test is the start of Python and of libraries. A copy (`fork`) of a process that has done that and nothing else goes
on as any other: the same function with the same arguments, pipes and environment, until it ends or is killed. How such
processes are started for users is tested where they are: in `tests/sql`, `tests/leaks` and `tests/kills` nothing is
copied.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from types import TracebackType
from typing import Any

__all__ = ["Copies", "Copy"]

ROOT = Path(__file__).parents[1]
WORKER = ROOT / "src" / "leakcap" / "sql" / "worker.py"
ASKED = "asked"  # a socket in the folder of a source
ALONE = [sys.executable, "-P"]
ENGINE, WORK = [*ALONE, str(WORKER)], [*ALONE, "-m", "leakcap.server.work"]
PIPES = {"stdin", "stdout", "stderr"}
TICK = os.sysconf("SC_CLK_TCK")
LOADED_FOR_WORK = (
    *("duckdb", "pandas", "leakcap.server.work", "leakcap.server.comparing", "leakcap.sql.register"),
    *(f"leakcap.cli.{name}" for name in ("audit", "release")),
    "leakcap.report.pages",
)


class Copies:
    """Copies in the place of processes; `counts` is told the CPU seconds of each when it is over."""

    def __init__(self, counts: Callable[[float], None] = lambda seconds: None) -> None:
        self.counts = counts
        self._sources: dict[str, Source] = {}
        self._lock = threading.Lock()

    def source(self, kind: str) -> Source:
        """What copies are made of. Begun before a `fork` of this process, it is there for both."""
        with self._lock:
            if kind not in self._sources:
                self._sources[kind] = Source(kind)
            return self._sources[kind]

    def popen(self) -> type:
        """What stands in for `subprocess.Popen`, and starts everything else as ever."""
        copies, honest = self, subprocess.Popen

        class Popen(honest):  # type: ignore[type-arg,misc,valid-type]
            def __new__(cls, command: Any, *_: Any, **how: Any) -> Any:
                known = isinstance(command, list) and how.keys() - {"env"} == PIPES
                for kind, begins in KINDS.items() if known else ():
                    if command[: len(begins)] == begins:
                        return Copy(copies.source(kind), command, command[len(begins) :], copies.counts, **how)
                return object.__new__(cls)

        return Popen

    def close(self) -> None:
        """End the processes that copies are made of."""
        for source in self._sources.values():
            source.close()


class Source:
    """The process that copies are made of. It ends when nobody is left who could ask."""

    def __init__(self, kind: str) -> None:
        self.folder = tempfile.mkdtemp(prefix="copies-")
        command = [*ALONE, __file__, kind, self.folder]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdin and self.process.stdout
        assert self.process.stdout.read(1), "it does not listen"

    def copied(self, arguments: list[str], environment: Mapping[str, str], pipes: list[int]) -> int:
        """The number of a copy that has these pipes for its input, output and errors, and tells its end by the last."""
        request = json.dumps([os.getcwd(), arguments, dict(environment)]).encode()
        with socket.socket(socket.AF_UNIX) as asked:
            asked.connect(f"{self.folder}/{ASKED}")
            socket.send_fds(asked, [len(request).to_bytes(8, "big")], pipes)
            asked.sendall(request)
            return int(asked.recv(20))

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()
        rmtree(self.folder, ignore_errors=True)


class Copy:
    """As much of `subprocess.Popen` as is asked of such processes."""

    def __init__(
        self,
        source: Source,
        command: list[str],
        arguments: list[str],
        counts: Callable[[float], None],
        *,
        stdin: int,
        stdout: int,
        stderr: int,
        env: Mapping[str, str] | None = None,
    ) -> None:
        assert stdin == stdout == subprocess.PIPE and stderr in (subprocess.PIPE, subprocess.DEVNULL)
        self.args, self.returncode, self._counts = command, None, counts
        ours, theirs = [], []
        for writes in (True, False, False, False):
            read, write = os.pipe()
            ours.append(write if writes else read)
            theirs.append(read if writes else write)
        try:
            self.pid = source.copied(arguments, os.environ if env is None else env, theirs)
        finally:
            for pipe in theirs:
                os.close(pipe)
        self.stdin: Any = os.fdopen(ours[0], "wb")
        self.stdout: Any = os.fdopen(ours[1], "rb")
        self.stderr: Any = os.fdopen(ours[2], "rb")
        self._last = os.fdopen(ours[3], "rb")
        if stderr == subprocess.DEVNULL:
            self.stderr.close()
            self.stderr = None

    returncode: int | None

    def poll(self) -> int | None:
        """How it ended, or None while it runs."""
        if self.returncode is None and select.select([self._last], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Until it has ended: then its end of the last pipe is closed, whatever ended it."""
        if self.returncode is None:
            if not select.select([self._last], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            told = self._last.read().split()
            self._last.close()
            self.returncode = int(told[0]) if told else -signal.SIGKILL
            if told:
                self._counts(float(told[1]))
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        if self.poll() is None:
            with suppress(OSError):
                used = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
                self._counts((int(used[11]) + int(used[12])) / TICK)
            self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def __enter__(self) -> Copy:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for pipe in (self.stdin, self.stdout, self.stderr):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
        self.wait()


# in the process that copies are made of


def _engine() -> Callable[[], None]:
    """What a worker loads, and what it does."""
    sys.modules["numpy"] = None  # type: ignore[assignment]  # as it does
    for name in ("duckdb", "pyarrow.ipc"):
        importlib.import_module(name)
    spec = importlib.util.spec_from_file_location("worker", WORKER)
    assert spec is not None and spec.loader is not None
    module = sys.modules["worker"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.main  # type: ignore[no-any-return]


def _work() -> Callable[[], None]:
    """The same of long work, which certifies with few draws, as all tests do where no claim is tested."""
    sys.path.insert(0, str(ROOT))
    from tests.few import FewFromTheStart

    del sys.path[0]
    sys.meta_path.insert(0, FewFromTheStart())
    for name in LOADED_FOR_WORK:
        importlib.import_module(name)
    return sys.modules["leakcap.server.work"].main  # type: ignore[no-any-return]


KINDS = {"engine": ENGINE, "work": WORK}
LOADS = {"engine": _engine, "work": _work}


def _serve(kind: str, folder: str) -> None:
    work = LOADS[kind]()
    gc.freeze()  # copies need not look through all that
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for copies
    with socket.socket(socket.AF_UNIX) as asked:
        asked.bind(f"{folder}/{ASKED}")
        asked.listen(64)
        os.write(1, b".")
        while select.select([asked, 0], [], [])[0] == [asked]:
            known, _ = asked.accept()
            size, pipes, _, _ = socket.recv_fds(known, 8, 4)
            with known.makefile("rb") as request:
                here, arguments, environment = json.loads(request.read(int.from_bytes(size, "big")))
            if not (copied := os.fork()):
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                os.chdir(here)
                os.environ.clear()
                os.environ.update(environment)
                sys.argv[1:] = arguments
                _copy(work, pipes)
            for pipe in pipes:
                os.close(pipe)
            known.sendall(str(copied).encode())
            known.close()
    rmtree(folder, ignore_errors=True)


def _copy(work: Callable[[], None], pipes: list[int]) -> None:
    """What a copy does, to its end. No pipe of another one stays open in it."""
    told = os.dup2(pipes[3], 200, inheritable=False)
    for place, pipe in enumerate(pipes[:3]):
        os.dup2(pipe, place)
    os.closerange(3, told)
    status = 1
    try:
        work()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os.write(told, f"{status} {sum(os.times()[:4])}".encode())
        os._exit(status)


if __name__ == "__main__":
    _serve(*sys.argv[1:])
