"""The encoder: a pool becomes an encoded set for a server that is not trusted, once, and a key that stays.

Everything that is wrong with the pool is found before anything is drawn. The ledger is written before anything leaves.
"""

from __future__ import annotations

import os
import secrets
import threading
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.caps import Cap, Membership, membership
from leakcap.certificates.obfuscation import ObfuscationCertificate, UnclaimedEncoding, not_promised
from leakcap.custody.encodings import PoolAccount
from leakcap.custody.fingerprint import DataPrint
from leakcap.custody.ledger import Store
from leakcap.errors import AlreadyReleased, CapError, InputError, LeakcapError, SimulationWarning
from leakcap.ground import checks
from leakcap.ground.arrays import Floats, Ints
from leakcap.ground.callers import frames_of_ours
from leakcap.noise.entropy import OperatingSystem, Randomness, Seeded
from leakcap.obfuscation.certified import EncodingNoise, least_noise
from leakcap.obfuscation.design import MixingDesign, Sizes
from leakcap.obfuscation.key import Key
from leakcap.obfuscation.learnable import PublicRows, PublicShare
from leakcap.obfuscation.masking import masked, masks, on_grid
from leakcap.obfuscation.mixing import mixed_rows, pair_labels, pairs, sampled_rows
from leakcap.obfuscation.rows import RowRule, block_columns, classes_of, numbers
from leakcap.planning.released import warn_of_second_secret
from leakcap.version import __version__

__all__ = ["Encoder"]

QUERIES = ("kept", "released")
BARE = "No noise was added: whoever knows some of the rows can find the mask, and with it all of them."
BY_HAND = "The noise was chosen by hand, and nothing was certified about it."
COMMON_SHAPE = "Rows have {} columns, and {} of them are the same in every row: they teach nothing, leave them out"
AGAIN = (
    "this encoder has encoded a pool already: its mask hides one set, and nothing bounds two. Keep what was encoded; "
    "for other data make another Encoder"
)


