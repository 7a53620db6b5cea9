"""The certificate: what is promised, to whom, on which assumptions. A frozen record of public facts only.

It is complete before the secret world is drawn, so it cannot depend on it. Whoever reads it learns pool-level
facts (which it lists), never the noise, the masks or any one person's exposure.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict, dataclass
from functools import partial

from leakcap.certificates.display import Displayed
from leakcap.certificates.facts import CappedFigure, ReleaseFacts
from leakcap.certificates.ids import is_drawn_id
from leakcap.certificates.text import in_a_line, page
from leakcap.errors import InputError
from leakcap.ground.json_record import entries, is_number, is_whole, is_words

__all__ = ["KINDS", "CappedFigure", "Certificate"]

KINDS = ("exact", "confidence", "closed_form", "pool", "label_dp", "session", "empirical", "simulation")

SEED_DRAWS = 5  # figures that a certificate with a secret seed states of its draws


@dataclass(frozen=True, repr=False)
class Certificate(ReleaseFacts, Displayed):
    """What the best possible attacker can do with a release. `str(certificate)` says it in plain words.

    Attributes:
        kind: "exact", "confidence", "closed_form", "empirical" or "simulation", among others: which promise it is.
        mode: the mode of the plan.
        capped: every cap with its certified figure.
        membership_success: certified success at guessing whether the most exposed person took part.
        mutual_information: certified information about the secret world, in nats.
        leakage_curve: pairs of a prior success and the certified success with the release.
        hockey_sticks: pairs of a cut and the certified excess over it; `true_positive_rate` follows from them.
        known_memberships: pairs of a number of known memberships and the certified membership success given them.
        name_a_member_success: certified success at naming any one participant.
        worlds: number of possible worlds.
        units: number of units in the pool.
        rate: share of the pool in a world, as a fraction in text such as "1/2".
        design: how the worlds were drawn.
        outputs: number of released numbers.
        noised_directions: number of output directions that got noise.
        confidence: probability that all certified figures hold together, over the certifying draws.
        gamma: probability of error that was allowed in all.
        gamma_used: the part of `gamma` that the certified attempt used.
        gamma_again: the part of `gamma_used` for the few units that got more draws than everybody; the rest is for
            what is said of all. None in certificates that do not state it.
        attempt: number of the calibration that was certified.
        bounds: number of statements that hold together.
        draws: pairs of a figure's name and the number of draws it was certified with.
        integrated: whether figures come from an integral instead of draws.
        price_of_confidence: how much more noise the margin for unseen worlds costs (confidence mode).
        sampler_distance: bound on the distance between the noise that is drawn and the law that is certified.
        grid_step: step of the grid on which outputs leave, relative to the noise.
        pool_public: what was made by looking at the whole pool.
        declared_public: what the custodian declared public.
        assumptions: what must be true for the certificate to hold.
        not_promised: what it does not bound.
        theorems: names of the proof pages it rests on.
        leakcap_version: version that made it.
        noise: in words, which noise was taken and why; None where no other than Gaussian noise was asked for.
        log_det: bound on the information by the answers' covariance alone (with secret seeds, by their mean distance),
            in nats, without the sampler's part; it adds up over releases of one secret. None where there is none.
        signal: sum of the answers' variances over those of the noise; adds up likewise. None where there is none.
        secret_id: a random number in hexadecimal digits, drawn with the plan: releases of one secret have the same.
            None in simulations, for answers from the coins of a ledger's account, which share them, and in certificates
            from before it was stated.
        data_id: likewise for the data set as it was simulated. It says nothing about the data.
        name_the_input_success: of given inputs, certified success at naming the one that was used; None otherwise.
        likeliest_input: of given inputs, the chance of the likeliest one; None otherwise.
        entropy_of_the_prior: of given inputs, the information about which one was used that there is, in nats.
    """

    def to_json(self) -> str:
        """The whole record, in a stable order.

        Returns:
            JSON text.
        """
        given = {name: value for name, value in asdict(self).items() if value is not None}
        return json.dumps(given, indent=1, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """A certificate from its JSON; anything missing or unknown raises.

        Args:
            text: what `to_json` gave.

        Returns:
            The certificate.

        Raises:
            InputError: the text is not a certificate, or an entry is out of range.
        """
        given = entries(cls, text, "leakcap certificate")
        if given["kind"] not in KINDS or given["kind"] == "label_dp":  # those are LabelCertificates
            raise InputError("unknown kind of certificate")
        try:
            given["capped"] = tuple(CappedFigure(**one) for one in given["capped"])
            for name in ("leakage_curve", "hockey_sticks", "known_memberships", "draws"):
                given[name] = tuple((first, second) for first, second in given[name])
            for name in ("pool_public", "declared_public", "assumptions", "not_promised", "theorems"):
                given[name] = tuple(given[name])
        except (TypeError, ValueError):
            raise InputError("this JSON text is no leakcap certificate: a list in it has another form") from None
        found = cls(**given)
        if not _is_plausible(found):
            raise InputError("this JSON text is no leakcap certificate: an entry is not of its kind, or out of range")
        return found

    def __str__(self) -> str:
        return page(self)

    def __repr__(self) -> str:
        return (
            f"Certificate(kind={self.kind!r}, mode={self.mode!r}, design={self.design!r}, outputs={self.outputs})\n"
            f"  {in_a_line(self)}\n"
            "  print(certificate) says what holds, against whom, and what is not promised; .to_html() as a page"
        )


def _is_plausible(cert: Certificate) -> bool:
    """Whether every entry is of its kind and in its range. It says nothing about who wrote the text."""
    whole, words = is_whole, partial(is_words, least=2)
    lists = cert.pool_public, cert.declared_public, cert.assumptions, cert.not_promised, cert.theorems
    figures = cert.membership_success, cert.name_a_member_success, cert.confidence, cert.gamma, cert.gamma_used
    return (
        is_number(0, 1, *figures, cert.sampler_distance, cert.grid_step)
        and (cert.gamma_again is None or is_number(0, cert.gamma_used, cert.gamma_again))
        and (cert.noise is None or words(cert.noise))
        and all(one is None or is_number(0, 1, one) for one in (cert.name_the_input_success, cert.likeliest_input))
        and (cert.entropy_of_the_prior is None or is_number(0, math.inf, cert.entropy_of_the_prior))
        and (not cert.of_seeds or len(cert.draws) == SEED_DRAWS)
        and cert.of_inputs == (cert.name_the_input_success is not None and cert.likeliest_input is not None)
        and is_number(0, math.inf, cert.mutual_information, cert.price_of_confidence)
        and all(figure is None or is_number(0, math.inf, figure) for figure in (cert.log_det, cert.signal))
        and all(drawn is None or is_drawn_id(drawn) for drawn in (cert.secret_id, cert.data_id))
        and all(is_number(0, 1, *pair) for pair in (*cert.leakage_curve, *cert.hockey_sticks))
        and all(whole(k) and is_number(0, 1, success) for k, success in cert.known_memberships)
        and all(words(name) and whole(count) for name, count in cert.draws)
        and whole(cert.worlds, cert.units, cert.outputs)
        and whole(cert.noised_directions, cert.attempt, cert.bounds)
        and isinstance(cert.integrated, bool)
        and words(cert.mode, cert.design, cert.leakcap_version, *(text for one in lists for text in one))
        and isinstance(cert.rate, str)
        and re.fullmatch(r"[1-9]\d*/[1-9]\d*", cert.rate) is not None
        and all(words(one.cap, one.meaning) and is_number(0, math.inf, one.before, one.limit) for one in cert.capped)
        and all(is_number(0, math.inf, one.certified) for one in cert.capped)
    )
