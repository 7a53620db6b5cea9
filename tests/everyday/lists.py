"""How tasks and mistakes are written down: a title in the user's words, a function, and how large its error may be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from tests.everyday.desk import Desk

__all__ = ["Task", "mistake", "mistakes", "task", "tasks"]


@dataclass(frozen=True)
class Task:
    """What somebody wants; `run` does it and gives the error: relative, or in points of accuracy where `points`."""

    title: str
    theme: str
    run: Callable[[Desk], float]
    within: float = 0.0  # the largest error, on few rows with few worlds, with room for what noise does
    points: bool = False


THEMES = (
    "statistics",
    "groups",
    "models",
    "pipelines",
    "sessions",
    "command_line",
    "private_labels",
    "auditing",
    "saving",
)
_tasks: list[Task] = []
_mistakes: list[Task] = []


def task(title: str, within: float, *, points: bool = False) -> Callable[[Callable[[Desk], float]], Task]:
    """Something that works at once, to within an error."""

    def listed(run: Callable[[Desk], float]) -> Task:
        _tasks.append(Task(title, run.__module__.rpartition(".")[2], run, within, points))
        return _tasks[-1]

    return listed


def mistake(title: str) -> Callable[[Callable[[Desk], None]], Task]:
    """Something that is refused or warned about, with a cure that then works."""

    def listed(run: Callable[[Desk], None]) -> Task:
        def cured(desk: Desk) -> float:
            run(desk)
            return 0.0

        _mistakes.append(Task(title, "mistakes", cured))
        return _mistakes[-1]

    return listed


def tasks() -> list[Task]:
    """All tasks, in the order of their themes."""
    _load(*THEMES)
    return sorted(_tasks, key=lambda one: THEMES.index(one.theme))


def mistakes() -> list[Task]:
    """All mistakes."""
    _load("mistakes_in_calls", "mistakes_with_data")
    return list(_mistakes)


def _load(*themes: str) -> None:
    """Each file lists what it holds when it is loaded."""
    for theme in themes:
        import_module(f"tests.everyday.{theme}")
