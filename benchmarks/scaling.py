"""How cost grows with rows, columns, worlds, units and outputs; and what it comes to where nobody has measured it.

    python -m benchmarks.scaling measure            # a few minutes of one core; writes benchmarks/curves/scaling.json
    python -m benchmarks.scaling sessions           # the same for answers over partitions
    python -m benchmarks.scaling page               # writes docs/scaling.md from that file
    python -m benchmarks.scaling cost --rows 1e11 --units 1e9 --columns 8 --core-hour 0.05 --machines 100

Times are of a core's own time, so that a busy machine does not count.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import leakcap as lc
from benchmarks.records import record
from benchmarks.scaling_sessions import BASE as STREAMED_BASE
from benchmarks.scaling_sessions import STREAMED, measured, seconds_without_rows, shown_sessions
from leakcap.kernels.moments import means
from leakcap.leakage.measures import thresholds
from leakcap.leakage.membership import evidence, observe_units
from leakcap.leakage.moments import moments_of
from leakcap.leakage.posterior import Sampled
from leakcap.worlds import draw_worlds
from leakcap.worlds.keyed import keyed_bits, keyed_words

__all__ = ["Constants", "Question", "modelled"]

HERE = Path(__file__).parent
TEXT = HERE / "scaling_page.txt"
STORED, PAGE = HERE / "curves" / "scaling.json", HERE.parent / "docs" / "scaling.md"
BASE = {"rows": 5_000, "columns": 8, "worlds": 256}
WAYS = {
    "rows": (5_000, 20_000),
    "columns": (2, 8),
    "worlds": (256, 512),
    "rows of a unit": (1, 4),
}
NS = 1e9
PARTS = ("measure", "sessions", "page", "cost")
CORE_HOUR, GBIT, CORES, RAM = 0.05, 10.0, 16, 64  # price of a core for an hour; a machine's network, cores, GiB


@dataclass(frozen=True)
class Constants:
    """What one core was measured to take, in nanoseconds; a machine's worth of figures has other caches."""

    read: float  # a number of a Parquet file, decoded
    coin: float  # a unit's bit from its id
    masks: float  # a unit's 64 pairs of worlds from its id
    bits: float  # a number of a row under its bit, added up
    worlds: float  # a number of a row in a world, added up
    screen: float  # a unit and a world: its bound from second moments
    draw: float  # a unit, a world and a draw: a unit looked at by drawn releases
    deal: float | None = None  # a row of eight columns: read once and dealt by whose it is
    swept: float | None = None  # a number of a row in a session's means, encrypted rows read included


@dataclass(frozen=True)
class Question:
    """What is asked, of how much."""

    rows: float
    units: float
    columns: float
    worlds: int = 1024

    @property
    def hashed(self) -> float:
        """Ids that are made into bits: of every row, whose unit's other rows may lie elsewhere."""
        return self.rows


def modelled(
    asked: Question, costs: Constants, *, machines: int, core_hour: float = CORE_HOUR
) -> dict[str, dict[str, float]]:
    """Core-hours, money, memory and time of each job on so many machines of 16 cores, by the measured constants."""
    cells = asked.rows * asked.columns
    reading = cells * costs.read + asked.hashed * costs.coin
    words = asked.worlds / 128
    jobs = {
        "sums under bits": (reading + cells * costs.bits, 16 * asked.units, 32 * asked.units),
        "means in all worlds": (
            reading + asked.hashed * words * costs.masks + cells * asked.worlds * costs.worlds,
            8 * asked.worlds * asked.columns * machines * CORES,
            8 * asked.worlds * asked.columns * machines * CORES,
        ),
        "membership of everybody, by second moments": (
            asked.units * (words * costs.masks + asked.worlds * costs.screen),
            8 * asked.units,
            8.0 * asked.worlds**2 / 4 * machines,
        ),
        "one shuffle by unit, where contributions are bounded": (
            2 * cells * costs.read,
            8 * cells / 50,  # spilled in parts of a fiftieth
            8 * cells + 8 * asked.rows,
        ),
    }
    if costs.deal is not None and costs.swept is not None:  # files were streamed
        dealt = asked.rows * costs.deal * asked.columns / 8
        jobs["a session is opened: rows are dealt by unit"] = dealt, 50 * asked.units, 8 * cells + 8 * asked.rows
        jobs["an answer of a session: means within bounds"] = cells * costs.swept, 50 * asked.units, 32 * asked.units
    found = {}
    for name, (nanoseconds, memory, moved) in jobs.items():
        hours = nanoseconds / NS / 3600
        network = moved / (machines * GBIT / 8 * 1e9) / 3600
        found[name] = {
            "core-hours": hours,
            "money": hours * core_hour,
            "hours": max(hours / (machines * CORES), network),
            "GiB of a machine": memory / machines / 2**30,
            "GB moved": moved / 1e9,
        }
    return found


