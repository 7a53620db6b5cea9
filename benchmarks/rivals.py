"""Means, histogram and covariance by other libraries, at the same statement. Runs in an environment of its own:

    python -m venv rivals && rivals/bin/pip install diffprivlib opendp pandas
    rivals/bin/python benchmarks/rivals.py adult.csv.gz '{"success": 0.55, "bounds": {"age": [0, 120]}, ...}'

Prints JSON: for each library, the answers of many releases. Nothing of leakcap is imported.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
import warnings

import numpy as np
import pandas


def diffprivlib_means(rows: np.ndarray, bounds: tuple[list[float], list[float]], success: float, repeats: int) -> list:
    """Laplace noise, its own tool; the number of rows counts as known, epsilon is split over the columns."""
    from diffprivlib import tools

    epsilon = math.log(success / (1 - success))
    return [tools.mean(rows, epsilon=epsilon, bounds=bounds, axis=0).tolist() for _ in range(repeats)]


def diffprivlib_histogram(column: np.ndarray, edges: list[float], success: float, repeats: int) -> list:
    from diffprivlib import tools

    epsilon = math.log(success / (1 - success))
    span = (edges[0], edges[-1])
    return [
        (counts / len(column)).tolist()
        for counts, _ in (
            tools.histogram(column, epsilon=epsilon, bins=edges, range=span, density=False) for _ in range(repeats)
        )
    ]


def opendp_means(rows: np.ndarray, bounds: tuple[list[float], list[float]], success: float, repeats: int) -> list:
    """Clamped sums and a count with Gaussian noise, an equal share of rho for each, for data of unknown size."""
    import opendp.prelude as dp

    dp.enable_features("contrib", "floating-point")
    rho = (2 * statistics.NormalDist().inv_cdf(success)) ** 2 / 2 / (rows.shape[1] + 1)
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    sums = [
        dp.binary_search_chain(
            lambda scale, ends=ends: space >> dp.t.then_clamp(ends) >> dp.t.then_sum() >> dp.m.then_gaussian(scale),
            d_in=1,
            d_out=rho,
            T=float,
        )
        for ends in zip(*bounds, strict=True)
    ]
    count = dp.binary_search_chain(
        lambda scale: space >> dp.t.then_count() >> dp.m.then_gaussian(scale), d_in=1, d_out=rho, T=float
    )
    columns = [column.tolist() for column in rows.T]
    found = []
    for _ in range(repeats):
        people = max(count(columns[0]), 1)
        found.append([one(column) / people for one, column in zip(sums, columns, strict=True)])
    return found


def main(path: str, asked: dict) -> None:
    warnings.simplefilter("ignore")
    table = pandas.read_csv(path)
    bounds = {name: tuple(map(float, ends)) for name, ends in asked["bounds"].items()}
    rows = table[list(bounds)].to_numpy(dtype=float)
    ends = [low for low, _ in bounds.values()], [high for _, high in bounds.values()]
    found = {}
    for name, answers in {
        "diffprivlib means": lambda: diffprivlib_means(rows, ends, asked["success"], asked["repeats"]),
        "OpenDP means": lambda: opendp_means(rows, ends, asked["success"], asked["repeats"]),
        "diffprivlib histogram": lambda: diffprivlib_histogram(
            table[asked["histogram"]["column"]].to_numpy(dtype=float),
            asked["histogram"]["edges"],
            asked["success"],
            asked["repeats"],
        ),
    }.items():
        try:
            found[name] = answers()
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
