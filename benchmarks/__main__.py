"""`python -m benchmarks [name ...]`: run all benchmarks, or the named ones; `page` makes docs/benchmarks.md."""

from __future__ import annotations

import sys

from benchmarks import (
    audit,
    everyday,
    fits,
    kernels,
    keyed,
    labels,
    loop,
    masks,
    noise,
    page,
    pages,
    parted,
    rate,
    scale,
    sizes,
    start,
    tables,
    utility,
)

PARTS = {
    "audit": audit.main,
    "crowd": scale.crowd,
    "everyday": everyday.main,
    "fits": fits.main,
    "kernels": kernels.main,
    "keyed": keyed.main,
    "labels": labels.main,
    "loop": loop.main,
    "masks": masks.main,
    "noise": noise.main,
    "parted": parted.main,
    "rate": rate.main,
    "million": kernels.million,
    "scale": scale.main,
    "sizes": sizes.main,
    "start": start.main,
    "tables": tables.main,
    "utility": utility.main,
    "page": page.main,
    "pages": pages.main,
}
FLAGS = ("--quick", "--rows", "--worlds")  # of labels, and of parted
BY_NAME_ONLY = ("crowd", "everyday", "labels", "million", "parted", "scale", "sizes", "utility", "page", "pages")


def main(arguments: list[str]) -> None:
    """Run what is named, then make the page with the figures of this run."""
    named = [one for one in arguments if not one.startswith("--")]
    for name in named or [one for one in PARTS if one not in BY_NAME_ONLY]:
        if name not in PARTS:
            sys.exit(f"no benchmark {name!r}: choose from {', '.join(PARTS)}")
        print(f"\n== {name}: {sys.modules[PARTS[name].__module__].__doc__}")
        PARTS[name]()
    if "page" not in named:
        page.main()


if __name__ == "__main__":
    main(sys.argv[1:])
