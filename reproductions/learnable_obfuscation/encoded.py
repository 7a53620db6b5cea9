"""Encoded sets of a setting, five trials of them, as a server gets them; and the test rows that go with each.

Rows are sampled and mixed by the library; masks and noise are drawn on the device. Trials of one setting share sample,
mixing and mask over all noises, so that noises are compared on the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.noise.entropy import Seeded
from leakcap.obfuscation.design import MixingDesign, Sizes
from leakcap.obfuscation.learnable import VOTERS, PublicRows
from leakcap.obfuscation.mixing import mixed_rows, pair_labels, pairs, sampled_rows
from reproductions.learnable_obfuscation.data import Embedded
from reproductions.learnable_obfuscation.published import Setting

__all__ = ["EncodedSets", "Mixture", "bare_sets", "design_of", "encoded_sets", "mixture"]

Floats = npt.NDArray[np.float64]


def design_of(setting: Setting, data: Embedded, columns: int) -> MixingDesign:
    n, m, k = setting
    sizes = Sizes.of(mask_dim=columns, mix=k, rows_sampled=n, rows_released=m, blocks=1)
    return sizes.design(data.pool.shape[1], np.bincount(data.labels))


@dataclass(frozen=True, eq=False)
class Mixture:
    """One trial before it is masked: private means, their labels, and the means of public rows that are added."""

    rows: Floats
    labels: Floats
    added: Floats | None


def mixture(setting: Setting, data: Embedded, columns: int, seed: int) -> Mixture:
    """A sample of the pool, mixed; with public rows, labels of these follow."""
    design, randomness = design_of(setting, data, columns), Seeded(seed)
    halves = pairs(design)
    sample = sampled_rows(data.labels, design, randomness)
    rows = mixed_rows(data.pool, sample, halves, mix=design.mix, randomness=randomness)
    labels = pair_labels(*halves, design.classes)
    if data.public is None or data.public_labels is None:
        return Mixture(rows, labels, None)
    public = PublicRows(data.public, data.public_labels, design.classes).share(design, randomness)
    return Mixture(rows, np.hstack([labels, public.labels]), public.mixed)


@dataclass(frozen=True, eq=False)
class EncodedSets:
    """Tensors, a set for every noise and trial: `rows` (sets, m, d), `labels` (sets, m, c), `test` (trials, t, d).

    `voters` (trials, v, d) are masked public rows that every query is added to in turn, or None. Sets are ordered by
    noise, then by trial.
    """

    rows: Any
    labels: Any
    test: Any
    voters: Any
    trials: int


def encoded_sets(
    setting: Setting, noises: Sequence[float], data: Embedded, *, columns: int, trials: int, device: str
) -> EncodedSets:
    import torch  # noqa: PLC0415  # a GPU machine has it; pages are made without

    def there(values: Floats) -> Any:
        return torch.as_tensor(values, dtype=torch.float32, device=device)

    generator = torch.Generator(device=device)
    generator.manual_seed(sum(setting) + 1)
    rows, labels, test, voters = [], [], [], []
    wide = (data.pool.shape[1], columns)
    queries = there(data.test)
    for trial in range(trials):
        made = mixture(setting, data, columns, 1000 * sum(setting) + trial)
        mask = torch.randn(wide, generator=generator, device=device) / columns**0.5
        masked = there(made.rows) @ mask
        test.append(queries @ mask)
        if made.added is not None and data.public is not None:
            second = torch.randn(wide, generator=generator, device=device) / columns**0.5
            masked = masked + there(made.added) @ second
            chosen = np.random.default_rng(trial).permutation(len(data.public))[:VOTERS]
            voters.append(there(data.public[chosen]) @ second)
        rows.append(masked)
        labels.append(there(made.labels))
    stacked, answers = torch.stack(rows), torch.stack(labels)
    drawn = torch.randn(stacked.shape, generator=generator, device=device)
    return EncodedSets(
        rows=torch.cat([stacked + noise * drawn for noise in noises]),
        labels=answers.repeat(len(noises), 1, 1),
        test=torch.stack(test),
        voters=torch.stack(voters) if voters else None,
        trials=trials,
    )


def bare_sets(setting: Setting, data: Embedded, *, columns: int, trials: int, device: str) -> EncodedSets:
    """The same rows un-encoded: sampled and mixed alike, neither masked nor noised; public rows are left out."""
    import torch  # noqa: PLC0415

    def there(values: Floats) -> Any:
        return torch.as_tensor(values, dtype=torch.float32, device=device)

    made = [mixture(setting, data, columns, 1000 * sum(setting) + trial) for trial in range(trials)]
    classes = int(data.labels.max()) + 1
    return EncodedSets(
        rows=torch.stack([there(one.rows) for one in made]),
        labels=torch.stack([there(one.labels[:, :classes]) for one in made]),
        test=there(data.test).expand(trials, *data.test.shape),
        voters=None,
        trials=trials,
    )
