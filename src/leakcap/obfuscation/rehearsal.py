"""A rehearsal: what a server would likely learn from an encoding, by one that nobody sees.

Everything is drawn anew, from a source of its own, several times in a small pool; the accuracy of a linear model on
rows that were not drawn is an estimate for the owner and says nothing about the sample of the real encoding.
"""

from __future__ import annotations

import secrets
import warnings
from dataclasses import dataclass

import numpy as np

from leakcap.errors import UselessReleaseWarning
from leakcap.ground.arrays import Floats, Ints
from leakcap.ground.callers import frames_of_ours
from leakcap.noise.entropy import Randomness, Seeded
from leakcap.obfuscation.masking import masked, masks
from leakcap.obfuscation.mixing import mixed_rows, pair_labels, pairs, sampled_rows
from leakcap.obfuscation.pools import EncodablePool

__all__ = ["Rehearsal", "rehearsed", "warn_if_useless"]

ASKED = 4000  # rows of the pool that the models are asked about, at most
ENOUGH, MOST_TIMES = 2000, 8  # answers, and rehearsals for so many, at most
LEARNT = 5000  # rows that the un-encoded model learns from, at most
PENALTY = 1.0  # beside the mean eigenvalue
LITTLE = 0.5  # of what an un-encoded model learns, over chance


@dataclass(frozen=True)
class Rehearsal:
    """Mean accuracy over the classes: of a linear model from encoded rows, from the rows themselves, and by chance."""

    accuracy: float
    plain: float
    chance: float

    @property
    def teaches_nothing(self) -> bool:
        """Whether most of what could be learnt is lost."""
        return self.accuracy - self.chance < LITTLE * (self.plain - self.chance)

    def __str__(self) -> str:
        return (
            f"A server will likely learn little from this encoded set: about {100 * self.accuracy:.0f} % right by a "
            f"linear model, {100 * self.plain:.0f} % from the rows themselves, {100 * self.chance:.0f} % by chance."
        )


def rehearsed(pool: EncodablePool, noise: float, *, public: Floats | None = None, seed: int | None = None) -> Rehearsal:
    """Encode, learn and ask, for nobody: several times where few rows are left to be asked about, on average."""
    randomness = Seeded(secrets.randbits(63) if seed is None else seed)
    asked = _asked_at_most(pool)
    times = min(MOST_TIMES, max(1, ENOUGH // asked))
    found = [_once(pool, noise, public, randomness) for _ in range(times)]
    accuracy, plain = (float(np.mean([getattr(one, name) for one in found])) for name in ("accuracy", "plain"))
    return Rehearsal(accuracy, plain, 1 / pool.design.classes)


def warn_if_useless(pool: EncodablePool, noise: float, *, public: Floats | None, seed: int | None) -> None:
    """Before anything is spent or written: what a server will likely learn from so much noise, where it is little."""
    found = rehearsed(pool, noise, public=public, seed=seed)
    if found.teaches_nothing:
        warnings.warn(
            f"{found} Nothing was spent or written so far. Larger pools, larger caps, whiten= and suggest(X, y) leave "
            "more to learn",
            UselessReleaseWarning,
            stacklevel=1 + frames_of_ours(),
        )


def _asked_at_most(pool: EncodablePool) -> int:
    """How many rows one rehearsal asks about: public sizes of the classes tell."""
    left = np.bincount(pool.codes) - pool.design.sampled_per_class
    return int(pool.design.classes * min(int(left.min()), max(1, ASKED // pool.design.classes)))


def _once(pool: EncodablePool, noise: float, public: Floats | None, randomness: Randomness) -> Rehearsal:
    design, codes = pool.design, pool.codes
    sample = sampled_rows(codes, design, randomness)
    asked = _asked(codes, np.concatenate(sample), randomness)
    halves = pairs(design)
    mixed = mixed_rows(pool.rows, sample, halves, mix=design.mix, randomness=randomness)
    mask = masks(pool.columns, design, randomness)
    encoded, queries = masked(mixed, pool.columns, mask), masked(pool.rows[asked], pool.columns, mask)
    if public is not None:
        # A linear model hears of public rows through their mean alone.
        added = masked(public, pool.columns, masks(pool.columns, design, randomness))
        encoded, queries = encoded + added, queries + added.mean(axis=0)
    encoded += noise * randomness.normals(encoded.size).reshape(encoded.shape)
    found = _right(encoded, pair_labels(*halves, design.classes), queries, codes[asked])
    some = np.concatenate([one[: max(1, LEARNT // design.classes)] for one in sample])
    plain = _right(pool.rows[some], np.eye(design.classes)[codes[some]], pool.rows[asked], codes[asked])
    return Rehearsal(found, max(plain, found), 1 / design.classes)


def _asked(codes: Ints, sample: Ints, randomness: Randomness) -> Ints:
    """Some rows that were not drawn, as many of every class as there are of the rarest."""
    left = np.setdiff1d(np.arange(len(codes)), sample)
    left = np.asarray(randomness.bits().permutation(left))
    each = min(int(np.bincount(codes[left]).min()), max(1, ASKED // (int(codes.max()) + 1)))
    return np.concatenate([left[codes[left] == one][:each] for one in range(int(codes.max()) + 1)])


def _right(rows: Floats, shares: Floats, queries: Floats, codes: Ints) -> float:
    """By ridge regression of the shares: the server's simplest model."""
    centre, level = rows.mean(axis=0), shares.mean(axis=0)
    apart = rows - centre
    gram = apart.T @ apart
    gram[np.diag_indices_from(gram)] += PENALTY * max(float(np.trace(gram)) / len(gram), np.finfo(float).tiny)
    weights = np.linalg.solve(gram, apart.T @ (shares - level))
    return float(np.mean(((queries - centre) @ weights + level).argmax(axis=1) == codes))
