"""The encoder: a pool becomes an encoded set for a server that is not trusted, once, and a key that stays.

Everything that is wrong with the pool is found before anything is drawn. The ledger is written before anything leaves.
"""

from __future__ import annotations

import os
import threading
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.caps import Cap
from leakcap.certificates.obfuscation import ObfuscationCertificate, UnclaimedEncoding
from leakcap.custody.encodings import PoolAccount
from leakcap.custody.fingerprint import DataPrint
from leakcap.custody.ledger import Store
from leakcap.errors import AlreadyReleased, InputError, LeakcapError, SimulationWarning
from leakcap.ground import checks
from leakcap.ground.arrays import Floats
from leakcap.ground.callers import frames_of_ours
from leakcap.noise.entropy import OperatingSystem, Randomness, Seeded
from leakcap.obfuscation.certified import EncodingNoise, certified_noise, least_noise, noise_or_cap
from leakcap.obfuscation.comparison import EncodingComparison, compared_encoding
from leakcap.obfuscation.design import MixingDesign, Sizes
from leakcap.obfuscation.effort import EncodingEffort
from leakcap.obfuscation.encoded import certificate_of, draw_encoded, facts_of
from leakcap.obfuscation.key import Key
from leakcap.obfuscation.learnable import PublicRows, PublicShare
from leakcap.obfuscation.pools import EncodablePool
from leakcap.obfuscation.rehearsal import warn_if_useless
from leakcap.obfuscation.rows import RowRule
from leakcap.obfuscation.suggestions import EncodingSuggestions, suggested
from leakcap.planning.released import warn_of_second_secret
from leakcap.simulate.progress import Watcher

__all__ = ["Encoder"]

QUERIES = ("kept", "released")
AGAIN = (
    "this encoder has encoded a pool already: its mask hides one set, and nothing bounds two. Keep what was encoded; "
    "for other data make another Encoder"
)


