"""Does a kernel give in all worlds at once what a plain function gives in each?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError, OutputError
from leakcap.kernels import deviation_of, kernel_of
from leakcap.simulate.describe import describe
from leakcap.simulate.pool import Pool
from leakcap.worlds import Units, draw_worlds

__all__ = ["check_kernel"]

TRIALS: tuple[dict[str, Any], ...] = ({}, {"rate": 1 / 3}, {"rate": 3 / 4}, {"strata": 2}, {"people": 3})


def check_kernel(
    kernel: Callable[..., Any],
    plain: Callable[..., Any] | None = None,
    *data: Any,
    worlds: int = 24,
    tolerance: float = 1e-9,
    seed: int = 0,
) -> float:
    """Compare a function's kernel with a loop over worlds.

    Halves, thirds, three quarters, strata, and people with several rows are tried.

    Args:
        kernel: the function that offers a kernel, for instance marked with `leakcap.kernel`.
        plain: what the kernel should compute in each world, a function of its rows; None takes `kernel` itself.
        *data: the rows, an array or several that are sliced alike.
        worlds: number of worlds in each trial.
        tolerance: largest difference allowed, relative to the answers' size.
        seed: seed of the worlds.

    Returns:
        The largest difference found, relative to the answers' size.

    Raises:
        InputError: the function offers no kernel.
        OutputError: kernel and loop differ, or the kernel does not serve these data.

    Examples:
        >>> import leakcap as lc
        >>> rows = np.random.default_rng(0).normal(size=(60, 2))
        >>> check_kernel(lc.stats.mean, None, rows) < 1e-9
        True
    """
    serves = kernel_of(kernel)
    if serves is None:
        raise InputError("this function offers no kernel: mark it with leakcap.kernel")
    pool, worst = Pool(data), 0.0
    rng = np.random.default_rng(seed)
    for trial in TRIALS:
        people = rng.integers(0, max(pool.rows // trial["people"], 1), pool.rows) if "people" in trial else None
        units = Units.of(pool.rows, people)
        strata = rng.integers(0, trial["strata"], units.count) if "strata" in trial else None
        drawn = draw_worlds(units.count, worlds, rng=rng, rate=trial.get("rate", 0.5), strata=strata)
        found = serves(pool.data, units, drawn)
        if found is None:
            raise OutputError("the kernel does not serve these data")
        rows = (units.rows_in(drawn.mask(w)) for w in range(worlds))
        taken = [pool.take(some) for some in rows]
        expected = np.stack([describe((plain or kernel)(*some), len(some[0]))[1] for some in taken])
        numbers = np.asarray(found)
        measure = deviation_of(kernel) if plain is None else None
        if measure is None:
            worst = max(worst, _apart(numbers, expected, tolerance, trial))
            continue
        worst = max(worst, _told(measure, numbers, expected, taken))
        if not worst <= tolerance:
            raise OutputError(f"kernel and loop differ by {worst:.3g} ({_words(trial)})")
    return worst


def _told(
    measure: Callable[..., float],
    found: npt.NDArray[np.float64],
    expected: npt.NDArray[np.float64],
    taken: list[tuple[Any, ...]],
) -> float:
    """The largest deviation in what a world determines, where the function says what that is."""
    return max(measure(*one) for one in zip(found, expected, taken, strict=True))


def _words(trial: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value:.3g}" for name, value in trial.items()) or "halves"


def _apart(
    found: npt.NDArray[np.float64], expected: npt.NDArray[np.float64], tolerance: float, trial: dict[str, Any]
) -> float:
    how = _words(trial)
    if found.shape != expected.shape:
        raise OutputError(f"the kernel returns shape {found.shape}, the loop {expected.shape} ({how})")
    apart = np.abs(found - expected) / np.maximum(np.abs(expected).max(axis=0), 1e-300)
    if not (apart <= tolerance).all():
        world, output = np.unravel_index(int(np.nanargmax(np.where(np.isnan(apart), np.inf, apart))), apart.shape)
        raise OutputError(f"kernel and loop differ by {apart.max():.3g} in world {world}, output {output} ({how})")
    return float(apart.max())
