"""Run any function in every world; flatten what it returns and rebuild it from released numbers."""

from leakcap.simulate.progress import Forecast, Progress
from leakcap.simulate.rows import Pool
from leakcap.simulate.run import Outputs, Simulation, run_worlds, stored_outputs
from leakcap.simulate.structure import Node, describe, rebuild

__all__ = [
    "Forecast",
    "Node",
    "Outputs",
    "Pool",
    "Progress",
    "Simulation",
    "describe",
    "rebuild",
    "run_worlds",
    "stored_outputs",
]
