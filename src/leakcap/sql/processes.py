"""The processes in which questions run: one for each question, and some that are started before they are needed.

A process that waits has opened its file and is locked already; what it was spared is the start of Python and DuckDB. It
still answers one question and is ended, so that no question can leave anything behind for the next.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import weakref
from collections import OrderedDict, deque
from contextlib import suppress
from pathlib import Path

from leakcap.sql import worker
from leakcap.sql.worker import EngineLimits

__all__ = ["EngineProcess", "SpareProcesses", "ended", "started"]

EngineProcess = subprocess.Popen[bytes]
File = tuple[str | int, ...]  # by which a file is the same, and what its process may use
MOST_FILES = 4  # for which processes wait; those of the file that was asked about longest ago are ended


def started(path: Path | str | None, limits: EngineLimits) -> EngineProcess:
    """A process that opens a file, or waits for tables; it may still be on its way when this returns."""
    told = json.dumps({"path": None if path is None else str(path), "memory": limits.memory, "threads": limits.threads})
    return subprocess.Popen(
        [sys.executable, "-P", worker.__file__, told],  # a file that needs nothing of this package: a quick start
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def ended(process: EngineProcess) -> None:
    """End a process, whatever it is doing."""
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(BrokenPipeError):
                pipe.close()


class SpareProcesses:
    """Processes that wait for questions, a few for each file. They end with this object, and with this process."""

    def __init__(self, each: int) -> None:
        """`each`: how many wait for the next questions about a file; with 0, none does."""
        self.each = each
        self._waiting: OrderedDict[File, deque[EngineProcess]] = OrderedDict()
        self._lock = threading.Lock()
        self._end = weakref.finalize(self, _end_all, self._waiting)

    def taken(self, path: Path | str, limits: EngineLimits) -> EngineProcess:
        """A process for one question, and another one is started for the next."""
        file, found = _file(path, limits), None
        with self._lock:
            waiting = self._waiting.get(file)
            while waiting and found is None:
                found = waiting.popleft()
                if found.poll() is not None:  # it died while it waited
                    ended(found)
                    found = None
        self.prepare(path, limits)
        return found or started(path, limits)

    def prepare(self, path: Path | str, limits: EngineLimits) -> None:
        """See to it that as many wait as should."""
        file, over = _file(path, limits), list[EngineProcess]()
        with self._lock:
            if not self.each or not self._end.alive:
                return
            waiting = self._waiting.setdefault(file, deque())
            self._waiting.move_to_end(file)
            while len(waiting) < self.each:
                waiting.append(started(path, limits))
            while len(self._waiting) > MOST_FILES:
                over += self._waiting.popitem(last=False)[1]
        for process in over:
            ended(process)

    def close(self) -> None:
        """End all that wait."""
        self._end()


def _file(path: Path | str, limits: EngineLimits) -> File:
    """A process that has another version of a file open is of no use."""
    try:
        now = Path(path).stat()
    except OSError:
        return (str(path),)
    return (str(path), now.st_dev, now.st_ino, now.st_mtime_ns, now.st_size, limits.memory, limits.threads)


def _end_all(waiting: OrderedDict[File, deque[EngineProcess]]) -> None:
    for process in [one for of_file in waiting.values() for one in of_file]:
        ended(process)
    waiting.clear()
