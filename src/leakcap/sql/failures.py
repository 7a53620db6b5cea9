"""What DuckDB says when tables cannot be read or written, in one sentence of ours: its own may quote a cell."""

from __future__ import annotations

__all__ = ["in_words"]

# What its text holds, and what to do. The first that fits counts.
CAUSES = {
    "file too large|no space left|could not write|quota exceeded": (
        "the file of the tables could not be written: make room on the disk, or give another path="
    ),
    "set lock|conflicting lock|already attached|different configuration": (
        "{name} is open elsewhere: close it there, or read a copy of it"
    ),
    "version number|newer version|older version|storage version": (
        "{name} was written by another version of DuckDB: update DuckDB, or export the tables as Parquet"
    ),
    "permission denied": "{name} may not be read by you: ask its owner",
    "utf-8|unicode": "{name} is not in UTF-8: save it so, or read it with pandas and give the table",
    "out of memory|failed to allocate|could not allocate": (
        "there is not enough memory to read {name}: give fewer columns or rows, or a larger machine"
    ),
    "not a valid duckdb|corrupt database": "{name} is no whole DuckDB file: make or copy it again",
    "sniffing file|parsing dialect": "{name} does not look like CSV: check that it is whole, and its separators",
}
OTHERWISE = "{name} could not be read: check that it is whole, and that each column holds one kind of value"


def in_words(error: Exception, name: str | None = None) -> str:
    """What went wrong, and what to do. `name` is the table or the file that was being read."""
    text = str(error).lower()
    fitting = (words for signs, words in CAUSES.items() if any(one in text for one in signs.split("|")))
    words = next(fitting, OTHERWISE)
    return words.format(name="a table" if name is None else repr(name))
