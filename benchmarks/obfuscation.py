"""Leakage of learnable obfuscation: speed of all targets of a draw, and how far each bound is from the truth.

`python -m benchmarks.obfuscation [speed] [ratios] [all-targets [torch:cuda]]`
"""

from __future__ import annotations

import sys
import time

import numpy as np
from tests.claims.obfuscation.brute_force import every_swap, nats_of, truth, whole_bounds
from tests.claims.obfuscation.cases import CASES, NOISES, SMALL

from benchmarks.records import record, slug
from leakcap.obfuscation.chi_squares import told_apart
from leakcap.obfuscation.obfuscated import Obfuscated
from leakcap.obfuscation.one_unit import Statements, UnitEffort, certify_units
from leakcap.obfuscation.pairs import AddedNoise, products, swap_factors
from leakcap.obfuscation.sampled import MixingLaw, all_class_pairs, draw_mixed, draw_swaps

TOPIC = "Learnable obfuscation"
COMMAND = "python -m benchmarks.obfuscation"
RATIOS = ("total variation", "log-determinants", "traces", "whole sample, traces", "whole sample, log-determinants")


def some_rows(units: int, width: int) -> np.ndarray:
    table = np.random.default_rng(0).normal(size=(units, width))
    return table / np.linalg.norm(table, axis=1)[:, None] * (1 - 1e-12)


def speed(targets: int = 100, sample: int = 3) -> None:
    """100 targets at 2,000 released rows: one factorisation beside a determinant and an inverse for each."""
    pool, columns, noise = some_rows(6000, 1280), 500, 0.0159**2
    law = MixingLaw(np.repeat(np.arange(10), 600), 400, 20, all_class_pairs(10, 20), columns)
    rng = np.random.default_rng(1)
    mixed = draw_mixed(law, rng)
    swaps = draw_swaps(law, mixed.rows, 1, rng)
    places, joins = swaps.places[0, :targets], swaps.joins[0, :targets]
    began = time.perf_counter()
    found = products(pool, mixed, AddedNoise(noise, columns), places=places)
    swap_factors(pool, mixed, found, places=places, joins=joins, columns=columns)
    ours = time.perf_counter() - began
    mixture = mixed.weights @ pool[mixed.rows]
    before = mixture @ mixture.T / columns + noise * np.eye(len(mixture))
    began = time.perf_counter()
    for place, join in zip(places[:sample], joins[:sample], strict=True):
        rows = pool[mixed.rows]
        rows[place] = pool[join]
        mixture = mixed.weights @ rows
        after = mixture @ mixture.T / columns + noise * np.eye(len(mixture))
        np.linalg.slogdet(after)
        (np.linalg.inv(after) * before).sum()
    plain = (time.perf_counter() - began) / sample * targets
    print(f"{targets} targets, {len(law.pairs):,} rows: {ours:.2f} s; one by one {plain:.0f} s: {plain / ours:.0f} x")
    record(
        "obfuscation-targets",
        f"{ours:.1f} s, {plain / ours:.0f} times faster (one by one: {sample} of them, scaled)",
        topic=TOPIC,
        claim="100 targets at 2,000 released rows, from one factorisation, beside a determinant and an inverse each",
        command=f"{COMMAND} speed",
        asked="30 times",
    )


