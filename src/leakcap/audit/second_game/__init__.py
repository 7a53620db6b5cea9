"""Attacks of the second game: another pool, a changed person, a rebuilt row."""
