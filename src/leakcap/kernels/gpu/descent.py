"""Gradient descent in all worlds: what is asked of it, and its steps one after the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from leakcap.ground.arrays import Floats
from leakcap.kernels.gpu.device import load

__all__ = ["Descent", "repeat"]


@dataclass(frozen=True, eq=False)
class Descent:
    """From which layers, `(weight, bias)` each, how many steps of which rate are taken, and in which arithmetic."""

    layers: list[tuple[Floats, Floats]]
    steps: int
    rate: float
    precision: str


def repeat(step: Callable[[], None], times: int, device: object) -> None:
    """Do a step many times. On a GPU it is recorded once and played back, which spares small steps their launches."""
    torch = load()
    if device.type != "cuda" or times < 3:  # type: ignore[attr-defined]
        for _ in range(times):
            step()
        return
    aside = torch.cuda.Stream(device)
    aside.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(aside):
        step()  # compiles, and asks libraries for their workspaces
    torch.cuda.current_stream(device).wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()  # recorded, not done
    for _ in range(times - 1):
        graph.replay()
    torch.cuda.synchronize(device)