def ratios() -> None:
    """Every bound beside the truth, on pools that can be listed: about one unit, and about the whole sample."""
    found = []
    for case, (pool, law) in CASES.items():
        here = []
        for noise in NOISES:
            exact, swaps = truth(pool, law, noise), every_swap(pool, law, noise, 0)
            log_det, trace = nats_of(swaps, law.rates[0])
            tv = told_apart(swaps.wider, swaps.narrower, 1).mean()
            row = [tv / exact.tv[0], log_det / exact.nats[0], trace / exact.nats[0]]
            if case in SMALL:
                row += [bound / exact.whole for bound in whole_bounds(Obfuscated(pool, law, noise))]
            here.append(row)
        found += [row[:3] for row in here]
        _case_ratios(case, here)
    low, middle, high = (np.quantile(found, level, axis=0) for level in (0, 0.5, 1))
    seen = "; ".join(
        f"{n} {a:.2f} to {c:.3g}, half below {b:.3g}" for n, a, b, c in zip(RATIOS, low, middle, high, strict=False)
    )
    print(seen)
    record(
        "obfuscation-ratios",
        seen,
        topic=TOPIC,
        claim="Bounds about one unit beside the truth, as ratios, on pools of two to eight rows that can be listed",
        command=f"{COMMAND} ratios",
        asked="never below 1",
    )


def _case_ratios(case: str, rows: list[list[float]]) -> None:
    """One pool: a ratio for each bound and noise."""
    each = zip(RATIOS, zip(*rows, strict=True), strict=False)
    seen = "; ".join(f"{name} {', '.join(f'{one:.3g}' for one in some)}" for name, some in each)
    print(f"{case}: {seen}")
    record(
        f"obfuscation-ratios-{slug(case)}",
        seen,
        topic=TOPIC,
        claim=f"Bounds beside the truth, as ratios: {case}, noise {', '.join(f'{noise:g}' for noise in NOISES)}",
        command=f"{COMMAND} ratios",
        asked="never below 1",
    )


def all_targets(backend: str | None = None, draws: int = 5) -> None:
    """6,000 released rows, every unit of a pool of 50,000: some draws, scaled; on a GPU all 2,000, certified."""
    pool = some_rows(50_000, 1280)
    law = MixingLaw(np.repeat(np.arange(10), 5000), 4000, 200, all_class_pairs(10, 60), 500)
    statements = Statements(Obfuscated(pool, law, 0.0159, backend=backend), (1.0,))
    rng = np.random.default_rng(1)
    statements.of_draw(rng, swaps=1)
    began = time.perf_counter()
    for _ in range(draws):
        statements.of_draw(rng, swaps=1)
    each = (time.perf_counter() - began) / draws
    seen = f"{each:.2f} s a draw ({draws} draws timed), {2000 * each / 60:.1f} minutes for 2,000, scaled"
    if backend == "torch:cuda":
        began = time.perf_counter()
        effort = UnitEffort(draws=2000)
        bounds = certify_units(statements.obfuscated, effort=effort, gamma=1e-6, rng=rng, tick=_Clock())
        seen = (
            f"{bounds.draws:,} draws certified in {(time.perf_counter() - began) / 60:.1f} minutes, everybody at most "
            f"{bounds.worst:.4f}; {seen}"
        )
    print(f"6,000 rows, 50,000 units: {seen}")
    record(
        "obfuscation-all-targets" + ("" if backend is None else "-gpu"),
        seen,
        machine=None if backend is None else "one H200",
        topic=TOPIC,
        claim="6,000 released rows, all 50,000 units of the pool in every draw",
        command=f"{COMMAND} all-targets {backend or ''}".strip(),
        asked="2,000 draws in ten minutes on one H200",
    )


class _Clock:
    """Says how far a long run is, so that one that is cut off leaves its rate behind."""

    def __init__(self) -> None:
        self.began = time.perf_counter()

    def __call__(self, made: int, draws: int) -> None:
        if made % 100 == 0:
            print(f"{made:,} of {draws:,} draws, {time.perf_counter() - self.began:.0f} s", flush=True)


FLAGS = ("torch:cuda",)
PARTS = {"speed": speed, "ratios": ratios, "all-targets": all_targets}


def main() -> None:
    words = sys.argv[1:] or ["speed", "ratios"]
    backend = next((word for word in words if word.startswith("torch:")), None)
    for name in words:
        if name == "all-targets":
            all_targets(backend)
        elif name != backend:
            PARTS[name]()


if __name__ == "__main__":
    main()
