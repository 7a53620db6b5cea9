"""`python -m reproductions.learnable_obfuscation figure1|figure2|table1|...|table5|page`, several names at once.

Tables are measured on a device (`--backend torch:cuda`); records are kept in `measured/`, and what has one is not
measured again. `--smoke` is a toy size. `page` makes the page from the records.
"""

from __future__ import annotations

import importlib
import sys

PARTS = ("figure1", "figure2", "page")
TABLES = {f"table{number}": number for number in range(1, 6)}


def main(words: list[str]) -> None:
    """Every part that is named; what begins with a dash, and what follows it, goes to each of them."""
    first = next((i for i, word in enumerate(words) if word.startswith("-")), len(words))
    named, options = words[:first], words[first:]
    unknown = [name for name in named if name not in PARTS and name not in TABLES]
    if unknown or not named:
        sys.exit(f"name some of {', '.join([*PARTS, *TABLES])}")
    for name in (one for one in named if one in PARTS):
        module = name.replace("figure", "figure_")
        importlib.import_module(f"reproductions.learnable_obfuscation.{module}").main(options)
    tables = [TABLES[name] for name in named if name in TABLES]
    if tables:
        importlib.import_module("reproductions.learnable_obfuscation.measure").main(tables, options)


if __name__ == "__main__":
    main(sys.argv[1:])
