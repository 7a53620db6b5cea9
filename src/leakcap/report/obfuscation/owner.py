"""The owner's page of an encoding: rows before and after, and what the attacker gets, in plain words.

Custodian side, because rows of the pool are on it. It knows neither which rows were drawn nor the key: whoever finds it
learns some rows of the pool, and nothing of the mask.
"""

from __future__ import annotations

import math
from typing import Any

from leakcap.certificates.obfuscation import CHOSEN_PLAINTEXTS, EncodingFacts, ObfuscationCertificate
from leakcap.report.html import render, shortened
from leakcap.report.numbers import of_hundred, unbroken
from leakcap.report.obfuscation.page import first_facts
from leakcap.report.obfuscation.rows_shown import CELLS, EncodedRows, PoolRows

__all__ = ["attacker_gets", "owner_page"]

BEFORE = "The first rows of some classes, as they stand in your data. Whether they were drawn is written down nowhere."
AFTER = (
    "The first of {:,} rows. None of them is a row of yours, and none belongs to one above: each is a mean of {:,} "
    "rows of two classes, multiplied by a secret mask, {}, in a random order. Classes have numbers that only your key "
    "turns back into names."
)
PLAINTEXTS = CHOSEN_PLAINTEXTS.partition(": ")[2]


def owner_page(certificate: EncodingFacts, pool: PoolRows, encoded: EncodedRows, title: str = "") -> str:
    """A whole HTML document for the owner alone."""
    noise = f"noised ({certificate.noise:.3g} in every cell)" if certificate.noise else "not noised"
    facts = first_facts(certificate, title or "Before and after", "") | {"kicker": "leakcap: before and after"}
    return render(
        "obfuscation/owner.html",
        **facts,
        **_tables(certificate, pool, encoded),
        cert=certificate,
        pool=pool,
        encoded=encoded,
        before_note=BEFORE,
        after_note=AFTER.format(certificate.rows_released, 2 * certificate.mix, noise),
        gets_title="In plain words" if isinstance(certificate, ObfuscationCertificate) else "Nothing is claimed",
        gets=attacker_gets(certificate),
        chosen=PLAINTEXTS[:1].upper() + PLAINTEXTS[1:],
    )


def attacker_gets(cert: EncodingFacts) -> list[str]:
    """What the best attacker can do with the encoded set, beside whoever guesses without it; bounds are rounded up."""
    if not isinstance(cert, ObfuscationCertificate):
        return [
            "Of 100 guesses, half of them about rows that were drawn, a coin gets 50 right. How many they get right "
            "who have the encoded set was not certified: it may be all of them.",
            "For a promise give --cap membership=0.60, or noise with more than 0 draws, the next time.",
        ]
    told = [
        f"Of 100 guesses, half of them about rows that were drawn, a coin gets 50 right. The best attacker gets at "
        f"most {of_hundred(cert.membership_success)} right, whichever row it is asked about, and at most "
        f"{of_hundred(cert.mean_success)} on average over the rows."
    ]
    for alarms, hits in cert.true_positives:
        told.append(
            f"Allowed {100 * alarms:g} % false alarms, it recognises at most {_of_thousand(hits):,} of 1,000 rows that "
            f"were drawn. Blind guesses recognise {1000 * alarms:g}."
        )
    if cert.claims is not None:
        often, blind, right = cert.claims
        told.append(
            f"If it says “this row was drawn” {100 * often:g} % of times, at most {of_hundred(right)} of 100 such "
            f"claims are right. Of blind claims {math.floor(100 * blind + 1e-9)} are."
        )
    return [unbroken(words) for words in told]


def _of_thousand(share: float) -> int:
    return min(1000, math.ceil(1000 * share - 1e-9))


def _tables(cert: EncodingFacts, pool: PoolRows, encoded: EncodedRows) -> dict[str, Any]:
    rows = zip(pool.classes, pool.cells, strict=True)
    return {
        "pool_heads": ("class", *map(shortened, pool.heads[:CELLS])),
        "pool_rows": [(name, *cells[:CELLS]) for name, cells in rows],
        "pool_more": _more(len(pool.heads)),
        "encoded_heads": ("shares of classes", *(f"z{place}" for place in range(1, 1 + min(CELLS, cert.mask_dim)))),
        "encoded_rows": [(words, *cells) for words, cells in zip(encoded.shares, encoded.cells, strict=True)],
        "encoded_more": _more(cert.mask_dim),
    }


def _more(columns: int) -> str:
    return f"{columns - CELLS:,} more columns are not shown." if columns > CELLS else ""
