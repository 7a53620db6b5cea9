"""How labels become observations: a mechanism from the options of a command, before any label is read."""

from __future__ import annotations

import csv
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap import checks
from leakcap.cli.label_column import LabelColumn
from leakcap.errors import InputError
from leakcap.label_certificate import LabelCertificate
from leakcap.labels import KRR, Gaussian, Laplace, Mechanism, RROnBins, RRWithPrior, SubsetSelection, UnaryBits, auto

__all__ = ["MECHANISMS", "Recipe", "Wanted"]

MECHANISMS = ("auto", "krr", "unary", "subset", "laplace", "gaussian", "bins")
DELTA = 1e-5
MOST_CLASSES = 1_000
_NOISED = "1 for the label and 0 for every other class, all of them noised"
HOLDS: dict[type[Mechanism], str] = {
    KRR: "one of the classes in each row: the label, or any other one",
    RRWithPrior: "one of the likeliest classes in each row: the label, or another one",
    UnaryBits: "a mark for every class, each set or not at random, that of the label more often",
    SubsetSelection: "marks on a random set of classes, which holds the label more often than chance",
    Laplace: _NOISED,
    Gaussian: _NOISED,
    RROnBins: "one of a few values in each row: that of the label's bin, or of another one",
}


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is asked for on the command line, as far as it concerns the mechanism."""

    epsilon: float
    classes: str | None = None
    mechanism: str = "auto"
    delta: float | None = None
    prior: str | None = None
    low: float | None = None
    high: float | None = None
    missing_as: str | None = None


@dataclass(frozen=True, eq=False)
class Recipe:
    """How labels become observations: made from the command line alone, before the file is opened."""

    mechanism: Mechanism
    names: tuple[str, ...]  # empty: bins
    missing_as: str | None
    prior: tuple[float, ...] | None

    @classmethod
    def of(cls, wanted: Wanted) -> Recipe:
        checks.choice(MECHANISMS, mechanism=wanted.mechanism)
        checks.positive(epsilon=wanted.epsilon)
        if wanted.delta is not None and wanted.mechanism != "gaussian":
            raise InputError("--delta is for --mechanism gaussian: all others keep epsilon without exception")
        prior = None if wanted.prior is None else _shares(wanted.prior)
        in_bins = wanted.mechanism == "bins" or wanted.low is not None or wanted.high is not None
        return cls._bins(wanted, prior) if in_bins else cls._classes(wanted, prior)

    @classmethod
    def _bins(cls, wanted: Wanted, prior: tuple[float, ...] | None) -> Recipe:
        if wanted.mechanism not in ("auto", "bins"):
            raise InputError("--low and --high are for numbers in bins: leave --mechanism out, or set it to bins")
        if wanted.classes is not None or wanted.missing_as is not None:
            raise InputError("--classes and --missing-as are for classes, --low and --high for numbers: give either")
        if wanted.low is None or wanted.high is None:
            raise InputError(
                "bins need --low and --high, the range of the labels. It is not read from the data, because that would "
                "publish the smallest and the largest label, which are single people's"
            )
        return cls(RROnBins(wanted.epsilon, wanted.low, wanted.high, prior), (), None, prior)

    @classmethod
    def _classes(cls, wanted: Wanted, prior: tuple[float, ...] | None) -> Recipe:
        if wanted.classes is None:
            raise InputError(
                "name the classes with --classes, such as --classes no,yes (or, for numbers in bins, their range with "
                "--low and --high). They are public, and not read from the labels: a class that occurs once would give "
                "its owner away"
            )
        names = _names(wanted.classes)
        missing = None if wanted.missing_as is None else wanted.missing_as.strip()
        if missing is not None and missing not in names:
            if not missing:
                raise InputError("--missing-as needs a name, such as --missing-as missing")
            names = (*names, missing)
        if len(names) < 2:
            raise InputError("labels of one class hold nothing to protect: name at least two with --classes")
        if len(names) > MOST_CLASSES:
            raise InputError(f"--classes may name {MOST_CLASSES:,} classes at most: put rare ones together")
        make: Any = {
            "auto": partial(auto, prior=prior),
            "krr": KRR,
            "unary": UnaryBits,
            "subset": SubsetSelection,
            "laplace": Laplace,
            "gaussian": partial(Gaussian, delta=DELTA if wanted.delta is None else wanted.delta),
        }[wanted.mechanism]
        return cls(make(wanted.epsilon, n_classes=len(names)), names, missing, prior)

    def refuse_unfit(self, column: LabelColumn) -> None:
        """A file that has no room for what would be written."""
        column.refuse_names(self.columns(column.name))

    def labels_of(self, column: LabelColumn) -> npt.NDArray[Any]:
        return column.codes(self.names, self.missing_as) if self.names else column.numbers()

    def columns(self, name: str) -> tuple[str, ...]:
        """Names of the columns that take the place of the labels."""
        return tuple(f"{name}={one}" for one in self.names) if self.is_wide else (name,)

    def cells(self, column: LabelColumn, observed: npt.NDArray[Any]) -> dict[str, Any]:
        """What is written into each of them."""
        names = self.columns(column.name)
        if observed.ndim == 2:
            return {name: observed[:, place] for place, name in enumerate(names)}
        return {
            names[0]: column.named(observed.astype(np.int64), self.names, self.missing_as) if self.names else observed
        }

    def certificate(self, labels: int) -> LabelCertificate:
        if isinstance(self.mechanism, RROnBins):
            return self.mechanism.certificate(labels, self.mechanism.bin_prior)
        return replace(self.mechanism.certificate(labels, self.prior), classes=self.names)

    @property
    def is_wide(self) -> bool:
        """Whether an observation has an entry for every class."""
        return not isinstance(self.mechanism, KRR | RRWithPrior)

    @property
    def holds(self) -> str:
        """What the columns hold, in words."""
        return HOLDS[type(self.mechanism)]

    def code(self, file: str, column: LabelColumn) -> str:
        """A few lines that read the observations and apply Bayes' rule to them."""
        made = self.mechanism
        listed = self.names if self.is_wide else column.names(self.names, self.missing_as)
        options: dict[str, Any] = {"epsilon": made.epsilon, "classes": list(listed)}
        if isinstance(made, RROnBins):
            del options["classes"]
            options |= {"low": float(made.edges[0]), "high": float(made.edges[-1])}
        if isinstance(made, SubsetSelection):
            options["size"] = made.size
        if isinstance(made, RROnBins | RRWithPrior) and self.prior is not None:
            options["prior"] = list(self.prior)
        if made.delta:
            options["delta"] = made.delta
        given = [f"{name}={value!r}" for name, value in options.items()]
        short = sum(map(len, given)) < 60
        asked = ", ".join(given) if short else "".join(f"\n    {one}," for one in given) + "\n"
        picked = f"[{column.name + '='!r} + one for one in mechanism.classes]" if self.is_wide else repr(column.name)
        read = "read_parquet" if file.endswith(".parquet") else "read_csv"
        more = ", sep=" + repr(column.file.separator) if column.file.separator not in (None, ",") else ""
        if read == "read_csv" and not self.is_wide:  # as text: names and values must come back to the last digit
            more += ", dtype=str, na_filter=False"
        return (
            "import numpy as np, pandas as pd, leakcap as lc\n\n"
            f"table = pd.{read}({file!r}{more})\n"
            f"mechanism = lc.labels.{type(made).__name__}({asked})\n"
            f"observed = table[{picked}]{'' if self.names else '.astype(float)'}\n"
            "log_prior = np.zeros(mechanism.n_classes)  # or what a model predicts, row by row\n"
            "posterior = mechanism.posterior(observed, log_prior)  # the probability of every class, in each row"
        )


def _names(given: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in next(csv.reader([given], skipinitialspace=True), []))
    if not names or not all(names):
        raise InputError("--classes are names with commas between, such as --classes no,yes")
    if not all(name.isprintable() for name in names):
        raise InputError("--classes must be printable names")
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(f"--classes names {name!r} twice: name each class once")
        seen.add(name)
    return names


def _shares(given: str) -> tuple[float, ...]:
    try:
        return tuple(float(one) for one in given.split(","))
    except ValueError:
        raise InputError("--prior must be probabilities with commas between, such as --prior 0.76,0.24") from None
