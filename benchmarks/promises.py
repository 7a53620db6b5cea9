"""Means of 20 wards under every promise, at the same success: `python -m benchmarks.promises`.

2,000 people, costs of mean 664 and deviation 400, a ward each at random; cap 0.55, bounds 0 to 2,000.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

import leakcap as lc
from benchmarks.records import record

CAP, BOUNDS, WARDS, PEOPLE = 0.55, (0, 2000), 20, 2000


def visits() -> pd.DataFrame:
    rng = np.random.default_rng(7)
    cost = np.maximum(rng.normal(664, 400, PEOPLE), 0)
    return pd.DataFrame({"cost": cost, "ward": rng.integers(WARDS, size=PEOPLE)})


def main() -> None:
    means = lc.stats.group_by({"ward": list(range(WARDS))}, "mean", of="cost")
    plan = lc.plan(means, visits(), cap=CAP, seed=0)
    found = plan.compare(BOUNDS)
    print(found)
    figures = ", ".join(f"{one.name} {100 * one.total:.1f} %" for one in found)
    noise = ", ".join(f"{one.name} {np.sqrt((one.noise**2).mean()):.0f}" for one in found)
    record(
        "promises-wards",
        f"total error {figures}; noise of a ward's mean: {noise}",
        topic="Caps and noise",
        claim=(
            f"means of {WARDS} wards, {PEOPLE:,} people, cap {CAP}, bounds {BOUNDS[0]} to {BOUNDS[1]:,}: every promise "
            "and plain differential privacy at the same success, relative to the answer"
        ),
        command="python -m benchmarks.promises",
        asked="-",
    )


PARTS = {"wards": main}

if __name__ == "__main__":
    main()
