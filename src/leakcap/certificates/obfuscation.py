"""The certificates of an encoded set: what the server can learn of who is in it, or that nothing is claimed.

Two records, so that no figure can be read off an encoding that has none: `UnclaimedEncoding` holds no success.
"""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Self

from leakcap.certificates.display import Displayed
from leakcap.certificates.layout import WIDTH, heading, listed, most, section, table_row
from leakcap.errors import InputError
from leakcap.ground.json_record import entries, is_number, is_whole, is_words

__all__ = [
    "ATTACKER",
    "CHOSEN_PLAINTEXTS",
    "EncodingFacts",
    "ObfuscationCertificate",
    "UnclaimedEncoding",
    "encoding_from_json",
    "not_promised",
]

GAME = (
    "The pool is known. As many rows of every class were drawn from it in secret, mixed into means of {mix} rows of "
    "one class and {mix} of another, multiplied by a secret mask and noised; {rows:,} such rows leave, in a random "
    "order, with labels whose names are hidden. The attacker is asked whether a given row of the pool was drawn."
)
ATTACKER = (
    "The server, or whoever gets the encoded set and the model. May know the whole pool and how it was encoded. Does "
    "not know which rows were drawn, how they were mixed, the mask, the orders or the noise. Has unlimited computing "
    "power and uses the best method."
)
CHOSEN_PLAINTEXTS = (
    "Not secure against chosen plaintexts: whoever may choose what is encoded can tell two pools apart by how well a "
    "model learns from them, two times out of three at least (Theorem 1). No encoding that can be learnt from is."
)
NOT_PROMISED = (
    CHOSEN_PLAINTEXTS,
    "That nobody can tell the pool's own statistics: class means, difficulty and sizes show, and are not noised for "
    "that.",
    "Anything about a row that is in two encoded sets, or in the pool twice: each row is protected once.",
    "Whether somebody is in the pool at all.",
)
NO_QUERIES = "Anything about new rows: they stay with the owner, who predicts with the key. None may be sent out."
QUERIES_LEAVE = (
    "Anything about queries, and anything about the encoded set once queries have left: they are masked by the same "
    "mask without noise. The owner declared that they are sent out."
)
ASSUMPTIONS = (
    "The operating system's random numbers are unpredictable.",
    "A row is a unit: a person with several rows is not protected as one.",
    "Which rows were drawn, the mixing, the mask and the key stay with the owner.",
)


