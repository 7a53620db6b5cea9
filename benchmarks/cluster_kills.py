"""Workers of a cluster killed at random moments of 100 runs, and the process that asked killed in some more.

    python -m benchmarks.cluster_kills [seconds]

It goes on where the last call stopped (what was seen lies in the temporary folder), for so many seconds; the call that
completes it writes the record. Every run has a fixed seed, and is compared bit for bit with the one that nobody
disturbed: outputs, certificate and the released value; of a session the answer and what it has spent.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.linear_model import Ridge

import leakcap as lc
from benchmarks.records import record

__all__ = ["KINDS", "Killer", "client_killed", "disturbed"]

RUNS, CLIENTS, WORKERS = 100, 4, 4  # runs whose workers are killed; runs that are killed themselves
SEEN = Path(tempfile.gettempdir()) / "leakcap-cluster-kills.json"
ROWS, WORLDS, SECONDS = 120, 96, 0.02  # of one world, at least
LONG, BRIEF = 1600, 0.02  # worlds of a run that is killed itself, and seconds of each
CAP = lc.mutual_information(0.3)  # whose noise is found at once
TABLE = np.random.default_rng(5).normal(size=(ROWS, 3))
PARTS: tuple[str, ...] = ()  # it is one


def slowed(fit: Callable[[Any], Any], rows: Any) -> Any:
    """A fit that takes long enough for a kill to meet it."""
    time.sleep(SECONDS)
    return fit(rows)


def k_means(rows: Any) -> Any:
    return KMeans(2, init=TABLE[:2], n_init=1).fit(rows).cluster_centers_


def ridge(rows: Any) -> Any:
    return Ridge().fit(rows[:, :2], rows[:, 2]).coef_


def trimmed(rows: Any) -> Any:
    low, middle, high = np.quantile(rows, [0.1, 0.5, 0.9], axis=0)
    return {"middle": middle, "spread": high - low}


def middle(rows: Any) -> float:
    return float(np.median(rows[:, 0]))


def planned(fit: Callable[[Any], Any], backend: Any) -> bytes:
    plan = lc.plan(partial(slowed, fit), TABLE, cap=CAP, worlds=WORLDS, draws=512, seed=11, backend=backend)
    released = plan.release().outputs
    return plan.outputs.tobytes() + plan.certificate.to_json().encode() + released.tobytes()


def asked(fit: Callable[[Any], Any], backend: Any) -> bytes:
    session = lc.Session(TABLE, cap=0.7, design="worlds", worlds=WORLDS, seed=11, backend=backend)
    answer = session.query(partial(slowed, fit), share=0.05)
    facts = [np.asarray(answer.value).tolist(), str(session.spent), len(session.history)]
    return json.dumps(facts).encode()


def slow_tail(rows: Any) -> float:
    time.sleep(SECONDS)
    return float(np.mean(rows["a"] > 0.5))


def summed(backend: Any) -> bytes:
    """Rows of people in shards, which workers have."""
    frame = pd.DataFrame({"who": np.arange(ROWS) % 90, "a": TABLE[:, 0]})
    session = lc.Session(lc.partitions([frame]), cap=0.7, unit="who", seed=11, backend=backend)
    answers = [session.linear(slow_tail, bounds=(0, 1), shape=(), share=share) for share in (0.1, 0.2)]
    facts = [[one.value for one in answers], str(session.spent), len(session.history), session.certificate.to_json()]
    return json.dumps(facts).encode()


KINDS: dict[str, Callable[[Any], bytes]] = {
    "K-Means": partial(planned, k_means),
    "ridge": partial(planned, ridge),
    "a session's answer": partial(asked, middle),
    "any function": partial(planned, trimmed),
    "sums over partitions": summed,
}


class Killer:
    """Kills workers of this machine while a block runs; `killed` counts those that were at work."""

    def __init__(self, cluster: lc.cluster.Cluster, moments: list[float], rng: np.random.Generator) -> None:
        self.killed = 0
        self._cluster, self._rng = cluster, rng
        self._timers = [threading.Timer(moment, self._kill) for moment in moments]
        self._over = False

    def _kill(self) -> None:
        nannies = list(self._cluster.client.cluster.workers.values())
        number = nannies[int(self._rng.integers(len(nannies)))].pid if nannies else None
        if number and not self._over:
            os.kill(number, signal.SIGKILL)
            self.killed += 1

    def __enter__(self) -> Killer:
        for timer in self._timers:
            timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over = True
        for timer in self._timers:
            timer.cancel()


def disturbed(kind: str, number: int, cluster: lc.cluster.Cluster, right: bytes) -> dict[str, Any]:
    """A run whose workers are killed once or twice, at random moments."""
    rng = np.random.default_rng([number, 7])
    moments = rng.uniform(0, WORLDS * SECONDS / 2, size=rng.choice([1, 1, 2])).tolist()
    began = time.monotonic()
    with Killer(cluster, moments, rng) as killer:
        try:
            right_answer = KINDS[kind](cluster) == right
        except lc.LeakcapError as error:
            return {"kind": kind, "right": False, "killed": killer.killed, "said": str(error)}
    found = {"kind": kind, "right": right_answer, "killed": killer.killed, "seconds": time.monotonic() - began}
    cluster.client.wait_for_workers(1, timeout=120)
    return found


JOB = """
import os, sys, time, warnings
import numpy as np, leakcap as lc
def slow(rows):
    time.sleep({brief})
    log = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(log, (str(hash(rows.tobytes())) + "\\n").encode()); os.close(log)
    return rows.mean(axis=0)
