"""`python -m reproductions.membership_inference_privacy figure1|figure2|attacks|theorems|page`, one or several.

All of them without a name, in ten to twenty minutes of one core. `--quick` takes seconds, `--out` names a folder.
"""

from __future__ import annotations

import sys

from reproductions.membership_inference_privacy import attacks, figure_1, figure_2, page, theorems

PARTS = {
    "figure1": figure_1.main,
    "attacks": attacks.main,
    "theorems": theorems.main,
    "figure2": figure_2.main,
    "page": page.main,
}


def main(words: list[str]) -> None:
    """Every part that is named; what begins with a dash, and what follows `--out`, goes to each of them."""
    first = next((i for i, word in enumerate(words) if word.startswith("-")), len(words))
    named, options = words[:first], words[first:]
    for name in named or PARTS:
        if name not in PARTS:
            sys.exit(f"no part {name!r}: choose from {', '.join(PARTS)}")
        PARTS[name](options)


if __name__ == "__main__":
    main(sys.argv[1:])
