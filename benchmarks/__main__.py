"""`python -m benchmarks [name ...]`: run all benchmarks, or the named ones."""

from __future__ import annotations

import sys

from benchmarks import audit, fits, kernels, labels, loop, masks, noise, rate, scale, start, utility

ALL = {
    "audit": audit.main,
    "fits": fits.main,
    "kernels": kernels.main,
    "labels": labels.main,
    "loop": loop.main,
    "masks": masks.main,
    "noise": noise.main,
    "rate": rate.main,
    "million": kernels.million,
    "scale": scale.main,
    "start": start.main,
    "utility": utility.main,
}

named = [one for one in sys.argv[1:] if not one.startswith("--")]  # `labels` knows --quick
for name in named or [one for one in ALL if one not in ("labels", "million", "scale", "utility")]:
    if name not in ALL:
        sys.exit(f"no benchmark {name!r}: choose from {', '.join(ALL)}")
    print(f"\n== {name}: {sys.modules[ALL[name].__module__].__doc__}")
    ALL[name]()
