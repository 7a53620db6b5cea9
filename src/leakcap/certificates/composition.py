"""What several releases tell together: a frozen record of public facts, made of their certificates by arithmetic."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from leakcap import convert
from leakcap.certificates.ids import is_drawn_id
from leakcap.certificates.text import listed, percent, section
from leakcap.convert.rounding import rounded_up
from leakcap.errors import InputError
from leakcap.ground.json_record import entries, is_number, is_whole, is_words
from leakcap.ground.proofs import proves

__all__ = ["RELATIONS", "ComposedPart", "Composition"]

RELATIONS = ("independent", "same")
Number = TypeVar("Number", float, npt.NDArray[np.float64])


@dataclass(frozen=True)
class ComposedPart:
    """What one certificate brings to a composition.

    Attributes:
        kind: of the certificate.
        mode: of its plan.
        units: number of units in its pool.
        worlds: number of its worlds.
        rate: share of the pool in a world, as a fraction in text.
        membership_success: its certified success at guessing whether the most exposed person took part.
        mutual_information: its certified information about its own secret, in nats.
        sampler_distance: between the noise that is drawn and the law that is certified.
        gamma: probability that its figures do not hold.
        secret_id: of its secret.
        data_id: of its data set.
        log_det: its information by covariance, in nats; None where it states none.
        signal: its variances over those of the noise; None where it states none.
    """

    kind: str
    mode: str
    units: int
    worlds: int
    rate: str
    membership_success: float
    mutual_information: float
    sampler_distance: float
    gamma: float
    secret_id: str
    data_id: str
    log_det: float | None = None
    signal: float | None = None


@dataclass(frozen=True, repr=False)
class Composition:
    """What the best possible attacker can do with several releases. `str(composition)` says it in plain words.

    Attributes:
        data: "independent" (every release has data and a secret of its own) or "same" (all share one of each).
        parts: the releases.
        membership_success: success at guessing whether the most exposed person took part in a given release, with all
            releases at hand.
        confidence: probability that all figures hold together.
        assumptions: what must be true for it to hold; what the caller declared comes first.
        not_promised: what it does not bound.
        theorems: names of the proof pages it rests on.
        leakcap_version: version that made it.
        mutual_information: nats about all secrets together; None where a release bounds guesses at one person alone.
    """

    data: str
    parts: tuple[ComposedPart, ...]
    membership_success: float
    confidence: float
    assumptions: tuple[str, ...]
    not_promised: tuple[str, ...]
    theorems: tuple[str, ...]
    leakcap_version: str
    mutual_information: float | None = None

    @proves("composition")
    def posterior(self, prior: Number) -> Number:
        """Success of the best attacker, with all releases, at any guess about all their secrets.

        Args:
            prior: probability of a right guess without the releases, a number or an array.

        Returns:
            The bound, in the form of `prior`.

        Raises:
            InputError: `prior` is not a probability; or one of the releases bounds guesses at one person alone.
        """
        if self.mutual_information is None:
            raise InputError("one of these releases bounds guesses at one person alone: nothing follows for other ones")
        given = np.asarray(prior, dtype=np.float64)
        if not ((given >= 0) & (given <= 1)).all():
            raise InputError("prior must be a probability from 0 to 1")
        inside = np.clip(given, 1e-300, 1 - 1e-16)
        found = np.minimum(1.0, convert.posterior(self.mutual_information, inside))
        bound = np.where((given == 0) | (given == 1), given, np.maximum(given, found))
        return bound if isinstance(prior, np.ndarray) else float(bound)  # type: ignore[return-value]

    def to_json(self) -> str:
        """The whole record, in a stable order.

        Returns:
            JSON text.
        """
        return json.dumps(_stated(self), indent=1, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Composition:
        """A composition from its JSON; anything missing or unknown raises.

        Args:
            text: what `to_json` gave.

        Returns:
            The composition.

        Raises:
            InputError: the text is not a composition, or an entry is out of range.
        """
        given = entries(cls, text, "composition of leakcap certificates")
        try:
            given["parts"] = tuple(ComposedPart(**one) for one in given["parts"])
        except TypeError:
            raise InputError("this JSON text is no composition: its parts have another form") from None
        for name in ("assumptions", "not_promised", "theorems"):
            if not isinstance(given[name], list):
                raise InputError("this JSON text is no composition: a list in it has another form")
            given[name] = tuple(given[name])
        found = cls(**given)
        if not _is_plausible(found):
            raise InputError("this JSON text is no composition: an entry is not of its kind, or out of range")
        return found

    def __str__(self) -> str:
        return "\n".join(_page(self))

    def __repr__(self) -> str:
        figures = f"membership_success={percent(self.membership_success)}"
        if self.mutual_information is not None:
            figures += f", mutual_information={rounded_up(self.mutual_information)} nats"
        return f"Composition({len(self.parts)} releases, data={self.data!r}, {figures})"


def _stated(record: Composition) -> dict[str, Any]:
    given = {name: value for name, value in asdict(record).items() if value is not None}
    given["parts"] = [{name: value for name, value in one.items() if value is not None} for one in given["parts"]]
    return given


def _page(record: Composition) -> Iterator[str]:
    count = len(record.parts)
    yield f"{count} releases together"
    yield ""
    if record.data == "same":
        yield from section(
            "What was composed", f"{count} answers from one secret; what was asked was fixed beforehand."
        )
    else:
        yield from section("What was composed", f"{count} releases, each with data and a secret of its own.")
    yield from section(
        "One person",
        f"Guessing whether a given person took part succeeds at most {percent(record.membership_success)} of the time, "
        "with all of these releases at hand.",
    )
    if record.mutual_information is not None:
        yield from section(
            "All secrets",
            f"Together they carry at most {rounded_up(record.mutual_information)} nats about the secrets.",
        )
    yield from listed("Assumed", record.assumptions)
    yield from listed("Not promised", record.not_promised)


def _is_plausible(record: Composition) -> bool:
    parts, words = record.parts, (*record.assumptions, *record.not_promised, *record.theorems, record.leakcap_version)
    figures = [figure for one in parts for figure in (one.log_det, one.signal) if figure is not None]
    if record.mutual_information is not None:
        figures.append(record.mutual_information)
    return (
        record.data in RELATIONS
        and len(parts) >= 2
        and is_number(0, 1, record.membership_success, record.confidence)
        and is_number(0, float("inf"), *figures, *(one.mutual_information for one in parts))
        and all(is_number(0, 1, one.membership_success, one.sampler_distance, one.gamma) for one in parts)
        and all(is_words(one.kind, one.mode, one.rate, least=2) and is_whole(one.units, one.worlds) for one in parts)
        and all(is_drawn_id(drawn) for one in parts for drawn in (one.secret_id, one.data_id))
        and is_words(*words, least=2)
    )
