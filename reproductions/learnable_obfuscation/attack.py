"""The paper's likelihood attack on a cell (section 7.2): who simulates samples with and without the target, and weighs.

For each target, 100 samples that contain it and 100 that do not; the likelihood of the release is averaged over either,
and the larger wins. Differs from the paper: the mask is integrated out, which leaves nothing of it to guess, and the
same simulated samples serve all targets: a target joins a sample by a swap, whose likelihood needs no factorisation.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.audit.encoded.likelihood import swaps_of
from leakcap.obfuscation.sampled import MixingLaw, draw_mixed
from reproductions.learnable_obfuscation.cells import Cell
from reproductions.learnable_obfuscation.data import Embedded
from reproductions.learnable_obfuscation.member import law_of
from reproductions.learnable_obfuscation.published import TARGETS

__all__ = ["LikelihoodAttack", "ranked", "with_targets"]

SIMULATED = 100  # samples with the target, and as many without
RELEASES = 10
Floats = npt.NDArray[np.float64]


class LikelihoodAttack:
    """Attacks cells of one pool on a device."""

    def __init__(self, data: Embedded, *, columns: int, device: str) -> None:
        import torch  # noqa: PLC0415

        self.data, self.columns, self.device, self.torch = data, columns, device, torch
        self.pool = torch.as_tensor(data.pool, dtype=torch.float64, device=device)

    def __call__(
        self, cell: Cell, *, seed: int = 3, simulated: int = SIMULATED, releases: int = RELEASES
    ) -> dict[str, Any]:
        """Balanced success over targets, of which half are put into the sample of every release."""
        began = time.perf_counter()
        law, rng = law_of(cell, self.data, self.columns), np.random.default_rng(seed)
        targets = np.arange(min(TARGETS, len(self.data.pool) // 4))
        inside, released = self.released(cell, law, targets, releases, rng=rng)
        inner, outer = (
            [self.log_likelihoods(cell, law, released, targets, joined=joined, rng=rng) for _ in range(simulated)]
            for joined in (True, False)
        )
        evidence = np.logaddexp.reduce(inner, axis=0) - np.logaddexp.reduce(outer, axis=0)
        says = evidence > 0
        hit, alarm = says[inside].mean(), says[~inside].mean()
        trials = int(min(inside.sum(), (~inside).sum()))
        return {
            "targets": len(targets),
            "releases": releases,
            "simulated": simulated,
            "recognised": float(hit),
            "false_alarms": float(alarm),
            "balanced_success": float(0.5 + 0.5 * (hit - alarm)),
            "error": float(0.5 / np.sqrt(2 * trials)),
            "ranked_right": ranked(evidence[inside], evidence[~inside]),
            "seconds": round(time.perf_counter() - began, 1),
        }

    def released(
        self, cell: Cell, law: MixingLaw, targets: Any, releases: int, *, rng: np.random.Generator
    ) -> tuple[npt.NDArray[np.bool_], Any]:
        """`(releases, targets)` who was sampled, and the released columns, release after release."""
        torch = self.torch
        inside = np.zeros((releases, len(targets)), dtype=np.bool_)
        columns = []
        for place in range(releases):
            mixed = draw_mixed(law, rng)
            chosen = rng.permutation(len(targets)) < len(targets) // 2
            rows = with_targets(law, mixed.rows, targets, chosen, rng=rng)
            inside[place] = np.isin(targets, rows)
            mask = rng.normal(size=(self.pool.shape[1], law.columns)) / np.sqrt(law.columns)
            mixture = self._mixture(mixed.weights, rows)
            clean = mixture @ torch.as_tensor(mask, device=self.device)
            noise = torch.as_tensor(rng.normal(size=clean.shape), device=self.device)
            columns.append(clean + cell.noise * noise)
        return inside, torch.cat(columns, dim=1)

    def log_likelihoods(
        self, cell: Cell, law: MixingLaw, released: Any, targets: Any, *, joined: bool, rng: np.random.Generator
    ) -> Floats:
        """`(releases, targets)` of one simulated sample, which each target in turn has joined, or left."""
        torch, d = self.torch, law.columns
        mixed = draw_mixed(law, rng)
        mixture = self._mixture(mixed.weights, mixed.rows)
        covariance = mixture @ mixture.T / d
        covariance.diagonal().add_(cell.noise**2)
        root = torch.linalg.cholesky(covariance)
        solved = torch.cholesky_solve(released, root)
        fits = (released * solved).sum(dim=0).reshape(-1, d).sum(dim=1)
        base = (-d * root.diagonal().log().sum() - fits / 2)[:, None]
        places, joins = swaps_of(law, mixed.rows, targets, joined=joined, rng=rng)
        weights = torch.as_tensor(mixed.weights[:, places].toarray(), device=self.device)
        leaving = torch.as_tensor(mixed.rows[places], device=self.device)
        change = self.pool[torch.as_tensor(joins, device=self.device)] - self.pool[leaving]
        moved = mixture @ change.T
        both = torch.stack([moved, weights])  # (2, m, targets)
        halves = torch.linalg.solve_triangular(root, both, upper=False)
        gram = torch.einsum("imt,jmt->tij", halves, halves)
        shape = (2, len(places), -1, d)
        seen = torch.einsum("imt,mz->itz", both, solved).reshape(shape)
        outer = torch.einsum("itrz,jtrz->trij", seen, seen)
        squared = (change**2).sum(dim=1)
        kernel, inverse = torch.zeros_like(gram), torch.zeros_like(gram)
        kernel[:, 0, 1] = kernel[:, 1, 0] = 1 / d
        kernel[:, 1, 1] = squared / d
        inverse[:, 0, 1] = inverse[:, 1, 0] = d
        inverse[:, 0, 0] = -d * squared
        grown = torch.linalg.slogdet(torch.eye(2, dtype=gram.dtype, device=gram.device) + kernel @ gram)[1]
        gained = (torch.linalg.inv(inverse + gram)[:, None] * outer).sum(dim=(2, 3))
        return (base + (gained - d * grown[:, None]).T / 2).cpu().numpy()

    def _mixture(self, weights: Any, rows: Any) -> Any:
        torch = self.torch
        dense = torch.as_tensor(weights.toarray(), dtype=torch.float64, device=self.device)
        return dense @ self.pool[torch.as_tensor(rows, device=self.device)]


def with_targets(law: MixingLaw, rows: Any, targets: Any, chosen: Any, *, rng: np.random.Generator) -> Any:
    """The sample with the chosen targets in it and the others not, as many of each class as before."""
    found = rows.copy()
    for one in range(law.classes):
        places = np.arange(one * law.sampled, (one + 1) * law.sampled)
        wanted = targets[chosen & (law.labels[targets] == one)][: law.sampled]
        others = np.setdiff1d(np.flatnonzero(law.labels == one), targets)
        kept = np.setdiff1d(found[places], targets)
        fill = np.setdiff1d(others, kept)
        filled = np.concatenate([wanted, rng.permutation(kept), rng.permutation(fill)])[: law.sampled]
        found[places] = rng.permutation(filled)
    return found


def ranked(inside: Floats, outside: Floats) -> float:
    """How often a member's evidence is above that of somebody who is none."""
    every = np.sort(outside)
    below = np.searchsorted(every, inside, side="left") + np.searchsorted(every, inside, side="right")
    return float(below.mean() / 2 / len(every))
