"""Silence is the whole process's: threads that are silent at the same time leave the streams as they were."""

from __future__ import annotations

import logging
import sys
import threading
import time
import warnings
from contextlib import AbstractContextManager

import pytest

from leakcap.simulate.silence import hushed, silenced


def test_threads_that_are_silent_together_put_everything_back(capfd: pytest.CaptureFixture[str]) -> None:
    before = sys.stdout, sys.stderr, list(warnings.filters), logging.root.manager.disable

    def silent(number: int) -> None:
        for _ in range(40):
            quiet: AbstractContextManager[None] = hushed() if number % 2 else silenced()
            with quiet:
                print("a cell")
                time.sleep(1e-4 * (number % 5))

    threads = [threading.Thread(target=silent, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (sys.stdout, sys.stderr, list(warnings.filters), logging.root.manager.disable) == before
    print("heard")
    assert capfd.readouterr() == ("heard\n", "")
