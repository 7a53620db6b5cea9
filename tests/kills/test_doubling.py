"""A run whose number of worlds is chosen, killed and resumed."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.kills.killing import appeared

JOB = """
import sys, time
import numpy as np
import leakcap as lc
from leakcap.planning import doubling
doubling.FIRST_WORLDS = 8
X = np.random.default_rng(5).normal(size=(40, 2))
def slow(x):
    time.sleep(0.02)
    return x.mean(axis=0)
options = dict(cap=lc.mutual_information(0.3), worlds="auto", draws=256, seed=11)
if len(sys.argv) > 1:
    options |= dict(checkpoint=sys.argv[1], backend="processes", workers=2)
plan = lc.plan(slow, X, **options)
print(plan.certificate.to_json(), plan.release().value.tobytes().hex())
"""


def test_a_killed_run_resumes_to_the_same_bytes(tmp_path: Path) -> None:
    command = [sys.executable, "-c", JOB, str(tmp_path / "plan")]
    expected = subprocess.run(command[:-1], capture_output=True, check=True).stdout
    for sign, wait in ((":worlds-", 0.1), (":stages", 0.1)):
        running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while running.poll() is None and not appeared(tmp_path / "plan", sign):
            time.sleep(0.002)
        time.sleep(wait)
        running.send_signal(signal.SIGKILL)
        _, errors = running.communicate()
        assert running.returncode == -signal.SIGKILL, errors.decode()
    assert subprocess.run(command, capture_output=True, check=True).stdout == expected
