"""Possible worlds: which units take part in each. Balanced: nobody is likelier than the rate to be in."""

from leakcap.worlds.draw import draw_worlds, fair_bits, given_worlds, independent_worlds
from leakcap.worlds.units import Units
from leakcap.worlds.worldset import Worlds

__all__ = ["Units", "Worlds", "draw_worlds", "fair_bits", "given_worlds", "independent_worlds"]
