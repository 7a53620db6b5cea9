"""What a process puts aside goes with it, also when it is killed: tables that SQL asks, and the folder they lie in."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("duckdb")
REGISTERS = """
import os, signal, sys
import pandas as pd
import leakcap as lc
people = pd.DataFrame({"who": [1, 2, 3, 4], "note": ["a very telling cell"] * 4})
catalog = lc.sql.register({"people": people}, unit="people.who")
print(catalog.path, flush=True)
if sys.argv[1] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[1] == "forked":  # a child that ends takes nothing away
    child = os.fork()
    if not child:
        sys.exit()
    os.waitpid(child, 0)
    print(os.path.exists(catalog.path))
"""


@pytest.mark.parametrize("end", ["killed", "forked", "ends"])
def test_tables_of_a_process_go_with_it(tmp_path: Path, end: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", REGISTERS, end],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    assert ran.returncode == (-signal.SIGKILL if end == "killed" else 0)
    lines = ran.stdout.split()
    assert lines[0].startswith(str(tmp_path)) and lines[1:] == (["True"] if end == "forked" else [])
    until = time.monotonic() + 30
    while list(tmp_path.iterdir()) and time.monotonic() < until:  # another process cleans up after a kill
        time.sleep(0.05)
    assert list(tmp_path.iterdir()) == []
