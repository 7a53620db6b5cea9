"""`python -m reproductions.pac_privacy example1|...|example6|composition|page`; without a name all that need no GPU.

`--out` names a folder, `--quick` is a toy size, `--keep` stores the CSV files from which `page` makes the page.
"""

from __future__ import annotations

import sys

from reproductions.pac_privacy import (
    adaptive_stream,
    example_1,
    example_2,
    example_3,
    example_4,
    example_5,
    example_6,
    page,
)

PARTS = {
    "example1": example_1.main,
    "example2": example_2.main,
    "example3": example_3.main,
    "example4": example_4.main,
    "example5": example_5.main,
    "example6": example_6.main,
    "composition": adaptive_stream.main,
    "page": page.main,
}
ON_A_GPU = {"example4"}


def main(words: list[str]) -> None:
    """Every part that is named; what begins with a dash, and what follows it, goes to each of them."""
    first = next((i for i, word in enumerate(words) if word.startswith("-")), len(words))
    named, options = words[:first], words[first:]
    for name in named or [name for name in PARTS if name not in ON_A_GPU]:
        if name not in PARTS:
            sys.exit(f"no part {name!r}: choose from {', '.join(PARTS)}")
        PARTS[name](options)


if __name__ == "__main__":
    main(sys.argv[1:])