def seconds(work: Callable[[], object]) -> float:
    """Of this process's own time, the second time it is done: the first one compiles."""
    work()
    began = time.process_time()
    work()
    return time.process_time() - began


def constants() -> Constants:
    rng, n, d = np.random.default_rng(0), 200_000, 8
    table, ids, key = rng.normal(size=(n, d)), np.arange(n, dtype=np.int64) + 10**9, bytes(range(16))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.parquet"
        pq.write_table(pa.table({f"c{i}": table[:, i] for i in range(d)}), file)
        read = seconds(lambda: [np.asarray(c) for c in pq.read_table(file, use_threads=False).columns]) / (n * d)
    bits = keyed_bits(ids, key)
    some, m = 4_096, 1024
    worlds = draw_worlds(some, m, rng)
    source = Sampled(rng.normal(size=(m, 8)), 2048, np.random.SeedSequence(1))
    seen = moments_of(lambda block: evidence(source.view(block), True, False), source.blocks, source.draws, 0.0)
    return Constants(
        read=read * NS,
        coin=seconds(lambda: keyed_bits(ids, key)) / n * NS,
        masks=seconds(lambda: keyed_words(ids, key, 128)) / n * NS,
        bits=seconds(lambda: bits.astype(np.float64) @ table) / (n * d) * NS,
        worlds=seconds(lambda: means(table[:some], worlds)) / (some * d * m) * NS,
        screen=(seconds(lambda: seen.roots(worlds)) / (some * m)) * NS,
        **streamed_constants(),
        draw=seconds(lambda: observe_units(source, worlds, thresholds(0.5))) / (some * m * source.draws) * NS,
    )


def streamed_constants() -> dict[str, float]:
    """Of the largest files that were streamed (benchmarks/parted.py)."""
    known = json.loads(STREAMED.read_text()) if STREAMED.exists() else {}
    if not known:
        return {}
    largest = known[max(known, key=int)]
    return {"deal": largest["dealt"], "swept": largest["questions"]["means"] / 8}


def planned(rows: int, columns: int, worlds: int, of_a_unit: int = 1) -> dict[str, float]:
    """A plan of means, timed: its simulation and certificate, everything included."""
    table = np.random.default_rng(1).normal(size=(rows, columns))
    unit = None if of_a_unit == 1 else np.arange(rows) // of_a_unit
    began = time.process_time()
    lc.plan(lc.stats.mean, table, cap=0.6, worlds=worlds, design="worlds", unit=unit, seed=1)
    whole = time.process_time() - began
    return {"rows": rows, "columns": columns, "worlds": worlds, "rows of a unit": of_a_unit, "seconds": whole}


def measure() -> None:
    warnings.simplefilter("ignore")
    found = constants()
    print(found, flush=True)
    planned(1000, 2, 64)
    runs = {}
    for name, sizes in WAYS.items():
        place = {"rows of a unit": "of_a_unit"}.get(name, name)
        runs[name] = [planned(**{**BASE, place: size}) for size in sizes]  # type: ignore[arg-type]
        print(name, [round(one["seconds"], 2) for one in runs[name]], flush=True)
    stored = json.loads(STORED.read_text()) if STORED.exists() else {}
    STORED.write_text(json.dumps({**stored, "constants": asdict(found), "runs": runs}, indent=1) + "\n")
    told = modelled(Question(1e11, 1e9, 8), found, machines=100)["sums under bits"]
    record(
        "scaling-model",
        f"{told['core-hours']:,.0f} core-hours for sums under bits of 10^11 rows x 8 columns of 10^9 units, by "
        f"{found.read:.1f} ns to read a number, {found.coin:.0f} ns for a coin, {found.bits:.1f} ns to add a number up",
        topic="Beyond one machine",
        claim="What 10^11 rows would cost, modelled with constants that were measured on one core",
        command="python -m benchmarks.scaling measure",
        asked="-",
    )


