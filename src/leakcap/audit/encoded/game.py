"""The game about an encoded set: encodings for trial, drawn by the code that draws the one that leaves. Custodian side.

What a trial drew is learnt from its random choices, which are written down and played back. The attacker is given the
order of the rows and the names of the classes, which a release hides: that makes it stronger, never weaker.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from leakcap.certificates.obfuscation import ObfuscationCertificate, UnclaimedEncoding
from leakcap.errors import InputError, OutputError
from leakcap.ground.arrays import Bools, Floats, Ints
from leakcap.noise.entropy import OperatingSystem, Randomness, Seeded
from leakcap.obfuscation.certified import law_of
from leakcap.obfuscation.encoded import draw_encoded
from leakcap.obfuscation.encoder import Encoder
from leakcap.obfuscation.masking import masked
from leakcap.obfuscation.mixing import mean_weights, mixed_places, pairs, sampled_rows
from leakcap.obfuscation.pools import EncodablePool
from leakcap.obfuscation.rows import classes_of, numbers
from leakcap.obfuscation.sampled import MixingLaw

__all__ = ["EncodedGame", "EncodedTrial"]


@dataclass
class _Choices:
    """Choices that are written down as they are made, and given again in the same order when they are played back."""

    source: Any = None  # where they come from; None: those that were written down
    made: list[npt.NDArray[Any]] = field(default_factory=list)

    def integers(self, low: int, high: int, /, size: Any = 1, dtype: Any = np.int64) -> npt.NDArray[Any]:
        return self._next(lambda: self.source.integers(low, high, size=size, dtype=dtype))

    def permutation(self, x: Any, /) -> npt.NDArray[Any]:
        if self.source is None and not self.made:  # the encoding put nothing in order: it stays as it was
            return np.arange(x) if isinstance(x, int) else np.asarray(x)
        return self._next(lambda: np.asarray(self.source.permutation(x)))

    def _next(self, draw: Any) -> npt.NDArray[Any]:
        if self.source is None:
            return self.made.pop(0)
        self.made.append(draw())
        return self.made[-1]


class _WrittenDown:
    """Randomness whose choices are written down; its normals are not."""

    def __init__(self, source: Randomness) -> None:
        self._source = source
        self.choices = _Choices(source.bits())

    def below(self, n: int) -> int:
        return self._source.below(n)

    def normals(self, size: int) -> Floats:
        return self._source.normals(size)

    def bits(self) -> _Choices:
        return self.choices


class _PlayedBack(_WrittenDown):
    """The same choices once more."""

    def __init__(self, choices: list[npt.NDArray[Any]]) -> None:
        super().__init__(Seeded(0))
        self.choices = _Choices(made=list(choices))


@dataclass(frozen=True, eq=False)
class EncodedTrial:
    """One encoding for trial, and what it drew. Custodian side.

    Attributes:
        values: `(m, d)` released rows, in the order of the pairs of classes.
        labels: `(m, classes)` as they were released, in the order in which they were.
        weights: `(m, N)` by what every row of the pool counts in every mean.
        inside: `(N,)` who was drawn.
        rest: `(m, d)` what is left of `values` when the masked means are taken out: the noise.
        mask: of every block.
        order: `(m,)` which row stood at each place as they left.
    """

    values: Floats
    labels: Floats
    weights: csr_matrix
    inside: Bools
    rest: Floats
    mask: tuple[Floats, ...]
    order: Ints


@dataclass(frozen=True, eq=False)
class EncodedGame:
    """A pool, how it is encoded, and what was certified about that; None where nothing was.

    Attributes:
        pool: rows in the unit ball, their classes and the sizes.
        noise: standard deviation in every cell.
        certificate: of the encoding that is attacked.
    """

    pool: EncodablePool
    noise: float
    certificate: ObfuscationCertificate | UnclaimedEncoding

    @classmethod
    def of(cls, encoder: Encoder, X: Any, y: Any) -> EncodedGame:
        """Of an encoder that has encoded this pool."""
        if not isinstance(encoder, Encoder):
            raise InputError("give the leakcap.obfuscation.Encoder that encoded the pool, and the pool's X and y")
        key, design, certificate = encoder.key, encoder.design, encoder.certificate
        if certificate.public_rows:
            raise InputError("encoders with public rows are not attacked here: audit one that was made without public=")
        given = numbers(X, key.wide)
        names, codes = classes_of(y, len(given))
        if names != key.classes or (np.bincount(codes) <= design.sampled_per_class).any():
            raise InputError("this is not the pool that was encoded: give X and y as encode(X, y) took them")
        pool = EncodablePool(
            key.rule(given), names, codes, columns=key.columns, rule=key.rule, design=design, notes=encoder.notes
        )
        return cls(pool, certificate.noise, certificate)

    @property
    def bound(self) -> float | None:
        """Balanced success about any row, at most; None where nothing is guaranteed."""
        return None if self._promise is None else self._promise.membership_success

    @property
    def mean_bound(self) -> float | None:
        """The same, on average over all rows of the pool."""
        return None if self._promise is None else self._promise.mean_success

    @property
    def _promise(self) -> ObfuscationCertificate | None:
        found = self.certificate
        return found if isinstance(found, ObfuscationCertificate) and found.is_guarantee else None

    @cached_property
    def law(self) -> MixingLaw:
        """The public rules, as the attacker knows them."""
        return law_of(self.pool.codes, self.pool.design)

    @cached_property
    def parts(self) -> tuple[Floats, ...]:
        """The pool's columns, block by block."""
        return tuple(np.ascontiguousarray(self.pool.rows[:, block]) for block in self.pool.columns)

    @property
    def variance(self) -> float:
        """Of the noise."""
        return self.noise**2

    def blocks_of(self, values: Floats) -> list[Floats]:
        """Released columns, block by block."""
        return np.split(values, self.pool.design.blocks, axis=1)

    def trial(self, randomness: Randomness | None = None) -> EncodedTrial:
        """An encoding of the pool with the same settings, and what it drew."""
        written = _WrittenDown(OperatingSystem() if randomness is None else randomness)
        released, key = draw_encoded(self.pool, written, noise=self.noise, share=None, public=None, seed=None)
        try:
            return self._known(released, key.mask, _PlayedBack(written.choices.made))
        except (IndexError, TypeError, ValueError):
            pass
        raise OutputError("the encoding makes other random choices than the certified one: do not publish it")

    def _known(self, released: tuple[Floats, Floats], mask: tuple[Floats, ...], again: _PlayedBack) -> EncodedTrial:
        pool, design = self.pool, self.pool.design
        sample = sampled_rows(pool.codes, design, again)
        weights = mean_weights(len(pool.rows), mixed_places(sample, pairs(design), design.mix, again))
        weights.sum_duplicates()
        again.choices.permutation(design.classes)  # names of the classes, which the attacker is given
        order = np.asarray(again.choices.permutation(design.rows_released))
        inside = np.zeros(len(pool.rows), dtype=np.bool_)
        inside[np.concatenate(sample)] = True
        values = released[0][np.argsort(order)]
        rest = values - masked(np.asarray(weights @ pool.rows), pool.columns, mask)
        return EncodedTrial(values, released[1], weights, inside=inside, rest=rest, mask=mask, order=order)
