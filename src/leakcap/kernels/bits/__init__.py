"""Masks as words of 64 rows."""

from leakcap.kernels.bits.words import as_words, picked, place_of

__all__ = ["as_words", "picked", "place_of"]
