"""The drawing of an encoded set and of its key: the one place where the sample and its mixing exist."""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np

from leakcap.certificates.obfuscation import ObfuscationCertificate, UnclaimedEncoding, not_promised
from leakcap.ground.arrays import Floats
from leakcap.noise.entropy import Randomness
from leakcap.obfuscation.certified import EncodingNoise
from leakcap.obfuscation.key import Key
from leakcap.obfuscation.learnable import PublicRows, PublicShare
from leakcap.obfuscation.masking import masked, masks, on_grid
from leakcap.obfuscation.mixing import mixed_rows, pair_labels, pairs, sampled_rows
from leakcap.obfuscation.pools import EncodablePool
from leakcap.version import __version__

__all__ = ["certificate_of", "draw_encoded", "facts_of"]

BARE = "No noise was added: whoever knows some of the rows can find the mask, and with it all of them."
BY_HAND = (
    "The noise was chosen by hand, and nothing was certified about it: none was asked for, or there is too little."
)


def draw_encoded(
    pool: EncodablePool,
    randomness: Randomness,
    *,
    noise: float,
    share: PublicShare | None,
    public: PublicRows | None,
    seed: int | None,
) -> tuple[tuple[Floats, Floats], Key]:
    """The encoded set, and the key. The sample and its mixing end with this function."""
    design, bits = pool.design, randomness.bits()
    halves = pairs(design)
    sample = sampled_rows(pool.codes, design, randomness)
    mixed = mixed_rows(pool.rows, sample, halves, mix=design.mix, randomness=randomness)
    mask = masks(pool.columns, design, randomness)
    values, labels, voters = masked(mixed, pool.columns, mask), pair_labels(*halves, design.classes), None
    names = np.asarray(bits.permutation(design.classes))
    labels = labels[:, names]
    if share is not None and public is not None:
        second = masks(pool.columns, design, randomness)
        values += masked(share.mixed, pool.columns, second)
        labels = np.concatenate([labels, share.labels], axis=1)
        voters = masked(public.voters(randomness), pool.columns, second)
    order = np.asarray(bits.permutation(design.rows_released))
    released = on_grid(values, noise, randomness)[order], labels[order]
    key = Key(
        secrets.token_hex(16) if seed is None else f"simulation {seed}",
        pool.names,
        pool.rule,
        columns=pool.columns,
        mask=mask,
        order=np.argsort(names),
        voters=voters,
    )
    return released, key


def facts_of(
    pool: EncodablePool,
    key: Key,
    *,
    noise: float,
    public_rows: int,
    queries_leave: bool,
    counted: bool,
    pool_public: tuple[str, ...],
) -> dict[str, Any]:
    """What a certificate tells of how a set was encoded: the same whatever was sampled."""
    design = pool.design
    return {
        "id": key.id,
        "classes": design.classes,
        "columns": design.columns,
        "rows_sampled": design.rows_sampled,
        "rows_released": design.rows_released,
        "mix": design.mix,
        "mask_dim": design.mask_dim,
        "blocks": design.blocks,
        "noise": noise,
        "rows_are": pool.rule.words(),
        "public_rows": public_rows,
        "queries_leave": queries_leave,
        "counted": counted,
        "pool_public": (
            f"It has {design.classes:,} classes, of more than {design.sampled_per_class:,} rows each.",
            *pool_public,
        ),
        "not_promised": not_promised(queries_leave),
        "leakcap_version": __version__,
    }


def certificate_of(
    certified: EncodingNoise | None, facts: dict[str, Any], confidence: float, simulated: bool
) -> ObfuscationCertificate | UnclaimedEncoding:
    """What is claimed: the certified figures, or by type nothing."""
    if certified is None:
        why = BARE if facts["noise"] == 0 else BY_HAND
        return UnclaimedEncoding(kind="simulation" if simulated else "no_claim", why=why, **facts)
    return ObfuscationCertificate(
        kind="simulation" if simulated else "obfuscation",
        membership_success=certified.success,
        mean_success=certified.mean_success,
        true_positives=certified.true_positives,
        confidence=confidence,
        theorems=certified.theorems,
        draws=certified.draws,
        again=certified.again,
        attempts=certified.attempts,
        claims=certified.claims,
        **facts,
    )
