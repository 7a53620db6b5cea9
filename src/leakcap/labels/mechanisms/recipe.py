"""A label mechanism from what is asked of it, before any label is read: refused where the wishes contradict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from leakcap.certificates.labels import LabelCertificate
from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.labels.mechanisms.auto import auto
from leakcap.labels.mechanisms.base import Mechanism
from leakcap.labels.mechanisms.bins import RROnBins
from leakcap.labels.mechanisms.gaussian import Gaussian
from leakcap.labels.mechanisms.krr import KRR
from leakcap.labels.mechanisms.laplace import Laplace
from leakcap.labels.mechanisms.subset import SubsetSelection
from leakcap.labels.mechanisms.unary import UnaryBits
from leakcap.labels.mechanisms.with_prior import RRWithPrior

__all__ = ["DEFAULT_DELTA", "MECHANISMS", "LabelRecipe", "LabelRequest", "named_classes"]

MECHANISMS = ("auto", "krr", "unary", "subset", "laplace", "gaussian", "bins")
DEFAULT_DELTA = 1e-5
MAX_CLASSES = 1_000
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
class LabelRequest:
    """What is asked of a label mechanism. `low` and `high` are for labels that are numbers, `classes` for others."""

    epsilon: float
    classes: tuple[str, ...] | None = None
    mechanism: str = "auto"
    delta: float | None = None
    prior: tuple[float, ...] | None = None
    low: float | None = None
    high: float | None = None
    missing_as: str | None = None

    @property
    def in_bins(self) -> bool:
        """Whether the labels are numbers, told apart by the bin they lie in."""
        return self.mechanism == "bins" or self.low is not None or self.high is not None


@dataclass(frozen=True, eq=False)
class LabelRecipe:
    """How labels become observations."""

    mechanism: Mechanism
    names: tuple[str, ...]  # empty: bins
    missing_as: str | None
    prior: tuple[float, ...] | None

    @classmethod
    def of(cls, request: LabelRequest) -> LabelRecipe:
        """The mechanism that was asked for, with its classes or bins."""
        checks.choice(MECHANISMS, mechanism=request.mechanism)
        checks.positive(epsilon=request.epsilon)
        if request.delta is not None and request.mechanism != "gaussian":
            raise InputError("delta= is for mechanism=gaussian: all others keep epsilon without exception")
        return cls._bins(request) if request.in_bins else cls._classes(request)

    @classmethod
    def _bins(cls, request: LabelRequest) -> LabelRecipe:
        if request.mechanism not in ("auto", "bins"):
            raise InputError("low= and high= are for numbers in bins: leave mechanism= out, or set it to bins")
        if request.classes is not None or request.missing_as is not None:
            raise InputError("classes= and missing_as= are for classes, low= and high= for numbers: give either")
        if request.low is None or request.high is None:
            raise InputError(
                "bins need low= and high=, the range of the labels. It is not read from the data, because that would "
                "publish the smallest and the largest label, which are single people's"
            )
        mechanism = RROnBins(request.epsilon, request.low, request.high, request.prior)
        return cls(mechanism, (), None, request.prior)

    @classmethod
    def _classes(cls, request: LabelRequest) -> LabelRecipe:
        names, missing_as = named_classes(request)
        make: Any = {
            "auto": partial(auto, prior=request.prior),
            "krr": KRR,
            "unary": UnaryBits,
            "subset": SubsetSelection,
            "laplace": Laplace,
            "gaussian": partial(Gaussian, delta=DEFAULT_DELTA if request.delta is None else request.delta),
        }[request.mechanism]
        return cls(make(request.epsilon, n_classes=len(names)), names, missing_as, request.prior)

    def columns(self, name: str) -> tuple[str, ...]:
        """Names of the columns that take the place of the label column `name`."""
        return tuple(f"{name}={label}" for label in self.names) if self.is_wide else (name,)

    def certificate(self, labels: int) -> LabelCertificate:
        """What one run of this recipe on so many labels promises."""
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

    def arguments(self, classes: Sequence[Any]) -> dict[str, Any]:
        """What makes the same mechanism again in Python, its classes called by these names."""
        mechanism = self.mechanism
        arguments: dict[str, Any] = {"epsilon": mechanism.epsilon}
        if isinstance(mechanism, RROnBins):
            arguments |= {"low": float(mechanism.edges[0]), "high": float(mechanism.edges[-1])}
        else:
            arguments["classes"] = list(classes)
        if isinstance(mechanism, SubsetSelection):
            arguments["size"] = mechanism.size
        if isinstance(mechanism, RROnBins | RRWithPrior) and self.prior is not None:
            arguments["prior"] = list(self.prior)
        if mechanism.delta:
            arguments["delta"] = mechanism.delta
        return arguments


def named_classes(request: LabelRequest) -> tuple[tuple[str, ...], str | None]:
    """The classes, that of missing labels among them, and what it is called."""
    if request.classes is None:
        raise InputError(
            "name the classes, such as classes=no,yes (or, for numbers in bins, their range with low= and high=). They "
            "are public, and not read from the labels: a class that occurs once would give its owner away"
        )
    names = _distinct(request.classes)
    missing_as = None if request.missing_as is None else request.missing_as.strip()
    if missing_as == "":
        raise InputError("missing_as= needs a name, such as missing_as=missing")
    if missing_as is not None and missing_as not in names:
        names = (*names, missing_as)
    if len(names) < 2:
        raise InputError("labels of one class hold nothing to protect: name at least two with classes=")
    if len(names) > MAX_CLASSES:
        raise InputError(f"classes= may name {MAX_CLASSES:,} classes at most: put rare ones together")
    return names, missing_as


def _distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    if not all(name.isprintable() for name in names):
        raise InputError("classes= must be printable names")
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(f"classes= names {name!r} twice: name each class once")
        seen.add(name)
    return names
