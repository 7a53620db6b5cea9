"""Rows for the owner's eyes: some of the pool as they were, and some of the encoded set as the server gets them.

They are chosen by their place alone. Nothing here knows which rows were drawn, nor the key.
"""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from leakcap.ground.arrays import Floats
from leakcap.report.html import Markup, markup
from leakcap.report.numbers import shown

__all__ = ["CELLS", "EncodedRows", "PoolRows", "as_picture", "first_of_each"]

SHOWN = 6  # rows
CELLS = 8  # of a row, in a table
DECIMALS = 4
LONGEST_CELL = 24  # characters
HALVES = {0.5: "½ ", 1.0: ""}
LARGEST = 256  # pixels of a picture, either way
PICTURE_BYTES = 2**18  # of a picture file that is shown as it is
KINDS = ((b"\x89PNG\r\n\x1a\n", "png"), (b"\xff\xd8\xff", "jpeg"), (b"GIF8", "gif"))


@dataclass(frozen=True)
class PoolRows:
    """Some rows of the pool as they were. Custodian side.

    Attributes:
        heads: names of the columns; empty where there is nothing but pictures.
        cells: of every row, what stood in these columns.
        classes: of every row.
        pictures: of every row, where rows are pictures or too long for a table.
    """

    heads: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    classes: tuple[str, ...]
    pictures: tuple[Markup, ...] = ()

    @classmethod
    def of_table(cls, table: Any, label: str, chosen: Sequence[int]) -> PoolRows:
        """Of a table, cells as they stood in it."""
        names = [name for name in table.columns if name != label]
        rows = table.iloc[list(chosen)]
        cells = tuple(tuple(_short(str(one)) for one in row) for row in zip(*(rows[n] for n in names), strict=True))
        return cls(tuple(map(str, names)), cells, tuple(map(str, rows[label])))

    @classmethod
    def of_pictures(cls, files: Sequence[Path], rows: Floats, labels: Any, chosen: Sequence[int]) -> PoolRows:
        """Of picture files as they are; of files that browsers do not show, the rows that were made of them."""
        classes = tuple(str(labels[place]) for place in chosen)
        return cls((), ((),) * len(chosen), classes, tuple(_picture(files[place], rows[place]) for place in chosen))


@dataclass(frozen=True)
class EncodedRows:
    """Some rows of the encoded set. Public side: the server has them all."""

    cells: tuple[tuple[str, ...], ...]
    shares: tuple[str, ...]
    pictures: tuple[Markup, ...]

    @classmethod
    def of(cls, encoded: Floats, shares: Floats, grid: tuple[int, int]) -> EncodedRows:
        """The first ones: they lie in a random order already. `grid` is how many blocks lie down and across."""
        some = range(min(SHOWN, len(encoded)))
        return cls(
            tuple(tuple(shown(float(one), DECIMALS) for one in encoded[i, :CELLS]) for i in some),
            tuple(_shares(shares[i]) for i in some),
            tuple(as_picture(_patched(encoded[i], grid), "An encoded row: grey noise.") for i in some),
        )


def first_of_each(labels: Any) -> list[int]:
    """Places of the first rows of every class, as many of each: a choice that does not know what was drawn."""
    given = np.asarray(labels)
    names, codes = np.unique(given, return_inverse=True)
    each = max(1, SHOWN // len(names))
    found = [place for code in range(min(SHOWN, len(names))) for place in np.flatnonzero(codes == code)[:each]]
    return [int(place) for place in found]


def as_picture(values: Floats, words: str) -> Markup:
    """Numbers as a picture in shades of grey, from the smallest to the largest; or in colours, `(h, w, 3)`."""
    step = tuple(slice(None, None, math.ceil(size / LARGEST)) for size in values.shape[:2])
    some = values[step]
    low, high = float(some.min()), float(some.max())
    shades = np.rint((some - low) * (255 / (high - low) if high > low else 0.0)).astype(np.uint8)
    return _image("png", _png(shades), words)


def _picture(file: Path, row: Floats) -> Markup:
    """A picture file as it is, where it is small and of a kind that every browser shows; otherwise its row."""
    try:
        content = file.read_bytes() if file.stat().st_size <= PICTURE_BYTES else b""
    except OSError:
        content = b""
    kind = next((name for start, name in KINDS if content.startswith(start)), None)
    if kind is not None:
        return _image(kind, content, "A picture of the pool.")
    drawn = row if row.ndim == 2 or (row.ndim == 3 and row.shape[2] == 3) else _patched(row.ravel(), (1, 1))
    return as_picture(drawn, "A row of the pool.")


def _image(kind: str, content: bytes, words: str) -> Markup:
    return markup(
        '<img class="row" alt="{}" src="data:image/{};base64,{}">', words, kind, base64.b64encode(content).decode()
    )


def _png(shades: Any) -> bytes:
    """A PNG file (RFC 2083) of grey or coloured bytes."""
    height, width = shades.shape[:2]
    colour = 2 if shades.ndim == 3 else 0
    lines = b"".join(b"\0" + shades[line].tobytes() for line in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", head) + _chunk(b"IDAT", zlib.compress(lines, 9)) + _chunk(b"IEND", b"")
    )


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def _patched(row: Floats, grid: tuple[int, int]) -> Floats:
    """An encoded row as a picture: every block a patch, as near to a square as its numbers allow."""
    down, across = grid
    blocks = row.reshape(down * across, -1)
    wide = blocks.shape[1]
    tall = next(size for size in range(math.isqrt(wide), 0, -1) if wide % size == 0)
    patches = blocks.reshape(down, across, tall, wide // tall)
    return patches.transpose(0, 2, 1, 3).reshape(down * tall, -1)


def _shares(shares: Floats) -> str:
    """Under the numbers that the server knows the classes by."""
    found = [(place, float(share)) for place, share in enumerate(shares) if share > 0]
    return " + ".join(f"{HALVES.get(share, f'{share:g} ')}class {place}" for place, share in found)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_CELL else f"{text[: LONGEST_CELL - 1]}…"
