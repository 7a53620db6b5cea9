"""The certificate of a session: what all its answers together allow, those that are still to come included."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import groupby

from scipy.special import ndtr, ndtri

from leakcap.certificates.display import Displayed
from leakcap.certificates.facts import CappedFigure
from leakcap.certificates.text import WIDTH, heading, listed, percent, section
from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.json_record import entries, is_number, is_whole, is_words
from leakcap.ground.proofs import proves

__all__ = ["ATTACKERS", "GAMES", "SessionCertificate", "reading", "spoken", "told_together"]

KINDS = ("session", "simulation")
DESIGNS = ("bits", "pool", "worlds", "cohorts")
LISTED = ("worlds", "cohorts")  # one of a list of halves is the secret
GAMES = {
    "bits": (
        "A fair coin was tossed for everybody in the pool, once and for all, and whoever it picked takes part in every "
        "answer. The attacker is asked whether a person, named before the first question, takes part."
    ),
    "worlds": (
        "One of a list of halves of the pool was picked, once and for all, and takes part in every answer. The "
        "attacker is asked whether a person, named before the first question, takes part."
    ),
    "cohorts": (
        "Everybody in the pool was dealt into a cohort. One of a list of halves of the cohorts was picked, once and "
        "for all, and its people take part in every answer. The attacker is asked whether a person, named before the "
        "first question, takes part."
    ),
    "pool": (
        "Everybody in the pool takes part. The attacker is asked whether a person, named before the first question, is "
        "in the pool at all; before, that is as likely as not."
    ),
}
ATTACKERS = {
    "bits": (
        "Chooses every question after seeing all answers so far. Knows the pool, how noise is made, and of everybody "
        "else whether they take part. Does not know the person's own coin, nor the noise."
    ),
    "worlds": (
        "Chooses every question after seeing all answers so far. Knows the pool, the list of halves, and what would be "
        "answered in each. Does not know which of them takes part, nor anybody who does, nor the noise."
    ),
    "cohorts": (
        "Chooses every question after seeing all answers so far. Knows the pool, who is in which cohort, the list of "
        "halves, and what would be answered in each. Does not know which of them takes part, nor anybody who does, nor "
        "the noise."
    ),
    "pool": (
        "Chooses every question after seeing all answers so far. Knows everybody else's data, the person's own data, "
        "and how noise is made. Does not know whether the person is in the pool, nor the noise."
    ),
}
MAX_LISTED = 20  # questions on the page; all of them are in the record
MAX_COLUMNS = 6  # that are named
RATES = (0.01, 0.001)


@dataclass(frozen=True)
class SessionCertificate(Displayed):
    """What the best attacker can learn from all answers of a session. `str(certificate)` says it in plain words.

    Attributes:
        kind: "session", or "simulation" where a seed was given.
        design: "bits", a coin for everybody; "pool", everybody takes part; "worlds", one of a list of halves;
            "cohorts", one of a list of halves of cohorts, the people of which share a bit.
        capped: every cap with the figure that all answers together are held to.
        membership_success: success at guessing about one person, after any number of answers.
        square: squared distance, in deviations of noise, that everybody's clock allows in all; for a list of worlds,
            of a clock as the account was opened.
        sampler_distance: bound on the distance between the noise of all answers and the law that is certified.
        answered: number of answers so far; from a list of worlds each number of an answer is one.
        questions: the questions so far, each with what it takes of the clock of whoever pays the most.
        pool_membership_success: success at guessing whether a person is in the pool at all; None where nothing is said.
        worlds: how many halves were listed, for those designs.
        cohorts: how many cohorts there are, for that design.
        in_cohort: people in a cohort, on average.
        in_largest: people in the largest cohort.
        always: whether the figures hold for every single course of answers, and for people named afterwards.
        surest: pairs of a number of people, and how sure an attacker is on average of the one whom the answers happen
            to give away most.
        groups: groups of analysts that have clocks of their own.
        groups_success: success where all groups put together what they know.
        alone: whether the session has no ledger: what else is released of these data is not counted.
        pool_public: what was made by looking at the whole pool.
        assumptions: what must be true for the certificate to hold.
        not_promised: what it does not bound.
        theorems: names of the proof pages it rests on.
        leakcap_version: version that made it.
    """

    kind: str
    design: str
    capped: tuple[CappedFigure, ...]
    membership_success: float
    square: float
    sampler_distance: float
    answered: int
    questions: tuple[tuple[str, float], ...]
    surest: tuple[tuple[int, float], ...]
    groups: int
    groups_success: float
    alone: bool
    pool_public: tuple[str, ...]
    assumptions: tuple[str, ...]
    not_promised: tuple[str, ...]
    theorems: tuple[str, ...]
    leakcap_version: str
    pool_membership_success: float | None = None
    worlds: int | None = None
    always: bool = False
    cohorts: int | None = None
    in_cohort: float | None = None
    in_largest: int | None = None

    @property
    def is_guarantee(self) -> bool:
        """Whether it is a promise about real answers."""
        return self.kind == "session"

    @property
    @proves("side-information")
    def whoever_is_known(self) -> bool:
        """Whether it holds whoever else is known."""
        return self.design not in LISTED

    @proves("side-information")
    def given(self, known: int) -> float:
        """Success of an attacker who knows of so many other people whether they take part.

        Args:
            known: how many.

        Returns:
            The certified bound; 1 where nothing is certified, as with a list of worlds and a single known person: a
            question about both of them may tell nothing about either alone, and everything together.
        """
        k = checks.count(at_least=0, known=known)
        return self.membership_success if k == 0 or self.whoever_is_known else 1.0

    @proves("linear-sessions", "every-transcript")
    def true_positive_rate(self, fpr: float) -> float:
        """Share of participants recognised, at most, at a rate of false alarms.

        Args:
            fpr: share of the others who are accused, above 0 and below 1.

        Returns:
            The largest rate at which participants are recognised, after any number of answers.
        """
        checks.fraction(fpr=fpr)
        if self.always:  # no course of answers is more than so many times likelier with the person than without
            return min(1.0, fpr * self.membership_success / (1 - self.membership_success), fpr + self._gained)
        if self.design in LISTED:
            # Certainty may be reached: what is capped is the mean of both rates.
            return min(1.0, fpr + self._gained)
        least = ndtri(min(1.0, fpr + self.sampler_distance))
        return min(1.0, float(ndtr(least + math.sqrt(self.square))) * (1 + 1e-9) + self.sampler_distance)

    @property
    def _gained(self) -> float:
        """By how much participants are recognised more often than others are accused, at most."""
        return 2 * self.membership_success - 1

    def to_json(self) -> str:
        """The whole record, in a stable order.

        Returns:
            JSON text.
        """
        given = {name: value for name, value in asdict(self).items() if value is not None}
        return json.dumps(given, indent=1, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> SessionCertificate:
        """A certificate from its JSON; anything missing or unknown raises.

        Args:
            text: what `to_json` gave.

        Returns:
            The certificate.

        Raises:
            InputError: the text is not the certificate of a session.
        """
        given = entries(cls, text, "certificate of a session")
        try:
            given["capped"] = tuple(CappedFigure(**one) for one in given["capped"])
            for name in ("questions", "surest"):
                given[name] = tuple((first, second) for first, second in given[name])
            for name in ("pool_public", "assumptions", "not_promised", "theorems"):
                given[name] = tuple(given[name])
        except (TypeError, ValueError):
            raise InputError("this JSON text is no certificate of a session: a list in it has another form") from None
        found = cls(**given)
        if not _is_plausible(found):
            raise InputError("this JSON text is no certificate of a session: an entry is out of range")
        return found

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def _lines(cert: SessionCertificate) -> Iterator[str]:
    yield f"Certificate of a session ({cert.kind})"
    yield ""
    if not cert.is_guarantee:
        yield from section("A simulation", "A seed was given: whoever knows it undoes the noise. It is no release.")
    yield from section("The game", GAMES[cert.design])
    yield from section("The attacker", ATTACKERS[cert.design])
    yield from heading(_row("What the attacker can do, after any number of answers", "before", "after, at most"))
    for one in cert.capped:
        yield _row(f"  {one.meaning.split(':')[0]}", percent(one.before), percent(one.certified))
    for rate in RATES:
        what = f"  recognise participants, with {100 * rate:g} % false alarms"
        yield _row(what, percent(rate), percent(cert.true_positive_rate(rate)))
    if cert.pool_membership_success is not None and cert.design == "bits":
        yield _row("  tell whether somebody is in the pool at all", "50.00 %", percent(cert.pool_membership_success))
    yield ""
    yield from listed("How to read it", reading(cert))
    yield from _asked(cert)
    yield from listed("Known about the whole pool", cert.pool_public or ("Nothing.",))
    yield from listed("Not promised", cert.not_promised)
    yield from listed("Assumed", cert.assumptions)
    yield f"Proofs: {', '.join(cert.theorems)}. leakcap {cert.leakcap_version}"


def reading(cert: SessionCertificate) -> tuple[str, ...]:
    """What a reader should know of the figures."""
    if cert.design in LISTED:
        return _reading_of_worlds(cert)
    surest = "; ".join(f"of {people:,}, {percent(sure, 0)}" for people, sure in cert.surest)
    found = [
        "It is an average over all answers that might have come, for a person named before: some answers tell more.",
        "Of a person picked afterwards, because the answers point there, an attacker may be surer. Reached, on "
        f"average, for the surest {surest}.",
    ]
    if cert.pool_membership_success is not None and cert.design == "bits":
        found.append(
            "The line about being in the pool is about answers within declared bounds, as all were so far: a question "
            "without bounds is not covered by it."
        )
    if cert.groups > 1:
        found.append(
            f"{cert.groups} groups of analysts have clocks of their own. If all of them put together what they know, "
            f"it is at most {percent(cert.groups_success)}."
        )
    if cert.alone:
        found.append("It stands alone: without a ledger, other releases of these data are not counted.")
    return tuple(found)


def _reading_of_worlds(cert: SessionCertificate) -> tuple[str, ...]:
    assert cert.worlds is not None
    found = [
        f"It ends where the attacker learns from elsewhere who takes part: {percent(cert.given(1), 0)} given a single "
        f"person who is known. Before any answer about {math.log2(cert.worlds):.3g} people who are known leave one of "
        f"{cert.worlds:,} halves (log2 m).",
        f"Answers carry at most {math.log(cert.worlds):.3g} nats about the half: many answers belong on a session with "
        "a coin for everybody.",
    ]
    if cert.cohorts is not None:
        found.insert(
            0,
            f"People of a cohort share a bit: there are {cert.cohorts:,} cohorts, with {cert.in_cohort:,.4g} people "
            f"each on average and {cert.in_largest:,} at most. Whoever learns of one of them whether they take part, "
            "from anywhere, has learnt it of their mates: for these the promise ends.",
        )
    if cert.always:
        found.append("It holds for every single course of answers, and for a person named afterwards.")
    else:
        found.append(
            "It is an average over all answers that might have come, for a person named before: on some courses the "
            f"attacker is certain, with probability {percent(2 * cert.membership_success - 1)} at most."
        )
    if cert.alone:
        found.append("It stands alone: without a ledger, other releases of these data are not counted.")
    return tuple(found)


def _asked(cert: SessionCertificate) -> Iterator[str]:
    told = told_together(cert.questions)
    shown = [
        words if cert.always else f"{words}: {100 * share:.3g} % of the clock" for words, share in told[-MAX_LISTED:]
    ]
    if len(told) > len(shown):
        shown.insert(0, f"{len(told) - len(shown):,} earlier questions.")
    yield from listed(f"Answered so far: {cert.answered:,}", tuple(shown) or ("Nothing.",))


def told_together(questions: Iterable[tuple[str, float]]) -> list[tuple[str, float]]:
    """Questions as people say them, the steps of a fit and the numbers of a vector as one, and what they take."""
    found = []
    for words, group in groupby(questions, key=lambda one: spoken(one[0])):
        shares = [share for _, share in group]
        found.append((words if len(shares) == 1 else f"{words}, {len(shares):,} answers", sum(shares)))
    return found


def spoken(question: str) -> str:
    """A question as people say it; what is not one of ours stays as it is."""
    try:
        told = json.loads(question)
        kind = told.pop("kind")
    except (ValueError, TypeError, KeyError, AttributeError):
        return question
    columns = told.pop("columns", None)
    parts = [str(told.pop("estimator", kind)) if kind == "fit" else kind]
    if columns:
        named = [columns] if isinstance(columns, str) else columns
        parts.append(f"of {', '.join(named)}" if len(named) <= MAX_COLUMNS else f"of {len(named)} columns")
    if "target" in told:
        parts.append(f"for {told.pop('target')}")
    if "where" in told:
        parts.append(f"where {told.pop('where')}")
    if isinstance(told.get("by"), dict):
        parts.append(f"by {', '.join(told.pop('by'))}")
    for name in ("settings", "edges", "grid", "bounds", "norm", "fn", "step", "share"):
        told.pop(name, None)
    rest = ", ".join(f"{name} {value}" for name, value in told.items())
    return " ".join(parts) + (f" ({rest})" if rest else "")


def _row(what: str, before: str, after: str) -> str:
    return f"{what:<{WIDTH - 28}}{before:>12}{after:>16}"


def _is_plausible(cert: SessionCertificate) -> bool:
    lists = cert.pool_public, cert.assumptions, cert.not_promised, cert.theorems
    pool = cert.pool_membership_success
    return (
        cert.kind in KINDS
        and cert.design in DESIGNS
        and is_number(
            0,
            1,
            cert.membership_success,
            cert.groups_success,
            cert.sampler_distance,
            *(sure for _, sure in cert.surest),
        )
        and (pool is None or is_number(0, 1, pool))
        and is_number(0, math.inf, cert.square)
        and is_whole(cert.answered, cert.groups, *(people for people, _ in cert.surest))
        and all(is_words(question) and is_number(0, math.inf, share) for question, share in cert.questions)
        and isinstance(cert.alone, bool)
        and isinstance(cert.always, bool)
        and (cert.worlds is None) == (cert.design not in LISTED)
        and (cert.worlds is None or is_whole(cert.worlds))
        and all((one is None) == (cert.design != "cohorts") for one in (cert.cohorts, cert.in_cohort, cert.in_largest))
        and (
            cert.cohorts is None or (is_whole(cert.cohorts, cert.in_largest) and is_number(0, math.inf, cert.in_cohort))
        )
        and is_words(cert.leakcap_version, *(text for one in lists for text in one))
        and all(is_words(one.cap, one.meaning) and is_number(0, math.inf, one.before, one.limit) for one in cert.capped)
        and all(is_number(0, math.inf, one.certified) for one in cert.capped)
    )
