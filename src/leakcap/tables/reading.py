"""How the cells of a file are written: decimal commas, marks for missing values, dates. Errors never quote a cell.

It is said with `--read decimal=,` and the like, for all columns alike, and never guessed from the cells: `1.234` is a
number either way. A text column becomes numbers only where every cell of it is one in the way that was said.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from leakcap.errors import InputError
from leakcap.tables.arrow_text import as_text

__all__ = ["MARKS", "Reading"]

NAMES = {"space": " ", "comma": ",", "point": ".", "dot": ".", "semicolon": ";", "tab": "\t", "pipe": "|"} | {
    "apostrophe": "'"
}
MARKS = ("?", "-", "--", ".", "*", "x", "na", "n/a", "n.a.", "nan", "none", "null", "missing", "unknown")
ORDERS = {"parts": "ymd", "ymd": "ymd", "dmy": "dmy", "mdy": "mdy"}
SAMPLE_CELLS = 100  # that tell most text from numbers
# Spaces and apostrophes come in several shapes.
SHAPES = {" ": "[ \u00a0\u2009\u202f]", "'": "['\u2019]"}
KEYS = {
    "decimal": "comma or point",
    "thousands": "point, comma, space or apostrophe",
    "encoding": "the name of an encoding, such as cp1252",
    "missing": "marks: all usual ones; or words of your own, as in missing=n/a,none",
    "delimiter": "semicolon, tab, pipe, or any other single character",
    "dates": "parts: year, month, day; dmy or mdy where they are not in this order",
}


@dataclass(frozen=True)
class Reading:
    """What `--read` says about a file.

    `decimal` and `thousands` are the characters themselves; `missing` are words for no value, in lower case; `dates` is
    the order of year, month and day, where dates are to become numbers.
    """

    decimal: str = "."
    thousands: str = ""
    encoding: str = "utf-8-sig"
    missing: tuple[str, ...] = ()
    delimiter: str = ""
    dates: str = ""

    @classmethod
    def of(cls, words: Sequence[str]) -> Reading:
        """From `decimal=,`, `missing=n/a` and so on, each once."""
        given: dict[str, str] = {}
        for word in words:
            key, told, value = word.partition("=")
            if key.strip() not in KEYS or not told or not value or key.strip() in given:
                raise InputError(_usage(key.strip() in given))
            given[key.strip()] = value
        thousands = _character("thousands", given, ".,' ")
        decimal = _character("decimal", given, ".,") or ("," if thousands == "." else ".")
        if decimal == thousands:
            raise InputError("--read decimal= and thousands= must be different: one of them is , and the other .")
        return cls(
            decimal=decimal,
            thousands=thousands,
            encoding=_encoding(given.get("encoding", "utf-8")),
            missing=_words(given["missing"]) if "missing" in given else (),
            delimiter=_delimiter(given),
            dates=_order(given["dates"]) if "dates" in given else "",
        )

    @property
    def of_cells(self) -> bool:
        """Whether it says anything about cells, dates apart."""
        return self.decimal != "." or bool(self.thousands or self.missing)

    def cells(self, column: Any) -> Any:
        """A column as it is to be read: without marks, and as numbers where every cell of a text column is one."""
        if not self.of_cells:
            return column
        if getattr(column.dtype, "kind", "O") in "iuf":
            return self._without_marks(column)
        text = as_text(column)
        if text is None:
            return column
        from pyarrow import compute, float64, int64  # type: ignore[import-untyped]

        told = self._told(text)
        # Every cell: taking separators out of anything else would make numbers of no numbers.
        fit = told.null_count < len(told) and all(
            compute.all(self._fit(some)).as_py()
            for some in (told.slice(0, SAMPLE_CELLS), told)  # most text shows soon
        )
        if not fit:
            gone = compute.and_(compute.is_valid(text), compute.is_null(told)).to_pandas()
            return column.mask(gone.to_numpy(dtype=bool)) if gone.any() else column
        plain = self._plain(told)
        whole = compute.all(compute.match_substring_regex(plain, r"^[-+]?\d{1,18}$")).as_py()
        unsigned = compute.replace_substring_regex(plain, r"^\+", "")  # which a cast does not know
        return unsigned.cast(int64() if whole else float64()).to_pandas()

    def exact(self, column: Any) -> Any:
        """A column of text whose numbers are written as Python writes them, all digits kept, each cell on its own.

        It is for ids: somebody's must not change because another one's is no number.
        """
        text = as_text(column) if self.of_cells else None
        if text is None:
            return column
        from pyarrow import compute

        told = self._told(text)
        return compute.if_else(self._fit(told), self._plain(told), told).to_pandas()

    def _without_marks(self, column: Any) -> Any:
        marks = [number for number in map(self._number, self.missing) if number is not None]
        gone = column.isin(marks)
        return column.mask(gone) if gone.any() else column

    def _number(self, word: str) -> float | None:
        try:
            return float(word.replace(self.decimal, "."))
        except ValueError:
            return None

    def _told(self, text: Any) -> Any:
        """Cells without blanks around them, and null where they are marks."""
        import pyarrow
        from pyarrow import compute

        trimmed = compute.utf8_trim_whitespace(text)
        if not self.missing:
            return trimmed
        marked = compute.is_in(compute.utf8_lower(trimmed), pyarrow.array(self.missing, trimmed.type))
        return compute.if_else(marked, pyarrow.scalar(None, trimmed.type), trimmed)

    def _fit(self, told: Any) -> Any:
        """Which cells are numbers as they were said to be written, from start to end."""
        from pyarrow import compute

        point, between = re.escape(self.decimal), self._between
        digits = rf"(\d+|\d{{1,3}}({between}\d{{3}})+)" if self.thousands else r"\d+"
        number = rf"^[-+]?({digits}({point}\d*)?|{point}\d+)([eE][-+]?\d+)?$"
        return compute.match_substring_regex(told, number)

    def _plain(self, told: Any) -> Any:
        """The cells with a decimal point and no other separator."""
        from pyarrow import compute

        closed = compute.replace_substring_regex(told, self._between, "") if self.thousands else told
        return compute.replace_substring(closed, self.decimal, ".")

    @property
    def _between(self) -> str:
        return SHAPES.get(self.thousands, re.escape(self.thousands))


def _usage(twice: bool) -> str:
    start = "--read says one thing twice: say it once" if twice else "--read does not say that. What it can say"
    return f"{start}: " + "; ".join(f"{key}= ({what})" for key, what in KEYS.items())


def _character(key: str, given: dict[str, str], known: str) -> str:
    if key not in given:
        return ""
    one = NAMES.get(given[key].strip().lower(), given[key])
    if len(one) != 1 or one not in known:
        raise InputError(f"--read {key}= must be {KEYS[key]}")
    return one


def _delimiter(given: dict[str, str]) -> str:
    if "delimiter" not in given:
        return ""
    one = NAMES.get(given["delimiter"].strip().lower(), given["delimiter"]).replace("\\t", "\t")
    if len(one) != 1 or one.isalnum() or one in '"\r\n':
        raise InputError(f"--read delimiter= must be {KEYS['delimiter']}")
    return one


def _encoding(name: str) -> str:
    try:
        "".encode(name)
    except LookupError:
        raise InputError(
            "--read encoding= names no encoding that Python knows: cp1252 is that of Windows in western Europe, "
            "utf-16 that of 'Unicode text'"
        ) from None
    return "utf-8-sig" if name.strip().lower().replace("_", "-") in ("utf-8", "utf8") else name


def _words(text: str) -> tuple[str, ...]:
    words = tuple(word.strip().lower() for word in next(csv.reader([text], skipinitialspace=True), []) if word.strip())
    if not words:
        raise InputError("--read missing= must be marks, or words with commas between, such as missing=n/a,none")
    return tuple(dict.fromkeys(one for word in words for one in (MARKS if word == "marks" else (word,))))


def _order(word: str) -> str:
    if word.strip().lower() not in ORDERS:
        raise InputError("--read dates= must be parts (year, month, day), dmy or mdy")
    return ORDERS[word.strip().lower()]
