"""Run any function in every world; flatten what it returns and rebuild it from released numbers."""

from leakcap.simulate.describe import describe, rebuild
from leakcap.simulate.nodes import Node
from leakcap.simulate.pool import Pool
from leakcap.simulate.progress import Forecast, Progress
from leakcap.simulate.run import Outputs, Simulation, run_worlds, stored_outputs

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
