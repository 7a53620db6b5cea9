"""`leakcap audit --plant` and `--canaries`: wrong labels put into a file, and a model asked for them later."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from leakcap.audit import CanaryKey, memorised, plant
from leakcap.audit.verdicts import REFUTED
from leakcap.certificates.labels import LabelCertificate
from leakcap.cli.audit import print_report, refuse_existing
from leakcap.cli.labels import class_names
from leakcap.cli.terminal import Terminal
from leakcap.custody.private_files import private_folder, write_private
from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats
from leakcap.tables.columns import numbers
from leakcap.tables.files import listed, open_table
from leakcap.tables.label_files import open_labels

__all__ = ["CanaryOrder", "run_canaries"]

KEY = "canaries.json"


@dataclass(frozen=True, kw_only=True)
class CanaryOrder:
    """What is asked about canaries on the command line."""

    data: Path | None = None
    plant: int | None = None
    column: str | None = None
    classes: str | None = None
    canaries: Path | None = None
    predictions: Path | None = None
    certificate: Path | None = None
    looks: int | None = None
    out: Path | None = None

    @property
    def is_asked(self) -> bool:
        asked = (self.plant, self.column, self.classes, self.canaries, self.predictions, self.certificate, self.looks)
        return any(option is not None for option in asked)


def run_canaries(order: CanaryOrder, quiet: bool = False, json: bool = False) -> bool:
    """Plant, or judge; False if a certificate was refuted."""
    if order.plant is None:
        return _judge(order, quiet, json)
    _plant(order, quiet, json)
    return True


def _plant(order: CanaryOrder, quiet: bool = False, json: bool = False) -> None:
    """Write the file with canaries in it, and their key, for the custodian alone."""
    if order.data is None or order.column is None or order.classes is None or order.out is None:
        raise InputError("to plant, name the file, its --column, the --classes and a folder: --out FOLDER")
    if order.canaries or order.predictions or order.certificate or order.looks is not None:
        raise InputError("plant first, train, and judge with another command: --canaries KEY --predictions FILE")
    terminal, names = Terminal(quiet, json), class_names(order.classes)
    column, count = open_labels(order.data, order.column), checks.count(plant=order.plant)
    if count > column.rows:
        raise InputError(f"the file has {column.rows:,} labels, fewer than --plant {count}: plant fewer")
    codes = column.codes(names, None)
    labels, key = plant([names[code] for code in codes], count, classes=names)
    folder = private_folder(order.out / "custodian")
    file = folder / f"planted{column.ending}"
    refuse_existing(file)
    key.save(folder / KEY)
    places = np.array([names.index(label) for label in labels.tolist()], dtype=np.int64)
    write_private(file, column.written({column.name: column.named(places, names, None)}), exclusive=True)
    terminal.say(f"{key.count:,} of {key.labels:,} labels are canaries. Train on {file} as on the true labels")
    terminal.say(f"{folder / KEY}: which they are. For you alone; keep it for leakcap audit --canaries")
    terminal.result({"planted": str(file), "key": str(folder / KEY), "canaries": key.count, "labels": key.labels})


def _judge(order: CanaryOrder, quiet: bool = False, json: bool = False) -> bool:
    """Judge predictions by the key; False if they refute the certificate."""
    if order.canaries is None or order.predictions is None or order.data or order.classes:
        raise InputError("to judge a model give --canaries KEY --predictions FILE, and --certificate if there is one")
    refuse_existing(order.out)
    key = CanaryKey.load(order.canaries)
    certificate = None if order.certificate is None else _certificate(order.certificate)
    scores = _scores(order.predictions, key, order.column)
    report = memorised(scores, key, certificate=certificate, looks=1 if order.looks is None else order.looks)
    print_report(report, order.out, Terminal(quiet, json))
    return report.verdict != REFUTED


def _scores(path: Path, key: CanaryKey, predicted: str | None) -> Floats:
    """A column for each class, by its name; or one column of predicted classes."""
    file, names = open_table(path), list(map(str, key.classes))
    alone = file.columns[0] if len(file.columns) == 1 else None
    if predicted is not None or alone is not None:
        named = open_labels(path, predicted or str(alone)).codes(names, None)
        return np.eye(len(names))[named]
    if not set(names) <= set(file.columns):
        raise InputError(
            f"{path.name} must have a column of scores for each class, named {listed(names)}; or one column of "
            "predicted classes, or --column NAME that says which. Rows in the order of the planted file"
        )
    table = file.read(names)
    empty = [name for name in names if table[name].isna().any()]
    if empty:
        raise InputError(f"some scores in column {listed(empty)} are missing: fill in what the model believes there")
    return np.column_stack([numbers(table[name], name) for name in names])


def _certificate(path: Path) -> LabelCertificate:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        text = None
    if text is None:
        raise InputError(f"{path} cannot be read: give the certificate.json of private labels")
    return LabelCertificate.from_json(text)
