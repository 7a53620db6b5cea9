"""A run whose number of worlds is chosen, killed and resumed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from tests.kills.killing import PYTHON, Moment, names, run

OPTIONS: dict[str, Any] = {"worlds": "doubling", "draws": 256, "seed": 11}
JOB = """
import sys, time
from pathlib import Path
import numpy as np
import leakcap as lc
from leakcap.planning import doubling
assert doubling.FIRST_WORLDS == 128
doubling.FIRST_WORLDS = 8  # as the fixture `small_pools` does
X = np.random.default_rng(5).normal(size=(40, 2))
def slow(x):
    time.sleep(0.045)  # long enough for every world to be stored on its own
    return x.mean(axis=0)
plan = lc.plan(
    slow, X, cap=lc.mutual_information(0.3), checkpoint=sys.argv[1], backend="processes", workers=2, **OPTIONS
)
answer = plan.certificate.to_json() + plan.release().value.tobytes().hex()
Path(sys.argv[1]).with_suffix(".answer").write_text(answer)
""".replace("OPTIONS", repr(OPTIONS))


@pytest.mark.usefixtures("small_pools")
def test_a_killed_run_resumes_to_the_same_bytes(tmp_path: Path) -> None:
    X = np.random.default_rng(5).normal(size=(40, 2))
    undisturbed = lc.plan(lambda x: x.mean(axis=0), X, cap=lc.mutual_information(0.3), **OPTIONS)
    expected = undisturbed.certificate.to_json() + undisturbed.release().value.tobytes().hex()
    assert undisturbed.worlds.m >= 32  # three blocks: there is something to come after the first
    folder = tmp_path / "run" / "plan"
    folder.parent.mkdir()
    command = [PYTHON, "-c", JOB, str(folder)]
    for sign in (":worlds-", ":stages"):  # in the first block; after it, when the next is under way
        assert not run(command, folder, Moment(sign, 0.0)), "it came to its end before it was killed"
        assert names(folder, sign[1:])
        assert not folder.with_suffix(".answer").exists()
    run(command, folder)
    assert folder.with_suffix(".answer").read_text() == expected