class Encoder:
    """Encode a pool for a server that is not trusted: it learns from the encoded set, and only you can use the model.

    Rows are brought to length 1, some of each class are drawn in secret, mixed into means of two classes, multiplied by
    a secret mask, noised, and put in a random order; labels lose their names.

    Guarantee: with `cap=`, nobody who sees the encoded set can tell whether a given row of the pool was drawn with
    more than that balanced success, whatever they know of the pool; `certificate` says it in full. With `noise=`
    nothing is claimed. Nothing is promised against whoever may choose what is encoded.

    Args:
        mask_dim: columns of an encoded row, no more than rows have; a multiple of the number of blocks.
        mix: rows of each of two classes in a mean; one of twenty sampled rows of a class if left out.
        rows_sampled: rows that are drawn, as many of each class; four fifths of the smallest class if left out.
        rows_released: rows that leave, as many for each ordered pair of classes.
        noise: standard deviation of the noise in every cell, where rows have length 1; nothing is claimed of it.
        cap: instead, the most success about any row of the pool: `leakcap.membership(0.6)`, or 0.6.
        blocks: parts of a row that get masks of their own: a number, or (down, across) for patches of pictures.
        public: (X, y), public rows to add as noise that teaches; they are nobody's secret.
        ledger: where the pool is written down as encoded, so that it is not encoded or released again.
        name: what the ledger calls the pool; by its contents if left out.
        norm: "unit" divides every row by its own length; "ball" divides it by `scale` and shortens it if need be.
        scale: for norm="ball", a length that is known without the data.
        queries: "kept": new rows stay with you, and `predict` is all there is. "released": you mean to send encoded
            queries out, of which nothing is promised.
        confidence: of the certified figures, all together.
        pool_public: what else was read off the whole pool to make its rows, in words for the certificate.
        seed: makes a repeatable simulation of it, whose certificate says so; never for a release.

    Attributes:
        certificate: what the server can learn, once encoded.
        key: what you keep, once encoded.
        design: the sizes, fitted to the pool, once encoded.
        notes: what was rounded or left out, for you.

    Raises:
        InputError: an argument cannot be used.

    Examples:
        >>> import numpy as np, leakcap as lc
        >>> rng = np.random.default_rng(0)
        >>> y = np.repeat(["no", "yes"], 200)
        >>> X = rng.normal(size=(400, 8)) + 3 * (y == "yes")[:, None]
        >>> encoder = lc.obfuscation.Encoder(8, mix=5, rows_released=400, noise=0.01)
        >>> Z, Y = encoder.encode(X, y)
        >>> from sklearn.linear_model import Ridge
        >>> model = Ridge(0.1).fit(Z, Y)  # at the server's
        >>> bool(np.mean(encoder.predict(model, X) == y) > 0.9)
        True
        >>> encoder.certificate.is_guarantee
        False
    """

    def __init__(
        self,
        mask_dim: int = 500,
        *,
        mix: int | None = None,
        rows_sampled: int | None = None,
        rows_released: int = 2000,
        noise: float | None = None,
        cap: Cap | float | None = None,
        blocks: int | tuple[int, int] = 1,
        public: Any = None,
        ledger: str | Store | None = None,
        name: str | None = None,
        norm: str = "unit",
        scale: float = 1.0,
        queries: str = "kept",
        confidence: float = 1 - 1e-6,
        pool_public: tuple[str, ...] = (),
        seed: int | None = None,
    ) -> None:
        self._noise, self._cap = _noise_or_cap(noise, cap)
        self._blocks = tuple(blocks) if isinstance(blocks, (tuple, list)) else blocks
        count = int(np.prod(self._blocks)) if isinstance(self._blocks, tuple) else checks.count(blocks=blocks)
        self._sizes = Sizes.of(
            mask_dim=mask_dim, mix=mix, rows_sampled=rows_sampled, rows_released=rows_released, blocks=max(1, count)
        )
        self._rule = RowRule.of(norm, scale)
        self._queries_leave = checks.choice(QUERIES, queries=queries) == "released"
        self._confidence = checks.fraction(confidence=confidence)
        if ledger is not None and seed is not None:
            raise InputError("an encoder with a seed is a simulation: leave the ledger out")
        if name is not None and ledger is None:
            raise InputError("name= says what the ledger calls the pool: give ledger= too")
        self._public, self._ledger, self._name, self._seed = public, ledger, name, seed
        self._pool_public = tuple(map(str, pool_public))
        self._lock, self._spent = threading.Lock(), False
        self._made: tuple[Key, ObfuscationCertificate | UnclaimedEncoding, MixingDesign] | None = None
        self.notes: tuple[str, ...] = ()

    def encode(self, X: Any, y: Any, *, source: Any = None) -> tuple[Floats, Floats]:
        """The encoded set of a pool, for the server: once for an encoder, and once for a pool where a ledger is given.

        Args:
            X: rows of numbers, one for every unit; pictures and sequences may have further directions.
            y: the class of every row.
            source: the data that the rows were made of, where they were scaled or embedded: by these the ledger knows
                the pool, however its rows are made the next time.

        Returns:
            Encoded rows `(rows_released, mask_dim)`, and their labels `(rows_released, classes)`: shares of the two
            classes in each mean, under hidden names. With public rows, columns for their classes follow.

        Raises:
            InputError: the pool cannot be encoded. The message quotes no value.
            AlreadyReleased: this encoder, or the ledger, knows of an encoding before.
        """
        pool = _Pool.of(X, y, rule=self._rule, blocks=self._blocks, sizes=self._sizes)
        public = None if self._public is None else PublicRows.of(self._public, self._rule, pool.design.columns)
        self._refuse_spent()
        known_by = X if source is None else source
        account = None if self._ledger is None else PoolAccount(self._ledger, self._name, known_by)
        if account is not None:
            account.refuse_encoded()
        randomness: Randomness = OperatingSystem() if self._seed is None else Seeded(self._seed)
        share = None if public is None else public.share(pool.design, randomness)
        certified = self._certified(pool, share)
        noise = self._noise if certified is None else certified.noise
        assert noise is not None
        self._spend(known_by, account)
        encoded, key = _encoded(pool, randomness, noise=noise, share=share, public=public, seed=self._seed)
        facts = self._facts(pool, key.id, noise, 0 if public is None else len(public.rows))
        certificate = _certificate(certified, facts, self._confidence, self._seed is not None)
        self.notes = pool.notes
        self._made = key, certificate, pool.design
        return encoded

    def encode_query(self, X: Any) -> Floats:
        """New rows as the server's model takes them. They are further releases: refused unless declared.

        Args:
            X: rows of numbers, of as many columns as the pool.

        Returns:
            `(n, mask_dim)`; with public rows `(n, 100, mask_dim)`, each row added to a hundred of them.

        Raises:
            InputError: queries="released" was not declared, or the rows do not fit.
        """
        if not self._queries_leave:
            raise InputError(
                "encoded queries that leave are further releases, of which nothing is promised: use predict(model, X), "
                "which keeps them here, or declare Encoder(..., queries='released')"
            )
        return self.key.encode(X)

    def decode(self, scores: Any) -> npt.NDArray[Any]:
        """Classes by your names, from scores that the server's model gave to encoded queries.

        Args:
            scores: `(n, classes)`, or `(n, voters, classes)` where queries were added to public rows; or the numbers
                of the classes, `(n,)`.

        Returns:
            A label for every query.

        Raises:
            InputError: these are no scores of this encoding's classes.
        """
        return self.key.decode(scores)

    def predict(self, model: Any, X: Any) -> npt.NDArray[Any]:
        """Labels of new rows by the server's model, at your side: nothing leaves.

        Args:
            model: anything with predict_proba or predict, a torch module, or a function of encoded rows. It must have
                been trained on the encoded set. A model file from a server can run the server's code when it is
                loaded: `leakcap obfuscate predict` reads plain numbers only.
            X: rows of numbers, of as many columns as the pool.

        Returns:
            A label for every row, by the names of the pool's labels.

        Raises:
            InputError: the rows or the model's answers do not fit.
        """
        return self.key.predict(model, X)

    def save_key(self, path: str | os.PathLike[str]) -> None:
        """Write the key to a file of yours alone, sealed; without it the model is lost.

        Args:
            path: where; a file that is there is never overwritten.

        Raises:
            InputError: nothing was encoded yet, or there is a file.
        """
        self.key.save(path)

    @property
    def key(self) -> Key:
        """What you keep. Custodian side."""
        return self._result()[0]

    @property
    def certificate(self) -> ObfuscationCertificate | UnclaimedEncoding:
        """What the server can learn."""
        return self._result()[1]

    @property
    def design(self) -> MixingDesign:
        """The sizes, fitted to the pool."""
        return self._result()[2]

    def _result(self) -> tuple[Key, ObfuscationCertificate | UnclaimedEncoding, MixingDesign]:
        if self._made is None:
            raise InputError("nothing was encoded yet: call encode(X, y) first")
        return self._made

    def _certified(self, pool: _Pool, share: PublicShare | None) -> EncodingNoise | None:
        if self._cap is None:
            return None
        return least_noise(
            pool.rows,
            pool.codes,
            pool.design,
            cap=self._cap.limit,
            confidence=self._confidence,
            columns=pool.columns,
            public=None if share is None else share.mixed,
            seed=self._seed,
        )

    def _refuse_spent(self) -> None:
        if self._spent:
            raise AlreadyReleased(AGAIN)

    def _spend(self, known_by: Any, account: PoolAccount | None) -> None:
        """Spend first, encode after: a crash wastes an encoding, it never makes two."""
        with self._lock:
            self._refuse_spent()
            self._spent = True
        if account is not None:
            account.take("encoded for a server")
        elif self._seed is None:
            warn_of_second_secret(DataPrint((known_by,)).of_release)
        else:
            warnings.warn(
                "a seed was given: this is a simulation, and whoever knows the seed undoes the encoding",
                SimulationWarning,
                stacklevel=1 + frames_of_ours(),
            )

    def _facts(self, pool: _Pool, key_id: str, noise: float, public_rows: int) -> dict[str, Any]:
        design = pool.design
        return {
            "id": key_id,
            "classes": design.classes,
            "columns": design.columns,
            "rows_sampled": design.rows_sampled,
            "rows_released": design.rows_released,
            "mix": design.mix,
            "mask_dim": design.mask_dim,
            "blocks": design.blocks,
            "noise": noise,
            "rows_are": self._rule.words(),
            "public_rows": public_rows,
            "queries_leave": self._queries_leave,
            "counted": self._ledger is not None,
            "pool_public": (
                f"It has {design.classes:,} classes, of more than {design.sampled_per_class:,} rows each.",
                *self._pool_public,
            ),
            "not_promised": not_promised(self._queries_leave),
            "leakcap_version": __version__,
        }

    def __reduce__(self) -> Any:
        raise LeakcapError("an encoder holds the key and is not pickled: save_key() seals it")

    def __repr__(self) -> str:
        sizes = self._sizes
        return f"Encoder(mask_dim={sizes.mask_dim}, rows_released={sizes.rows_released}, blocks={sizes.blocks})"