def sessions() -> None:
    stored = json.loads(STORED.read_text())
    stored["constants"] |= streamed_constants()
    STORED.write_text(json.dumps({**stored, "sessions": measured()}, indent=1) + "\n")


def shown(figure: float) -> str:
    return f"{figure:,.0f}" if figure >= 100 else f"{figure:.3g}"


def page() -> None:
    """docs/scaling.md."""
    stored = json.loads(STORED.read_text())
    costs, asked = Constants(**stored["constants"]), Question(1e11, 1e9, 8)
    measured = "\n\n".join(
        f"| {name} | seconds of one core |\n|---|---|\n"
        + "\n".join(f"| {one[name]:,.0f} | {one['seconds']:.2f} |" for one in runs)
        for name, runs in stored["runs"].items()
    )
    outputs = "Outputs of a mean are its columns. "
    names = {
        "read": "a number of a Parquet file, read",
        "coin": "a unit's coin from its id",
        "masks": "a unit's 64 pairs of worlds from its id",
        "bits": "a number added up under a coin",
        "worlds": "a number added up in one world",
        "screen": "a unit's bound from second moments, for one world",
        "draw": "a unit looked at in one drawn release, for one world",
        "deal": "a row of eight columns, read once and dealt by whose it is",
        "swept": "a number of a row in a session's answer, decrypted, checked, added up and charged",
    }
    unit_costs = "\n".join(
        f"| {words} | {shown(getattr(costs, name))} |" for name, words in names.items() if getattr(costs, name)
    )
    PAGE.write_text(
        TEXT.read_text(encoding="utf-8").format(
            base=f"{BASE['rows']:,} rows, {BASE['columns']} columns, {BASE['worlds']:,} worlds, every row a unit",
            measured=measured,
            outputs=outputs,
            sessions=shown_sessions(stored.get("sessions", [])),
            of_shards=1e3 * seconds_without_rows(stored["sessions"]),
            streamed=f"{STREAMED_BASE['rows']:,} rows, {STREAMED_BASE['columns']} columns, "
            f"{STREAMED_BASE['of_one']} rows of a person, {STREAMED_BASE['worlds']} worlds",
            constants=unit_costs,
            model=table_of(modelled(asked, costs, machines=100)),
            by_draws=f"{asked.units * asked.worlds * 2**14 * costs.draw / NS / 3600:,.0f}",
            ratio=f"{asked.worlds * costs.worlds / costs.bits:,.0f}",
            price=CORE_HOUR,
            network=GBIT,
            cores=CORES,
            ram=RAM,
        ),
        encoding="utf-8",
    )


def table_of(jobs: dict[str, dict[str, float]]) -> str:
    heads = list(next(iter(jobs.values())))
    lines = [f"| {name} | " + " | ".join(shown(job[head]) for head in heads) + " |" for name, job in jobs.items()]
    return "\n".join([f"| job | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|", *lines])


def cost(arguments: argparse.Namespace) -> None:
    costs = Constants(**json.loads(STORED.read_text())["constants"])
    asked = Question(arguments.rows, arguments.units, arguments.columns, arguments.worlds)
    print(table_of(modelled(asked, costs, machines=arguments.machines, core_hour=arguments.core_hour)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=PARTS)
    for name, usual in (("rows", 1e11), ("units", 1e9), ("columns", 8.0), ("core-hour", CORE_HOUR)):
        parser.add_argument(f"--{name}", type=float, default=usual)
    parser.add_argument("--worlds", type=int, default=1024)
    parser.add_argument("--machines", type=int, default=100)
    arguments = parser.parse_args()
    {"measure": measure, "sessions": sessions, "page": page, "cost": lambda: cost(arguments)}[arguments.what]()


if __name__ == "__main__":
    main()
