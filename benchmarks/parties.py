"""Three parties that compute together: wall time, CPU seconds and bytes, and noise beside that of a trusted holder.

`python -m benchmarks.parties [mean-pool ...]`, the cases are in `PARTS`. Three processes on this machine, connected by
sockets, each with 10,000 rows of 10 columns; what is told is one party's part from meeting the others to the answer,
start-up apart.
"""

from __future__ import annotations

import json
import resource
import socket
import subprocess
import sys
import time

import numpy as np

from benchmarks.records import record
from leakcap.local import JointQuestion, together
from leakcap.local.parties.law import calibrated
from leakcap.modes.pool import least_noise_within

TOPIC = "Without a holder"
ROWS, COLUMNS, PARTIES = 10_000, 10, 3
NAMES = tuple(f"c{number}" for number in range(COLUMNS))
BOUNDS = dict.fromkeys(NAMES, (0.0, 100.0))
PARTS = {
    "mean-pool": {"ask": "mean"},
    "mean-bits": {"ask": "mean", "design": "bits", "rows": ROWS},
    "histogram-pool": {"ask": "histogram", "edges": tuple(np.linspace(0, 100, 5))},
    "covariance-pool": {"ask": "covariance"},
    "ridge-pool": {"ask": "ridge", "columns": NAMES[:-1], "target": NAMES[-1]},
}


def question(case: str) -> JointQuestion:
    """Of a case."""
    return JointQuestion(**{"columns": NAMES, "bounds": BOUNDS, "cap": 0.55} | PARTS[case])


def part(case: str, join: str, party: int) -> None:
    """One party's process: prints what it took."""
    rows = np.random.default_rng(party).uniform(0, 100, (ROWS, COLUMNS))
    before, began = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    found = together(rows, question(case), join=join, party=party)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    opened = [[one.what, one.numbers] for one in found.transcript.openings]
    told = {"wall": wall, "cpu": cpu, "sent": found.transcript.sent_bytes, "opened": opened}
    print(json.dumps(told | {"messages": len(found.transcript.messages), "memory": after.ru_maxrss}))


def measured(case: str) -> None:
    """All parties of a case, and its record."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(PARTIES)]
    join = ",".join(f"127.0.0.1:{one.getsockname()[1]}" for one in held)
    for one in held:
        one.close()
    command = [sys.executable, "-m", "benchmarks.parties", "--part", case, join]
    running = [subprocess.Popen([*command, str(i + 1)], stdout=subprocess.PIPE) for i in range(PARTIES)]
    told = [json.loads(one.communicate()[0]) for one in running]
    asked = question(case)
    extent = asked.brought(np.empty((0, COLUMNS))).extent
    held_noise, _, _ = least_noise_within(extent, asked.caps)
    more = float((calibrated(extent, asked.caps).deviations / held_noise).max())
    seen = (
        f"{max(one['wall'] for one in told):.1f} s, {sum(one['cpu'] for one in told):.1f} CPU s of all three, "
        f"{sum(one['sent'] for one in told) / 1e6:.1f} MB sent in all, {told[0]['messages']} messages of a party; "
        f"opened: {told[0]['opened'][0][1]} noisy sums, once; noise {more:.3f} times that of a trusted holder"
    )
    assert all(len(one["opened"]) == 1 for one in told)
    print(f"{case}: {seen}")
    record(
        f"parties-{case}",
        seen,
        topic=TOPIC,
        claim=f"{case.replace('-', ', ')}: {PARTIES} parties x {ROWS:,} rows x {COLUMNS} columns, cap .55",
        command=f"python -m benchmarks.parties {case}",
        asked="time and bytes reported",
    )


def main(arguments: list[str]) -> None:
    """Cases by name; all of them if none is named."""
    if arguments[:1] == ["--part"]:
        part(arguments[1], arguments[2], int(arguments[3]))
        return
    for case in arguments or PARTS:
        measured(case)


if __name__ == "__main__":
    main(sys.argv[1:])
