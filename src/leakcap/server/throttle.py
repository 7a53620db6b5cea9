"""How often: requests by the minute, and how long to wait after wrong passwords. Kept in memory, bounded in size."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict

from leakcap.server.refusals import Refusal

__all__ = ["Failures", "Rate"]

MOST_NAMES = 10_000  # that are remembered; the oldest are forgotten first
MINUTE = 60.0
TOO_MANY_WRONG = "There were too many wrong passwords: wait a while, then try again."
MOST_DOUBLINGS = 4  # of a wait: others must not be able to keep somebody out for long


class Rate:
    """So many by the minute for each name; a bucket that fills up again."""

    def __init__(self, per_minute: int, words: str) -> None:
        self.per_minute, self.words = per_minute, words
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, name: str) -> None:
        """Count one; a `Refusal` where there were too many."""
        with self._lock:
            now = time.monotonic()
            left, then = self._left.pop(name, (float(self.per_minute), now))
            left = min(self.per_minute, left + (now - then) * self.per_minute / MINUTE)
            enough = left >= 1
            self._left[name] = (left - 1 if enough else left, now)
            while len(self._left) > MOST_NAMES:
                self._left.popitem(last=False)
        if not enough:
            raise Refusal(429, self.words, wait=MINUTE * (1 - left) / self.per_minute)


class Failures:
    """Wrong passwords: after some of them a name, or an address, has to wait, and twice as long each time."""

    def __init__(self, most: int, wait: float) -> None:
        self.most, self.wait = most, wait
        self._failed: OrderedDict[str, tuple[int, float]] = OrderedDict()
        self._lock = threading.Lock()

    def refuse(self, name: str) -> None:
        """A `Refusal` while it has to wait; what it says is the same for names that exist and others."""
        with self._lock:
            self._refuse(name, time.monotonic())

    def count(self, name: str) -> None:
        """Count a password as wrong before it is looked at: many at a time would be tried as one. Or a `Refusal`."""
        with self._lock:
            now = time.monotonic()
            self._refuse(name, now)
            failed, _ = self._failed.pop(name, (0, 0.0))
            over = failed + 1 - self.most
            until = now + self.wait * 2.0 ** min(over, MOST_DOUBLINGS) if over >= 0 else 0.0
            self._failed[name] = (failed + 1, until)
            while len(self._failed) > MOST_NAMES:
                self._failed.popitem(last=False)

    def forget(self, name: str) -> None:
        """After a right password."""
        with self._lock:
            self._failed.pop(name, None)

    def take_back(self, name: str) -> None:
        """What was counted was right; what was wrong before stays counted."""
        with self._lock:
            failed, until = self._failed.pop(name, (1, 0.0))
            if failed > 1:
                self._failed[name] = failed - 1, until if failed > self.most else 0.0

    def _refuse(self, name: str, now: float) -> None:
        until = self._failed.get(name, (0, 0.0))[1]
        if until > now:
            raise Refusal(429, TOO_MANY_WRONG, wait=until - now)
