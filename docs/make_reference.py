"""Give every public name a place in the reference: `python docs/make_reference.py`.

A name that no page shows yet is added at the end of its namespace's page. Order and headings are written by hand.
"""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import leakcap

PAGES = Path(__file__).parent / "reference"
NAMESPACES = ("audit", "caps", "convert", "datasets", "errors", "estimators", "labels", "stats", "synthetic", "testing")


def missing() -> dict[str, list[str]]:
    """By page, the entries of names that are on none."""
    pages = {space: (PAGES / f"{space}.md").read_text(encoding="utf-8") for space in ("leakcap", *NAMESPACES)}
    shown = {space: set(re.findall(r"^::: (\S+)$", text, re.MULTILINE)) for space, text in pages.items()}
    lacking = {space: [f"leakcap.{space}.{name}" for name in getattr(leakcap, space).__all__] for space in NAMESPACES}
    lacking = {space: [name for name in names if name not in shown[space]] for space, names in lacking.items()}
    listed = {name.rpartition(".")[2] for names in (*shown.values(), *lacking.values()) for name in names}
    own = [name for name in leakcap.__all__ if not isinstance(getattr(leakcap, name), ModuleType)]
    lacking["leakcap"] = [f"leakcap.{name}" for name in own if name not in {*listed, "__version__"}]
    return {space: names for space, names in lacking.items() if names}


if __name__ == "__main__":
    for space, names in missing().items():
        with (PAGES / f"{space}.md").open("a", encoding="utf-8") as page:
            page.writelines(f"\n::: {name}\n" for name in names)