@dataclass(frozen=True, kw_only=True)
class EncodingFacts(Displayed):
    """What both certificates tell: how the set was encoded. Public side; the same whatever was sampled."""

    kind: str
    id: str  # drawn with the key; by it the two are known to belong together
    classes: int
    columns: int
    rows_sampled: int
    rows_released: int
    mix: int
    mask_dim: int
    blocks: int
    noise: float  # standard deviation in every cell
    rows_are: str  # how rows come into the unit ball
    public_rows: int  # that were added as noise that teaches; 0 for none
    queries_leave: bool
    counted: bool  # in a ledger, so that the pool is not encoded again
    pool_public: tuple[str, ...]
    assumptions: tuple[str, ...] = ASSUMPTIONS
    not_promised: tuple[str, ...] = NOT_PROMISED
    leakcap_version: str

    @property
    def is_guarantee(self) -> bool:
        return False

    @property
    def game(self) -> str:
        return GAME.format(mix=self.mix, rows=self.rows_released)

    def to_json(self) -> str:
        """The whole record, in a stable order."""
        return json.dumps(asdict(self), indent=1, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """A certificate from its JSON; anything missing or unknown raises."""
        given = entries(cls, text, "certificate of an encoded set")
        for name, value in given.items():
            if isinstance(value, list):
                given[name] = tuple(tuple(one) if isinstance(one, list) else one for one in value)
        found = cls(**given)
        if not found.is_plausible():
            raise InputError("this JSON text is no certificate of an encoded set: an entry is not of its kind")
        return found

    def is_plausible(self) -> bool:
        """Whether every entry is of its kind and in its range. It says nothing about who wrote the text."""
        sizes = self.classes, self.columns, self.rows_sampled, self.rows_released, self.mix, self.mask_dim, self.blocks
        lists = self.pool_public, self.assumptions, self.not_promised
        return (
            self.kind in self._kinds()
            and is_whole(*sizes, self.public_rows)
            and min(sizes) >= 1
            and self.classes >= 2
            and is_number(0, math.inf, self.noise)
            and type(self.queries_leave) is bool
            and type(self.counted) is bool
            and all(isinstance(one, tuple) and is_words(*one) for one in lists)
            and is_words(self.id, self.rows_are, self.leakcap_version)
        )

    def how(self) -> str:
        """How the set was encoded, in words."""
        parts = f" in {self.blocks:,} blocks with masks of their own" if self.blocks > 1 else ""
        public = f" Masked means of {self.public_rows:,} public rows are added to them." if self.public_rows else ""
        noise = f"Noise of standard deviation {self.noise:.6g} is" if self.noise else "No noise is"
        return (
            f"{self.rows_are[:1].upper()}{self.rows_are[1:]}. {self.rows_sampled:,} rows are drawn, as many of each of "
            f"{self.classes:,} classes; {self.rows_released:,} means of {2 * self.mix:,} of them leave, as many for "
            f"every ordered pair of classes, {self.columns:,} columns masked to {self.mask_dim:,}{parts}.{public} "
            f"{noise} in every cell, which leaves on a grid. All of it is drawn from {self._source()}."
        )

    def _source(self) -> str:
        return "a seed" if self.kind == "simulation" else "the operating system"

    def alone(self) -> str:
        """What is known of other encodings of the pool."""
        if self.counted:
            return "The ledger knows of it, and refuses to encode or to release this pool again."
        return "It stands alone: no ledger was given, and nothing bounds a second encoded set of the same pool with it."

    def lines(self) -> Iterator[str]:
        """The certificate as text, line by line."""
        yield from section("The game", self.game)
        yield from section("The attacker", ATTACKER)
        yield from self._figures()
        yield from section("How it was encoded", self.how())
        yield from section("Other encodings", self.alone())
        if self.pool_public:
            yield from listed("Known about the whole pool (says nothing about who was drawn)", self.pool_public)
        yield from listed("Not promised", self.not_promised)
        yield from listed("Assumed", self.assumptions)

    def _figures(self) -> Iterator[str]:
        yield from ()

    @classmethod
    def _kinds(cls) -> tuple[str, ...]:
        return ()


@dataclass(frozen=True, kw_only=True)
class UnclaimedEncoding(EncodingFacts):
    """An encoded set of which nothing is claimed: without noise, or with noise that nothing was certified about."""

    why: str

    def is_plausible(self) -> bool:
        return super().is_plausible() and is_words(self.why)

    def __str__(self) -> str:
        first = "SIMULATION, NOT A RELEASE. " if self.kind == "simulation" else ""
        words = f"{first}NO CLAIM: nothing is promised about this encoded set. {self.why}"
        return "\n".join([*textwrap.wrap(words, WIDTH), "", *self.lines(), f"leakcap {self.leakcap_version}."])

    @classmethod
    def _kinds(cls) -> tuple[str, ...]:
        return "no_claim", "simulation"


@dataclass(frozen=True, kw_only=True)
class ObfuscationCertificate(EncodingFacts):
    """What the best possible attacker can learn from an encoded set about one row of the pool.

    Guarantee: with the stated confidence, whoever sees the encoded set tells "drawn" from "not drawn" with a balanced
    success of at most `membership_success`, for every row of the pool, named in advance.
    """

    membership_success: float
    mean_success: float
    true_positives: tuple[tuple[float, float], ...]  # false positive rate, and at most this true positive rate
    confidence: float
    theorems: tuple[str, ...]
    claims: tuple[float, float, float] | None = None  # how often made, right if blind, and right at most
    draws: int | None = None  # for every row of the pool, in the certification that is stated
    again: int | None = None  # for the rows that were near the cap
    attempts: int | None = None  # certifications, each with a share of the failure probability

    @property
    def is_guarantee(self) -> bool:
        return self.kind == "obfuscation"

    def is_plausible(self) -> bool:
        return (
            super().is_plausible()
            and self.noise > 0
            and is_number(0.5, 1, self.membership_success, self.mean_success)
            and self.mean_success <= self.membership_success
            and is_number(0, 1, self.confidence)
            and is_words(*self.theorems)
            and (self.claims is None or (len(self.claims) == 3 and is_number(0, 1, *self.claims)))
            and is_whole(*(one for one in (self.draws, self.again, self.attempts) if one is not None))
            and all(
                isinstance(pair, tuple) and len(pair) == 2 and is_number(0, 1, *pair) and pair[0] <= pair[1]
                for pair in self.true_positives
            )
        )

    def attacks(self) -> list[tuple[str, float, float]]:
        """What an attacker may try, its chance before, and the bound on its chance after."""
        rates = [
            (f"recognise a row that was drawn, {100 * false:g} % false alarms", false, true)
            for false, true in self.true_positives
        ]
        return [
            ("tell whether a given row was drawn, worst row", 0.5, self.membership_success),
            ("the same, mean over the rows", 0.5, self.mean_success),
            *rates,
            *self._claims(),
        ]

    def _claims(self) -> list[tuple[str, float, float]]:
        if self.claims is None:
            return []
        often, blind, right = self.claims
        return [(f"be right in claiming it was drawn, {100 * often:g} % of times", blind, right)]

    def __str__(self) -> str:
        if self.kind == "simulation":
            title = "SIMULATION, NOT A RELEASE: it was seeded, and whoever knows the seed can undo the encoding."
        else:
            title = "Certificate of an encoded set (obfuscation)"
        proofs = f"Proofs: {', '.join(self.theorems)} (docs/proofs). leakcap {self.leakcap_version}."
        return "\n".join([title, "", *self.lines(), *textwrap.wrap(proofs, WIDTH)])

    def _figures(self) -> Iterator[str]:
        yield from heading(table_row("What the attacker can do", "before", "after, at most"))
        for what, before, after in self.attacks():
            yield table_row(f"  {what}", f"{100 * before:.3g} %", most(after))
        sure = f"All of this together with confidence 1 - {1 - self.confidence:.1g}{self._draws()}."
        yield from textwrap.wrap(sure, WIDTH, initial_indent="  ", subsequent_indent="  ")
        yield ""

    def _draws(self) -> str:
        """What the confidence rests on: draws, and how the failure probability was shared out."""
        if self.draws is None:
            return ""
        more = f", {self.again:,} more for rows near the cap" if self.again else ""
        nth = f"; attempt {self.attempts}, each with a share of its own" if (self.attempts or 1) > 1 else ""
        return f" ({self.draws:,} draws for every row{more}{nth})"

    @classmethod
    def _kinds(cls) -> tuple[str, ...]:
        return "obfuscation", "simulation"


def encoding_from_json(text: str) -> ObfuscationCertificate | UnclaimedEncoding:
    """The certificate of an encoded set from its JSON, of whichever of the two kinds."""
    try:
        given: Any = json.loads(text)
    except json.JSONDecodeError:
        given = None
    claimed = isinstance(given, dict) and "membership_success" in given
    return ObfuscationCertificate.from_json(text) if claimed else UnclaimedEncoding.from_json(text)


def not_promised(queries_leave: bool) -> tuple[str, ...]:
    """What is not promised, with or without queries that leave."""
    return (*NOT_PROMISED, QUERIES_LEAVE if queries_leave else NO_QUERIES)
