"""The certificate of an answer that parties computed together: what any of them can learn of a person at another."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from scipy.special import ndtr, ndtri

from leakcap.certificates.layout import WIDTH, heading, listed, percent, section, table_row
from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.json_record import entries, is_number, is_whole, is_words
from leakcap.ground.proofs import proves

__all__ = ["PartiesCertificate"]

KINDS = ("parties",)
DESIGNS = ("pool", "bits")
GAMES = {
    "pool": (
        "Several parties hold rows. What all rows bring, within bounds that were agreed on beforehand, was added up "
        "and noised, under secret sharing. The attacker is asked about one person: in the rows of a party, or not?"
    ),
    "bits": (
        "Several parties hold rows. A fair coin was tossed for every row, which no party knows; what the rows that it "
        "picked bring, within bounds that were agreed on beforehand, was added up and noised, under secret sharing. "
        "The attacker is asked about one person: did the person's row take part?"
    ),
}
ATTACKER = (
    "Another party who knows its own rows, or up to {threshold:,} of the {parties:,} parties together, or whoever gets "
    "the answer. They follow the protocol, and put together all that they know, drew and received. They may know the "
    "rows of everybody else{coins}, what the person would bring, the question, the code and the law of the noise. "
    "Their computing power is not limited."
)


@dataclass(frozen=True)
class PartiesCertificate:
    """What the best attacker among the parties can learn. `str(certificate)` says it in plain words.

    Attributes:
        kind: "parties".
        design: "pool", everybody takes part; "bits", a coin that no party knows for every row.
        question: the agreed question, as JSON.
        cap: the agreed cap on the success.
        membership_success: certified success at guessing whether a person is in the rows (pool), took part (bits).
        pool_membership_success: certified success at guessing whether a person is in the rows of a party at all.
        replaced_success: certified success at telling which of two people's rows a party holds or the coin picked.
        distance: in noise deviations, between two answers with and without a person, whatever coins below the grid
            show.
        sampler_distance: bound on the distance between the noise and a normal law.
        parties: how many parties there are.
        threshold: how many of them may put together what they know.
        outputs: number of sums that were opened, all of them noised.
        coins: that were tossed for the noise in each sum.
        noise: its law, in words.
        known: what is public, and what is not.
        assumptions: what must be true for the certificate to hold.
        not_promised: what it does not bound.
        theorems: names of the proof pages it rests on.
        leakcap_version: version that made it.
    """

    kind: str
    design: str
    question: str
    cap: float
    membership_success: float
    pool_membership_success: float
    replaced_success: float
    distance: float
    sampler_distance: float
    parties: int
    threshold: int
    outputs: int
    coins: int
    noise: str
    known: tuple[str, ...]
    assumptions: tuple[str, ...]
    not_promised: tuple[str, ...]
    theorems: tuple[str, ...]
    leakcap_version: str

    @property
    def attacker(self) -> str:
        """Who it holds against."""
        coins = " and which of them took part" if self.design == "bits" else ""
        return ATTACKER.format(threshold=self.threshold, parties=self.parties, coins=coins)

    @proves("parties")
    def true_positive_rate(self, fpr: float) -> float:
        """Share of people recognised, at most, at a rate of false alarms.

        Args:
            fpr: share of the others who are accused, above 0 and below 1.

        Returns:
            The largest rate at which people who are in it are recognised.
        """
        checks.fraction(fpr=fpr)
        least = ndtri(min(1.0, fpr + self.sampler_distance))
        found = float(ndtr(least + self.distance)) * (1 + 1e-9) + self.sampler_distance
        return min(1.0, found, fpr + 2 * self.membership_success - 1)

    def attempts(self) -> list[tuple[str, str, str]]:
        """What the attacker may try.

        Returns:
            What it is, its success before the answer, and the bound on its success after it, in words.
        """
        did = "is with a party" if self.design == "pool" else "took part"
        found = [(f"guess whether a given person {did}", "50.00 %", percent(self.membership_success))]
        for fpr in (0.01, 0.001):
            what = f"recognise people, accusing {100 * fpr:g} % of others"
            found.append((what, percent(fpr), percent(self.true_positive_rate(fpr))))
        if self.design == "bits":
            found.append(
                ("tell whether a person is with a party at all", "50.00 %", percent(self.pool_membership_success))
            )
        found.append(("tell which of two people it is", "50.00 %", percent(self.replaced_success)))
        return found

    def to_json(self) -> str:
        """The whole record, in a stable order.

        Returns:
            JSON text.
        """
        return json.dumps(asdict(self), indent=1, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> PartiesCertificate:
        """A certificate from its JSON; anything missing or unknown raises.

        Args:
            text: what `to_json` gave.

        Returns:
            The certificate.

        Raises:
            InputError: the text is no such certificate.
        """
        given = entries(cls, text, "certificate of parties")
        try:
            for name in ("known", "assumptions", "not_promised", "theorems"):
                given[name] = tuple(given[name])
        except TypeError:
            raise InputError("this JSON text is no certificate of parties: a list in it has another form") from None
        found = cls(**given)
        if not _is_plausible(found):
            raise InputError("this JSON text is no certificate of parties: an entry is out of range")
        return found

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def _lines(cert: PartiesCertificate) -> Iterator[str]:
    yield f"Certificate of an answer of {cert.parties:,} parties, none of whom showed its rows ({cert.design})"
    yield ""
    yield from section("The game", GAMES[cert.design])
    yield from section("The attacker", cert.attacker)
    yield from heading(table_row("What the attacker can do", "before", "after, at most"))
    for what, before, after in cert.attempts():
        yield table_row(f"  {what}", before, after)
    kept = "kept" if cert.membership_success <= cert.cap else "NOT KEPT"
    yield f"  Cap {kept}: at most {percent(cert.cap)}"
    yield ""
    yield from section("The noise", cert.noise)
    yield from listed("What is public, and what is not", cert.known)
    yield from listed("Not promised", cert.not_promised)
    yield from listed("Assumed", cert.assumptions)
    yield f"Proofs: {', '.join(cert.theorems)} (docs/proofs). leakcap {cert.leakcap_version}."[:WIDTH]


def _is_plausible(cert: PartiesCertificate) -> bool:
    lists = cert.known, cert.assumptions, cert.not_promised, cert.theorems
    figures = cert.membership_success, cert.pool_membership_success, cert.replaced_success
    return (
        cert.kind in KINDS
        and cert.design in DESIGNS
        and is_number(0, 1, *figures, cert.cap, cert.sampler_distance)
        and is_number(0, math.inf, cert.distance)
        and is_whole(cert.parties, cert.threshold, cert.outputs, cert.coins)
        and 2 * cert.threshold < cert.parties
        and is_words(cert.question, cert.noise, cert.leakcap_version, *(text for one in lists for text in one))
    )
