"""The door upstairs: how a record of any room becomes a page, without knowing how pages are made.

`leakcap.report` stands above all records and imports them. This is the one place below it that asks for it, by name and
when somebody looks, so that computing never loads what only showing needs.
"""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from leakcap.errors import InputError

__all__ = ["Displayed", "Drawn", "upstairs"]

UPSTAIRS = "leakcap.report.pages"


class Displayed:
    """A record that notebooks show, and that can be saved as a page of its own."""

    _custodian_only: ClassVar[bool] = False  # its files are readable by their owner alone

    def to_html(self, *, allow_simulation: bool = False) -> str:
        """The record as a page: one HTML file without scripts or outside references.

        Args:
            allow_simulation: makes a page of a simulation too, which looks much like that of a release.

        Returns:
            The text of the file.

        Raises:
            InputError: it is a simulation, and that was not allowed.
        """
        self._refuse_simulation(allow_simulation)
        return str(upstairs().page(self))

    def save(self, path: str | os.PathLike[str], *, allow_simulation: bool = False) -> None:
        """Write the record to a file, in the form that the name's ending says: `.html`, or `.json` where it has JSON.

        What is for the custodian alone is written so that nobody but its owner can open it.

        Args:
            path: where to write it; its ending says the form.
            allow_simulation: writes a simulation too.

        Raises:
            InputError: the record has no form of that ending, or is a simulation, and that was not allowed.
        """
        self._refuse_simulation(allow_simulation)
        target = Path(path)
        forms = self._forms()
        if target.suffix.lower() not in forms:
            raise InputError(f"save() knows the form by the name's ending: {', '.join(sorted(forms))}")
        method = getattr(self, forms[target.suffix.lower()])
        allowed = {"allow_simulation": True} if method.__name__ == "to_html" else {}
        _write(target, method(**allowed), self._custodian_only)

    def _forms(self) -> dict[str, str]:
        """Endings of file names, and the method that gives what such a file holds."""
        known = {".html": "to_html", ".htm": "to_html", ".json": "to_json", ".svg": "to_svg"}
        return {ending: method for ending, method in known.items() if hasattr(self, method)}

    def _repr_html_(self) -> str:
        return str(upstairs().fragment(self))

    def _refuse_simulation(self, allowed: bool) -> None:
        certificate = getattr(self, "certificate", self)
        if not allowed and not self._custodian_only and getattr(certificate, "kind", "") == "simulation":
            raise InputError(
                "this is a simulation, not a release, because a seed was given: leave the seed out (random_state= of "
                "an estimator), or say allow_simulation=True"
            )


class Drawn(Displayed):
    """A record that is a picture, too."""

    def to_svg(self) -> str:
        """The picture as a stand-alone file, which follows the reader's choice of light or dark.

        Returns:
            The text of an SVG file.
        """
        return str(upstairs().picture(self))

    def plot(self, ax: Any = None) -> Any:
        """Draw the picture on matplotlib axes.

        Args:
            ax: the axes to draw on; None makes new ones.

        Returns:
            The axes.

        Raises:
            MissingExtra: matplotlib is not installed.
        """
        return upstairs().axes(self, ax)


def upstairs() -> Any:
    """The module that makes pages and files of records."""
    return import_module(UPSTAIRS)


def _write(path: Path, words: str, private: bool) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600 if private else 0o666), "wb") as file:
        if private:  # also where the file was there before, and before anything is in it
            path.chmod(0o600)
        file.write(words.encode())
