"""Nats that a cell carries about the whole sample: Theorem 4's two bounds, as means over draws, on a device.

By traces for two samples mixed alike; by log-determinants with a tangent that other draws have fixed. Estimates: the
library's `certify_whole` bounds the same means with confidence, on small pools in reasonable time.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from leakcap.obfuscation.sampled import MixingLaw, draw_mixed, draw_rows
from reproductions.learnable_obfuscation.cells import Cell
from reproductions.learnable_obfuscation.data import Embedded
from reproductions.learnable_obfuscation.encoded import mixture
from reproductions.learnable_obfuscation.member import law_of

__all__ = ["WholeNats"]

DRAWS = 8  # for the tangent, and as many for the means


class WholeNats:
    """Measures cells of one pool on a device."""

    def __init__(self, data: Embedded, *, columns: int, device: str) -> None:
        import torch  # noqa: PLC0415

        self.data, self.columns, self.device, self.torch = data, columns, device, torch
        self.pool = torch.as_tensor(data.pool, dtype=torch.float64, device=device)

    def __call__(self, cell: Cell, *, seed: int = 2, draws: int = DRAWS) -> dict[str, Any]:
        began = time.perf_counter()
        law, rng = law_of(cell, self.data, self.columns), np.random.default_rng(seed)
        added = mixture(cell.setting, self.data, self.columns, 7).added if cell.learnable else None
        noise = self._noise(len(law.pairs), cell.noise, added)
        total = 0.0
        for _ in range(draws):
            mixed = draw_mixed(law, rng)
            total = total + self._covariance(self._mixture(mixed.weights, mixed.rows), 0.0)
        centre = self._evened(total / draws, law) + noise
        root = self._root(centre)
        level = 2 * root.diagonal().log().sum() - len(root)
        found = np.array([self._told(law, rng, noise, centre=(root, level)) for _ in range(draws)])
        mean, error = found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(draws)
        names = ("trace_nats", "log_det_nats", "mask_nats")
        return {
            **{f"{name}_estimate": float(value) for name, value in zip(names, mean, strict=True)},
            **{f"{name}_error": float(value) for name, value in zip(names, error, strict=True)},
            "draws": draws,
            "seconds": round(time.perf_counter() - began, 1),
        }

    def masked_alone(self, cell: Cell, *, rng: np.random.Generator, draws: int = DRAWS) -> tuple[float, float]:
        """Theorem 2: rows that are sampled, put in order of their classes and masked, neither mixed nor permuted."""
        law = law_of(cell, self.data, self.columns)
        noise = self._noise(law.members, cell.noise, None)
        total = 0.0
        for _ in range(draws):
            total = total + self._covariance(self._rows(law, rng), 0.0)
        # Samples of a class come in a random order, so that the mean over orders is that over samples.
        kinds = self.torch.as_tensor(np.repeat(np.arange(law.classes), law.sampled), device=self.device)
        root = self._root(self._evened_by(total / draws, kinds) + noise)
        level = 2 * root.diagonal().log().sum() - len(root)
        traces, dets = [], []
        for _ in range(draws):
            first, second = (self._covariance(self._rows(law, rng), noise) for _ in range(2))
            roots = [self._root(first), self._root(second)]
            both = self._trace(roots[0], second) + self._trace(roots[1], first) - 2 * len(first)
            traces.append(float(law.columns / 4 * both))
            size = 2 * roots[0].diagonal().log().sum()
            dets.append(float(law.columns / 2 * (self._trace(root, first) + level - size)))
        return float(np.mean(traces)), float(np.mean(dets))

    def _rows(self, law: MixingLaw, rng: np.random.Generator) -> Any:
        return self.pool[self.torch.as_tensor(draw_rows(law, rng), device=self.device)]

    def _told(self, law: MixingLaw, rng: np.random.Generator, noise: Any, *, centre: tuple[Any, Any]) -> list[float]:
        """Traces, log-determinants, and what Theorem 7 adds: `d/2 log det(S S_B^-1)`."""
        mixed, other = draw_mixed(law, rng), draw_mixed(law, rng)
        one, two = (self._mixture(mixed.weights, rows) for rows in (mixed.rows, other.rows))
        first, second = self._covariance(one, noise), self._covariance(two, noise)
        roots = [self._root(first), self._root(second)]
        both = self._trace(roots[0], second) + self._trace(roots[1], first) - 2 * len(first)
        size = 2 * roots[0].diagonal().log().sum()
        tangent = self._trace(centre[0], first) + centre[1] - size
        bare = 2 * self._root(noise).diagonal().log().sum()
        half = law.columns / 2
        return [float(half / 2 * both), float(half * tangent), float(half * (size - bare))]

    def _mixture(self, weights: Any, rows: Any) -> Any:
        torch = self.torch
        dense = torch.as_tensor(weights.toarray(), dtype=torch.float64, device=self.device)
        return dense @ self.pool[torch.as_tensor(rows, device=self.device)]

    def _covariance(self, mixture: Any, noise: Any) -> Any:
        return mixture @ mixture.T / self.columns + noise

    def _noise(self, m: int, noise: float, added: Any) -> Any:
        torch = self.torch
        found = noise**2 * torch.eye(m, dtype=torch.float64, device=self.device)
        if added is not None:
            rows = torch.as_tensor(added, dtype=torch.float64, device=self.device)
            found = found + rows @ rows.T / self.columns
        return found

    def _root(self, matrix: Any) -> Any:
        return self.torch.linalg.cholesky(matrix)

    def _trace(self, root: Any, matrix: Any) -> Any:
        """`Tr A^-1 B` from the root of A."""
        return self.torch.cholesky_solve(matrix, root).diagonal().sum()

    def _evened(self, matrix: Any, law: MixingLaw) -> Any:
        """The mean over orders of rows of the same two classes, which is random; all orders are as likely."""
        kinds = self.torch.as_tensor(law.pairs[:, 0] * law.classes + law.pairs[:, 1], device=self.device)
        return self._evened_by(matrix, kinds)

    def _evened_by(self, matrix: Any, kinds: Any) -> Any:
        torch = self.torch
        share = torch.nn.functional.one_hot(kinds).to(torch.float64)
        count = share.sum(dim=0)
        diagonal = (share.T @ matrix.diagonal()) / count
        sums = share.T @ matrix @ share - torch.diag(diagonal * count)
        apart = torch.outer(count, count) - torch.diag(count)
        means = torch.where(apart > 0, sums / apart.clamp(min=1), torch.zeros_like(sums))
        found = means[kinds][:, kinds].clone()
        found.diagonal().copy_(diagonal[kinds])
        return found