@dataclass(frozen=True, eq=False)
class _Pool:
    """A pool that can be encoded. Custodian side."""

    rows: Floats
    names: tuple[Any, ...]
    codes: Ints
    columns: tuple[Ints, ...]
    rule: RowRule
    design: MixingDesign
    notes: tuple[str, ...]

    @classmethod
    def of(cls, X: Any, y: Any, *, rule: RowRule, blocks: Any, sizes: Sizes) -> _Pool:
        given = numbers(X)
        names, codes = classes_of(y, len(given))
        shape = tuple(np.shape(X)[1:])
        columns = block_columns(shape, blocks)
        constant = int((given == given[0]).all(axis=0).sum())
        if constant == given.shape[1]:
            raise InputError("all rows are the same: there is nothing to learn from them")
        in_class = np.bincount(codes)
        design = sizes.design(given.shape[1], in_class)
        notes = sizes.notes(design, in_class)
        if constant:
            notes = (*notes, COMMON_SHAPE.format(given.shape[1], constant))
        return cls(rule(given), names, codes, columns=columns, rule=rule, design=design, notes=notes)


def _encoded(
    pool: _Pool,
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


def _certificate(
    certified: EncodingNoise | None, facts: dict[str, Any], confidence: float, simulated: bool
) -> ObfuscationCertificate | UnclaimedEncoding:
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
        **facts,
    )


def _noise_or_cap(noise: Any, cap: Any) -> tuple[float | None, Cap | None]:
    if cap is not None and noise is not None and noise == 0:
        raise InputError("without noise no cap holds: leave noise= out, and the least that keeps the cap is found")
    if cap is not None and noise is not None:
        raise InputError("give noise= or cap=, not both: a cap finds the least noise that keeps it")
    if cap is None and noise is None:
        raise InputError("give cap=, such as leakcap.membership(0.6), or noise=; noise=0 promises nothing")
    if cap is None:
        return checks.nonnegative(noise=noise), None
    found = cap if isinstance(cap, Cap) else membership(cap)
    if not isinstance(found, Membership):
        raise CapError("an encoder keeps caps on membership: cap=leakcap.membership(0.6)")
    return None, found
