"""Possible worlds: which units take part in each. Balanced: nobody is likelier than the rate to be in."""

from leakcap.worlds.coins import crowded_bits, unseen_share
from leakcap.worlds.draw import draw_worlds, fair_bits, given_worlds, independent_worlds
from leakcap.worlds.inputs import GivenInputs
from leakcap.worlds.units import Units
from leakcap.worlds.worldset import Worlds

__all__ = [
    "GivenInputs",
    "Units",
    "Worlds",
    "crowded_bits",
    "draw_worlds",
    "fair_bits",
    "given_worlds",
    "independent_worlds",
    "unseen_share",
]