class Encoder:
    """Encode a pool for a server that is not trusted: it learns from the encoded set, and only you can use the model.

    Rows are brought to length 1, some of each class are drawn in secret, mixed into means of two classes, multiplied by
    a secret mask, noised, and put in a random order; labels lose their names.

    Guarantee: nobody who sees the encoded set can tell whether a given row of the pool was drawn with more balanced
    success than `certificate` says, whatever they know of the pool: at most `cap`, or what `noise` was found to be
    worth. Without noise, and with `draws=0`, nothing is claimed. Nothing is promised against whoever may choose what
    is encoded.

    Args:
        mask_dim: columns of an encoded row, no more than rows have; a multiple of the number of blocks.
        mix: rows of each of two classes in a mean; one of twenty sampled rows of a class if left out.
        rows_sampled: rows that are drawn, as many of each class; four fifths of the smallest class if left out.
        rows_released: rows that leave, as many for each ordered pair of classes.
        noise: standard deviation of the noise in every cell, where rows have length 1; its figures are certified.
        cap: instead, the most success about any row of the pool: `leakcap.membership(0.6)`, or 0.6.
        blocks: parts of a row that get masks of their own: a number, or (down, across) for patches of pictures.
        public: (X, y), public rows to add as noise that teaches; they are nobody's secret, and not in the pool.
        ledger: where the pool is written down as encoded, so that it is not encoded or released again.
        name: what the ledger calls the pool; by its contents if left out.
        whiten: principal components of the whole pool that rows are centred and whitened to before; the server then
            learns more from as much noise. Mean and covariance are those of all rows, drawn or not.
        norm: "unit" divides every row by its own length; "ball" divides it by `scale` and shortens it if need be.
        scale: for norm="ball", a length that is known without the data.
        queries: "kept": new rows stay with you, and `predict` is all there is. "released": you mean to send encoded
            queries out, of which nothing is promised.
        confidence: of the certified figures, all together.
        draws: most draws of a certification for one row; more find less noise, 0 claims nothing.
        backend: "torch:cuda" certifies on a GPU.
        progress: True for a bar on standard error, False for none, or a function that is given `Progress` records.
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
        >>> encoder = lc.obfuscation.Encoder(8, mix=5, rows_released=400, noise=0.01, draws=0)
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
        whiten: int | None = None,
        norm: str = "unit",
        scale: float = 1.0,
        queries: str = "kept",
        confidence: float = 1 - 1e-6,
        draws: int = 1024,
        backend: str | None = None,
        progress: bool | Watcher | None = None,
        pool_public: tuple[str, ...] = (),
        seed: int | None = None,
    ) -> None:
        self._noise, self._cap = noise_or_cap(noise, cap)
        self._blocks = tuple(blocks) if isinstance(blocks, (tuple, list)) else blocks
        count = int(np.prod(self._blocks)) if isinstance(self._blocks, tuple) else checks.count(blocks=blocks)
        self._sizes = Sizes.of(
            mask_dim=mask_dim, mix=mix, rows_sampled=rows_sampled, rows_released=rows_released, blocks=max(1, count)
        )
        self._rule = RowRule.of(norm, scale)
        self._queries_leave = checks.choice(QUERIES, queries=queries) == "released"
        self._whiten = None if whiten is None else checks.count(whiten=whiten)
        if whiten is not None and self._sizes.blocks > 1:
            raise InputError("whiten= mixes all columns, blocks= keeps them apart: leave one of them out")
        self._confidence = checks.fraction(confidence=confidence)
        self._effort = EncodingEffort.of(draws, backend, progress)
        if self._cap is not None and not self._effort.draws:
            raise InputError("a cap is certified by draws: choose draws=1024, or noise= with nothing claimed")
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
        pool, public = self._pool(X, y)
        self._refuse_spent()
        if public is not None:
            public.warn_of_shared(pool.rows)
        known_by = X if source is None else source
        account = None if self._ledger is None else PoolAccount(self._ledger, self._name, known_by)
        if account is not None:
            account.refuse_encoded()
        randomness: Randomness = OperatingSystem() if self._seed is None else Seeded(self._seed)
        share = None if public is None else public.share(pool.design, randomness)
        certified = self._certified(pool, share)
        noise = self._noise if certified is None else certified.noise
        assert noise is not None
        warn_if_useless(pool, noise, public=None if share is None else share.mixed, seed=self._seed)
        self._spend(known_by, account)
        encoded, key = draw_encoded(pool, randomness, noise=noise, share=share, public=public, seed=self._seed)
        facts = facts_of(
            pool,
            key,
            noise=noise,
            public_rows=0 if public is None else len(public.rows),
            queries_leave=self._queries_leave,
            counted=self._ledger is not None,
            pool_public=self._pool_public,
        )
        certificate = certificate_of(certified, facts, self._confidence, self._seed is not None)
        self.notes = pool.notes
        self._made = key, certificate, pool.design
        return encoded

    def suggest(self, X: Any, y: Any, *, settings: int = 12) -> EncodingSuggestions:
        """Sizes that leave the server most to learn under the cap: estimates, from encodings that nobody sees.

        How many rows are drawn, mixed and released, and to how many components they are whitened, is tried; noise is
        estimated as for `encode`, and accuracy is that of a linear model on rows of the pool that were not drawn.
        Nothing is certified or spent. Sizes chosen so are facts of the pool, and say nothing about who was drawn.

        Args:
            X: rows of numbers, as for `encode`.
            y: the class of every row.
            settings: how many are tried.

        Returns:
            Settings, best first; `suggestions.best.arguments` go to another `Encoder`.

        Raises:
            InputError: the encoder has no cap, or the pool cannot be encoded.
        """
        if self._cap is None:
            raise InputError(
                "suggest() looks for the best sizes under a cap: give cap=, such as 0.6, instead of noise="
            )
        with self._effort.watched("settings") as tick:
            return suggested(
                lambda sizes, whiten: EncodablePool.of(
                    X, y, rule=self._rule, blocks=self._blocks, sizes=sizes, whiten=whiten
                ),
                self._sizes,
                whiten=self._whiten,
                cap=self._cap.limit,
                confidence=self._confidence,
                effort=self._effort,
                settings=checks.count(settings=settings),
                tick=tick,
            )

    def compare(self, X: Any, y: Any, *, prior: float = 0.1) -> EncodingComparison:
        """What every account bounds about this encoding: ours, others', and for attackers who want something else.

        Nothing is spent, and who was drawn does not matter. With a cap encode first. Public rows are left out.

        Args:
            X: rows of numbers, as for `encode`.
            y: the class of every row.
            prior: how often a blind guess rebuilds a row well enough.

        Returns:
            Bounds in one table, and the lowest that is valid; `mask_rebuilt` tells of the mask, if assumptions held.

        Raises:
            InputError: there is no noise to compare, or the pool cannot be encoded.
        """
        noise = self._noise if self._made is None else self._made[1].noise
        pool, _ = self._pool(X, y)
        return compared_encoding(
            pool, noise, prior=prior, confidence=self._confidence, effort=self._effort, seed=self._seed
        )

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

    def _pool(self, X: Any, y: Any) -> tuple[EncodablePool, PublicRows | None]:
        pool = EncodablePool.of(X, y, rule=self._rule, blocks=self._blocks, sizes=self._sizes, whiten=self._whiten)
        return pool, None if self._public is None else PublicRows.of(self._public, pool.rule, pool.design.columns)

    def _certified(self, pool: EncodablePool, share: PublicShare | None) -> EncodingNoise | None:
        if self._cap is None and (not self._noise or not self._effort.draws):
            return None
        with self._effort.watched("certificate") as tick:
            how: dict[str, Any] = {
                "confidence": self._confidence,
                "effort": self._effort.for_noise() if self._cap is None else self._effort.for_cap(),
                "public": None if share is None else share.mixed,
                "backend": self._effort.backend,
                "seed": self._seed,
                "tick": tick,
            }
            if self._cap is not None:
                return least_noise(pool, self._cap.limit, **how)
            assert self._noise is not None
            return certified_noise(pool, self._noise, **how)

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

    def __reduce__(self) -> Any:
        raise LeakcapError("an encoder holds the key and is not pickled: save_key() seals it")

    def __repr__(self) -> str:
        sizes = self._sizes
        return f"Encoder(mask_dim={sizes.mask_dim}, rows_released={sizes.rows_released}, blocks={sizes.blocks})"
