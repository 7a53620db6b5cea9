"""What one swapped row changes in the covariance of mixed rows, for all units of a draw: one factorisation, on a GPU.

The same four numbers for each swap as `leakcap.obfuscation.pairs`, in f64; mixings may be drawn here too.
"""

from __future__ import annotations

import numpy as np

from leakcap.errors import NumericalError
from leakcap.ground.arrays import Floats, Ints
from leakcap.kernels.gpu.device import Tensor, load, on, send, tile_bytes

__all__ = ["MixedRows"]

OFF = 1e-9  # what a solution may be off


class MixedRows:
    """A pool that stays on the device while draws are made from it."""

    def __init__(self, pool: Floats, *, device: str = "cuda") -> None:
        self.device = on(device)
        self.pool = send(pool, self.device)

    def picks(self, starts: Ints, size: int, mix: int, *, seed: int) -> Tensor:
        """`(m, 2 mix)`: `mix` of `size` places after either of `starts` `(m, 2)`, each time anew."""
        torch = load()
        generator = torch.Generator(device=self.device)
        generator.manual_seed(seed)
        first = self._index(starts.T.reshape(-1, 1))
        chosen = torch.empty((len(first), mix), dtype=torch.int64, device=self.device)
        step = max(1, tile_bytes(self.device) // (8 * size))
        for start in range(0, len(chosen), step):
            shape = (min(step, len(chosen) - start), size)
            keys = torch.rand(shape, generator=generator, dtype=torch.float64, device=self.device)
            chosen[start : start + step] = keys.topk(mix, dim=1, sorted=False).indices
        chosen += first
        return torch.hstack([chosen[: len(starts)], chosen[len(starts) :]])

    def _index(self, index: Ints) -> Tensor:
        return send(index, self.device, load().int64)

    def kept(self, table: Floats) -> Tensor:
        """A table that many draws need, on the device."""
        return send(table, self.device)

    def swap_products(
        self, rows: Ints, picks: Tensor, *, places: Ints, joins: Ints, columns: int, noise: float | Floats | Tensor
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """`step, cross, weight, squared` of every swap, as `leakcap.obfuscation.pairs.factors` takes them.

        `rows` are the sampled units, `picks` `(m, 2 mix)` their places that each released row is mixed from; `noise` is
        a variance, or a covariance `(m, m)`, here or on the device.
        """
        torch = load()
        used, column = np.unique(places, return_inverse=True)
        where, leave, join, column = (self._index(index) for index in (rows, places, joins, column))
        weights = torch.zeros((len(picks), len(rows)), dtype=torch.float64, device=self.device)
        share = torch.full(picks.shape, 1 / picks.shape[1], dtype=torch.float64, device=self.device)
        weights.scatter_add_(1, picks, share)
        mixture = weights @ self.pool[where]
        covariance = mixture @ mixture.T / columns
        if isinstance(noise, float):
            covariance.diagonal().add_(noise)
        else:
            covariance += send(noise, self.device) if isinstance(noise, np.ndarray) else noise
        root, failed = torch.linalg.cholesky_ex(covariance)
        if int(failed):
            raise NumericalError("the covariance of a release is singular: noise of full rank is needed")
        self._look(covariance, root)
        half = torch.linalg.solve_triangular(root, mixture, upper=False)
        moved = torch.linalg.solve_triangular(root, weights[:, self._index(used)], upper=False)
        weight, across = (moved**2).sum(dim=0), moved.T @ half
        found = torch.empty((4, len(join)), dtype=torch.float64, device=self.device)
        step = max(1, tile_bytes(self.device) // (8 * max(len(half), self.pool.shape[1])))
        for start in range(0, len(join), step):
            some = slice(start, start + step)
            change = self.pool[join[some]] - self.pool[where[leave[some]]]
            found[0, some] = ((change @ half.T) ** 2).sum(dim=1)
            found[1, some] = (across[column[some]] * change).sum(dim=1)
            found[2, some] = weight[column[some]]
            found[3, some] = (change**2).sum(dim=1)
        step_, cross, weight_, squared = found.cpu().numpy()
        return step_, cross, weight_, squared

    def _look(self, covariance: Tensor, root: Tensor) -> None:
        torch = load()
        probe = send(np.cos(np.outer(np.arange(len(covariance)), [1.0, 2.0, 3.0]) ** 2), self.device)
        error = (covariance @ torch.cholesky_solve(probe, root) - probe).abs().max()
        if not float(error) < OFF:
            raise NumericalError("the covariance of a release is too near a singular one: more noise is needed")
