"""The certificate of privatised labels: what is promised about one label, whatever else the attacker knows."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from leakcap.certificates.display import Displayed
from leakcap.certificates.text import WIDTH, heading, listed, percent, rounded_up, section
from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.json_record import entries, is_number, is_words
from leakcap.ground.proofs import proves

__all__ = [
    "ASSUMPTIONS",
    "BY_ROWS",
    "SUMS",
    "SUMS_ASSUMPTIONS",
    "SUMS_THEN_RESPONSES",
    "SUMS_THEN_RESPONSES_ASSUMPTIONS",
    "SUMS_THEN_VOTES",
    "VOTES",
    "VOTES_ASSUMPTIONS",
    "LabelCertificate",
]

SUMS = "noised class sums"  # the mechanism of label-private statistics
VOTES = "noised votes of teachers"  # that of PATE
SUMS_THEN_VOTES = "class sums and votes of teachers, both noised"  # that of PATE with a prior
SUMS_THEN_RESPONSES = "noised sums by class, then "  # and then what privatised each label

GAME = (
    "Features are known to everybody; each label was replaced by what was observed of it, drawn by chances that depend "
    "on that label alone. The attacker is asked for the label."
)
SUMS_GAME = (
    "Features are known to everybody. Their rows, shortened to one public length, were summed by class, and normal "
    "noise was added to the sums, once; nothing else was taken from the labels. The attacker is asked for one label."
)
ATTACKER = (
    "May know all features, every other label, how the observations were drawn, and everything computed from them, "
    "models included. Does not know the label asked for. Has unlimited computing power and uses the best method."
)
SUMS_ATTACKER = (
    "May know all features, every other label, how the noise was drawn, the noised sums, and everything computed from "
    "them, models included. Does not know the label asked for. Has unlimited computing power and uses the best method."
)
VOTES_GAME = (
    "Features are known to everybody. Teachers learnt from the labels of one part of the rows each; how many of them "
    "name each class for some rows was noised, and the student learnt from the answers alone. The attacker is asked "
    "for one label."
)
VOTES_ATTACKER = (
    "May know all features, every other label, the parts, how votes were noised, the answers, and everything computed "
    "from them, the student included. Does not know the label asked for, nor the teachers. Has unlimited computing "
    "power and uses the best method."
)
SUMS_THEN_VOTES_ATTACKER = VOTES_ATTACKER.replace("the answers", "the noised sums, the answers")
SUMS_THEN_VOTES_GAME = (
    "Features are known to everybody. Their rows were summed by class, with normal noise. Teachers learnt from the "
    "labels of one part of the rows each and from the noised sums; how many of them name each class for some rows was "
    "noised, and the student learnt from the answers and the noised sums. The attacker is asked for one label."
)
SUMS_THEN_RESPONSES_GAME = (
    "Features are known to everybody. Their rows, shortened to one public length, were summed by class, with normal "
    "noise. Then each label was replaced by what was observed of it, drawn by chances that depend on that label and on "
    "the noised sums alone. The attacker is asked for one label."
)
SUMS_THEN_RESPONSES_ATTACKER = (
    "May know all features, every other label, how noise and observations were drawn, the noised sums, all "
    "observations, and everything computed from them, models included. Does not know the label asked for. Has "
    "unlimited computing power and uses the best method."
)
NOT_PROMISED = (
    "That a label cannot be guessed from the features: whoever could guess it without this release still can.",
    "Anything about the features, or about which rows there are: they leave as they are.",
    "A person with several labels, or whose label is privatised again: epsilon adds up, label by label.",
    "Labels that give each other away (the same person twice, members of a household): together they count as one.",
)
ASSUMPTIONS = (
    "The classes and the prior, if any, are public: they were not taken from these labels.",
    "The operating system's random numbers are unpredictable.",
    "Only the observations, and what is computed from them, leave. The labels themselves stay with the custodian.",
)
SUMS_ASSUMPTIONS = (
    "The classes are public, and so are features and settings: none of them was taken from these labels.",
    "The operating system's random numbers are unpredictable.",
    "Only the noised sums, and what is computed from them, leave. The labels themselves stay with the custodian.",
)
VOTES_ASSUMPTIONS = (
    "The classes are public, and so are features, parts and questions: none of them was taken from these labels.",
    "A teacher learns from the labels of its own part alone, and has no memory of other teachers.",
    "The operating system's random numbers are unpredictable.",
    "Only the answers, and what is computed from them, leave. Teachers, votes and labels stay with the custodian.",
)
SUMS_THEN_RESPONSES_ASSUMPTIONS = (
    "The classes are public, and so are features and settings: none of them was taken from these labels.",
    "A curator may hold all labels while they are summed: without one there are no sums to start from.",
    "The operating system's random numbers are unpredictable.",
    "Only the noised sums, the observations, and what is computed from both, leave. The labels themselves stay with "
    "the custodian.",
)
BY_ROWS = (
    "What is known beforehand differs from label to label. The success at naming one, and the prior, are of the label "
    "whose guessing gains most; for any other, read the line with its own chance beforehand."
)


@dataclass(frozen=True)
class LabelCertificate(Displayed):
    """What the best possible attacker can learn about one label. See `str(certificate)` for the plain words."""

    kind: str
    mechanism: str
    settings: tuple[tuple[str, float], ...]
    epsilon: float
    delta: float
    labels: int
    classes: tuple[str, ...]
    prior: tuple[float, ...]
    prior_is_even: bool
    prior_success: float
    guess_success: float
    mutual_information: float
    theorems: tuple[str, ...]
    leakcap_version: str
    confidence: float = 1.0
    assumptions: tuple[str, ...] = ASSUMPTIONS
    not_promised: tuple[str, ...] = NOT_PROMISED

    @property
    def is_guarantee(self) -> bool:
        return True

    @property
    def leaves(self) -> str:
        """What was taken from the labels: "observations" of each, "noised sums" by class, "answers" of teachers; or
        "noised sums and answers", "noised sums and observations".
        """
        return next((what for name, what in _LEAVES.items() if self.mechanism.startswith(name)), "observations")

    @property
    def loss(self) -> str:
        """Epsilon, and delta if there is one, in words; rounded up."""
        shown = f"epsilon = {_shown_up(self.epsilon)}"
        return shown + (f", delta = {_shown_up(self.delta)}" if self.delta else "")

    @proves("label-guessing")
    def posterior(self, prior: float) -> float:
        """Highest success at any question about one label whose best guess is right with this chance beforehand.

        Guarantee: `p e^eps / (1 - p + p e^eps) + delta`, for one label asked about in advance; without delta it holds
        for every single observation, not only on average.

        >>> import leakcap as lc
        >>> round(lc.labels.KRR(epsilon=1.0, n_classes=2).certificate(labels=100).posterior(0.5), 4)
        0.7311
        """
        p = checks.probability(prior=prior)
        if p in (0.0, 1.0):
            return p
        if self.epsilon > 700:
            return 1.0
        odds = p / (1 - p) * math.exp(self.epsilon)
        return min(1.0, max(p, odds / (1 + odds) * (1 + 2.0**-48) + self.delta)) if math.isfinite(odds) else 1.0

    def to_json(self) -> str:
        """The whole record, in a stable order."""
        return json.dumps(asdict(self), indent=1, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> LabelCertificate:
        """A certificate from its JSON; anything missing or unknown raises."""
        given = entries(cls, text, "certificate of labels")
        for name in ("settings", "classes", "prior", "theorems", "assumptions", "not_promised"):
            if not isinstance(given[name], list):
                raise InputError("this JSON text is no certificate of labels: a list in it has another form")
            given[name] = tuple(tuple(one) if isinstance(one, list) else one for one in given[name])
        found = cls(**given)
        if not _is_plausible(found):
            raise InputError("this JSON text is no certificate of labels: an entry is not of its kind, or out of range")
        return found

    def __str__(self) -> str:
        return "\n".join(_lines(self))


_LEAVES = {
    SUMS: "noised sums",
    VOTES: "answers",
    SUMS_THEN_VOTES: "noised sums and answers",
    SUMS_THEN_RESPONSES: "noised sums and observations",
}
_GAMES = {
    "observations": (GAME, ATTACKER),
    "noised sums": (SUMS_GAME, SUMS_ATTACKER),
    "answers": (VOTES_GAME, VOTES_ATTACKER),
    "noised sums and answers": (SUMS_THEN_VOTES_GAME, SUMS_THEN_VOTES_ATTACKER),
    "noised sums and observations": (SUMS_THEN_RESPONSES_GAME, SUMS_THEN_RESPONSES_ATTACKER),
}


def _lines(cert: LabelCertificate) -> Iterator[str]:
    yield "Certificate of private labels (label_dp)"
    yield ""
    game, attacker = _GAMES[cert.leaves]
    yield from section("The game", game)
    yield from section("The attacker", attacker)
    yield from heading(_row("What the attacker can do", "before", "after, at most"))
    what = "even classes" if cert.prior_is_even else "the stated prior"
    yield _row(f"  name one label ({what})", _floor(cert.prior_success), percent(cert.guess_success))
    for prior in (0.5, 0.9, 0.99):
        yield _row(f"  any question about it, {100 * prior:g} % before", _floor(prior), percent(cert.posterior(prior)))
    nats = rounded_up(cert.mutual_information, 4)
    yield _row("  information about one label, in nats", "0", f"{nats:.4f}")
    yield f"  Differential privacy of each label: {cert.loss}"
    yield ""
    yield from section("How the labels were privatised", _method(cert))
    yield from listed("Not promised", cert.not_promised)
    yield from listed("Assumed", cert.assumptions)
    proofs = f"Proofs: {', '.join(cert.theorems)} (docs/proofs). leakcap {cert.leakcap_version}."
    yield from textwrap.wrap(proofs, WIDTH)


def _method(cert: LabelCertificate) -> str:
    settings = "; ".join(f"{name.replace('_', ' ')} {value:.6g}" for name, value in cert.settings)
    how = f"{cert.mechanism} ({settings})" if settings else cert.mechanism
    return (
        f"{cert.labels:,} labels of {len(cert.classes):,} classes by {how}, with whole-number "
        "chances out of 2^64 drawn from the operating system. Nothing was sampled to certify it: it is certain."
    )


def _shown_up(figure: float) -> str:
    """Six digits, never below the figure."""
    shown = f"{figure:.6g}"
    return shown if float(shown) >= figure else f"{figure + 10.0 ** (math.floor(math.log10(figure)) - 5):.6g}"


def _row(what: str, before: str, after: str) -> str:
    return f"{what:<52}{before:>14}{after:>20}"


def _floor(share: float) -> str:
    return f"{math.floor(share * 1e4 + 1e-9) / 100:.2f} %"


def _is_plausible(cert: LabelCertificate) -> bool:
    """Whether every entry is of its kind and in its range. It says nothing about who wrote the text."""
    words = is_words
    return (
        cert.kind == "label_dp"
        and is_number(0, math.inf, cert.epsilon, cert.mutual_information)
        and is_number(0, 1, cert.delta, cert.prior_success, cert.guess_success, cert.confidence, *cert.prior)
        and type(cert.labels) is int
        and cert.labels >= 1
        and len(cert.prior) == len(cert.classes) >= 2
        and abs(math.fsum(cert.prior) - 1) < 1e-6
        and max(cert.prior) - 1e-9 <= cert.prior_success <= cert.guess_success
        and type(cert.prior_is_even) is bool
        and words(cert.mechanism, cert.leakcap_version, *cert.classes, *cert.theorems)
        and words(*cert.assumptions, *cert.not_promised)
        and all(
            isinstance(pair, tuple) and len(pair) == 2 and words(pair[0]) and is_number(-math.inf, math.inf, pair[1])
            for pair in cert.settings
        )
    )
