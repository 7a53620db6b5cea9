"""Settings with which plans certify with few draws and try two shapes: more noise, a fraction of the time.

Few simulated releases are rebuilt, and tell how wide error bars are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

__all__ = ["FEW", "FewFromTheStart"]

FEW: dict[str, Any] = {
    "leakcap.noise.search.MIN_DRAWS": 2**11,
    "leakcap.noise.search.MAX_DRAWS": 2**11,
    "leakcap.noise.search.BETAS": (2.0,),
    "leakcap.noise.search.MIXED": (0.1,),
    "leakcap.noise.leverage.MAX_ROUNDS": 20,
    "leakcap.planning.finishing.SIMULATED": 64,
    "leakcap.planning.rebuilding.REHEARSALS": 4,
}


class FewFromTheStart(MetaPathFinder):
    """Put first among `sys.meta_path`: modules have these settings once they are imported."""

    def __init__(self) -> None:
        self.settings: dict[str, dict[str, Any]] = defaultdict(dict)
        for place, value in FEW.items():
            module, _, name = place.rpartition(".")
            self.settings[module][name] = value

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self.settings:
            return None
        found = PathFinder.find_spec(fullname, path, target)
        assert found is not None and found.loader is not None
        honest = found.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            honest(module)
            for name, value in self.settings[fullname].items():
                assert hasattr(module, name), f"{fullname} has no {name} any more"
                setattr(module, name, value)

        found.loader.exec_module = exec_module  # type: ignore[method-assign]
        return found