if __name__ == "__main__":
    warnings.simplefilter("ignore")
    table = np.random.default_rng(5).normal(size=(120, 3))
    os.environ["PYTHONHASHSEED"] = "0"
    plan = lc.plan(slow, table, cap=lc.mutual_information(.3), worlds={long}, draws=512, seed=11, backend="dask",
                   workers=2, checkpoint=sys.argv[1])
    print(hash(plan.outputs.tobytes() + plan.certificate.to_json().encode()), flush=True)
"""


def client_killed(number: int, folder: Path, long: int = LONG, brief: float = BRIEF) -> dict[str, Any]:
    """A run that is killed itself, with its scheduler, and taken up again: what share of the worlds was run twice."""
    job, log, place = folder / "job.py", folder / f"log{number}", folder / f"run{number}"
    job.write_text(JOB.format(long=long, brief=brief))
    command = [sys.executable, str(job), str(place), str(log)]
    environment = os.environ | {"PYTHONHASHSEED": "0"}
    share = float(np.random.default_rng([number, 9]).uniform(0.1, 0.9))
    first = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    while first.poll() is None and _lines(log) < share * long:
        time.sleep(0.01)
    first.kill()
    first.wait()
    time.sleep(1.0)  # its workers end with it
    before = _lines(log)
    second = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    told = Counter(log.read_text().split())
    again = sum(times - 1 for times in told.values()) - 1  # the whole pool, which is run last, may come twice too
    return {"kind": "client", "at": before / long, "again": max(again, 0) / long, "answer": second.stdout.decode()}


def _lines(log: Path) -> int:
    return log.read_bytes().count(b"\n") if log.exists() else 0


def main(seconds: float) -> None:
    warnings.simplefilter("ignore")
    seen = json.loads(SEEN.read_text()) if SEEN.exists() else []
    end = time.monotonic() + seconds
    runs = [one for one in seen if one["kind"] != "client"]
    if len(runs) < RUNS:
        right = {kind: ask(None) for kind, ask in KINDS.items()}
        with lc.cluster.connect(workers=WORKERS, patience=120) as cluster:
            for number in range(len(runs), RUNS):
                if time.monotonic() > end:
                    break
                kind = list(KINDS)[number % len(KINDS)]
                seen.append(disturbed(kind, number, cluster, right[kind]))
                print(number, seen[-1], flush=True)
                SEEN.write_text(json.dumps(seen))
    done = sum(one["kind"] == "client" for one in seen)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(done, CLIENTS):
            if time.monotonic() > end:
                break
            seen.append(client_killed(number, Path(folder)))
            print(number, seen[-1], flush=True)
            SEEN.write_text(json.dumps(seen))
    _store(seen)


def _store(seen: list[dict[str, Any]]) -> None:
    runs = [one for one in seen if one["kind"] != "client"]
    clients = [one for one in seen if one["kind"] == "client"]
    if len(runs) < RUNS or len(clients) < CLIENTS:
        print(f"{len(runs)} of {RUNS} runs, {len(clients)} of {CLIENTS} clients: call again")
        return
    record(
        "cluster-kills",
        f"{sum(one['right'] for one in runs)} of {len(runs)} runs right bit for bit, "
        f"{sum(one['killed'] for one in runs)} workers killed in them; {len(clients)} clients killed: at most "
        f"{100 * max(one['again'] for one in clients):.1f} % of the worlds were run twice, "
        f"{len({one['answer'] for one in clients})} answer among them",
        topic="Beyond one machine",
        claim="Workers killed at random moments of runs (K-Means, ridge, a session's answer, any function, sums over "
        "partitions); the asking process killed and its run resumed",
        command="python -m benchmarks.cluster_kills 3000",
        asked="every run right, no charge twice; under 5 % redone",
    )
    SEEN.unlink()


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 3000.0)
