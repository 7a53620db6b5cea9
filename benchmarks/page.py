"""docs/benchmarks.md, made from the stored records: `python -m benchmarks page`."""

from __future__ import annotations

from pathlib import Path

from benchmarks.records import TOPICS, Record, stored

__all__ = ["PAGE", "main", "page"]

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
HEAD = """---
hide:
  - toc
---

<!-- Made by `python -m benchmarks page` from benchmarks/records. Do not edit by hand. -->

# Benchmarks

Every figure was seen in a run of the command beside it, on the machine and the day that are named. Ratios were measured
side by side in one process; times depend on the machine and its load. A run stores its own figures in
`benchmarks/records/`, and this page is made from them.
"""
COLUMNS = ("| what | asked | seen | how |", "| --- | --- | --- | --- |")


def page(records: list[Record]) -> str:
    """The whole page."""
    parts = [HEAD]
    for topic in TOPICS:
        rows = [_row(one) for one in records if one.topic == topic]
        if rows:
            parts.append("\n".join([f"## {topic}\n", *COLUMNS, *rows]))
    return "\n".join(f"{part}\n" for part in parts)


def _row(one: Record) -> str:
    cells = (one.claim, one.asked, one.seen, f"`{one.command}`<br>{one.machine}, {one.date}")
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def main() -> None:
    """Write it."""
    PAGE.write_text(page(stored()), encoding="utf-8")
    print(f"{PAGE.name}: {len(stored())} records")
