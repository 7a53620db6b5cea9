"""`python -m reproductions.pac_privacy example1|example4`, or without a name all that need no GPU.

`--out` names a folder.
"""

from __future__ import annotations

import sys

from reproductions.pac_privacy import example_1, example_4

PARTS = {"example1": example_1.main, "example4": example_4.main}
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
