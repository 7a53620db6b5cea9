"""An engine that stays open between questions: a new one costs more than most questions do."""

from __future__ import annotations

from pathlib import Path

from leakcap.sql.engine import LIMITS, EngineLimits, LocalEngine

__all__ = ["kept_engine"]


class _KeptEngine(LocalEngine):
    """In this process; it is closed when the tables of another file are asked about."""

    def __init__(self, path: Path | str, limits: EngineLimits = LIMITS) -> None:
        super().__init__(path, limits)
        self.path = path

    def close(self) -> None:
        pass


_last: list[_KeptEngine] = []


def kept_engine(path: Path | str, limits: EngineLimits = LIMITS) -> LocalEngine:
    """In place of a worker, where it is not asked how those are started, locked and ended."""
    if not _last or _last[0].path != path:
        for one in _last:
            LocalEngine.close(one)
        _last[:] = [_KeptEngine(path, limits)]
    return _last[0]
