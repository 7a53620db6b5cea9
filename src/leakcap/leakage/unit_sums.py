"""What releases add up to for every unit: sums, or the capital of wagers; and the means that follow from them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.ground.arrays import Floats
from leakcap.leakage.confidence import MeanEstimate, Wagers

__all__ = ["AddedUp", "UnitMeans", "UnitWagers", "Wagered"]


@dataclass(frozen=True, eq=False)
class UnitMeans:
    """Per unit: `balanced`, the success of the best attacker; `sticks[l]`, the mean of (q_u - t_l)_+; and
    over all units `naming`, the mean of the largest q_u."""

    balanced: MeanEstimate
    sticks: MeanEstimate
    thresholds: Floats
    naming: MeanEstimate

    def at(self, chosen: npt.NDArray[np.intp]) -> UnitMeans:
        """Some of the units."""
        return replace(self, balanced=self.balanced.at(chosen), sticks=self.sticks.at((slice(None), chosen)))


@dataclass(frozen=True, eq=False)
class UnitWagers:
    """On `|q_u - rate|` and on every stick of every unit, `(1 + sticks, units)`, and one on naming a member."""

    units: Wagers
    naming: Wagers
    variance: Floats  # that they were placed for
    naming_variance: Floats

    @classmethod
    def placed(cls, seen: UnitMeans, rate: float, draws: int, log_term: float) -> UnitWagers:
        """For the means and variances seen before."""
        deviation = seen.balanced.scaled(4 * rate * (1 - rate), -2 * rate * (1 - rate))
        most = np.concatenate([[max(rate, 1 - rate)], 1 - seen.thresholds])[:, None]
        mean = np.concatenate([deviation.estimate[None], seen.sticks.estimate])
        variance = np.concatenate([deviation.variance[None], seen.sticks.variance])
        return cls(
            Wagers.placed(mean, variance, np.broadcast_to(most, mean.shape), draws=draws, log_term=log_term),
            Wagers.placed(seen.naming.estimate, seen.naming.variance, 1.0, draws=draws, log_term=log_term),
            variance=variance,
            naming_variance=seen.naming.variance,
        )

    def of_units(self, some: slice) -> UnitWagers:
        """Those on some of the units, without gaps in memory."""
        units = self.units[:, some]
        gapless = Wagers(np.ascontiguousarray(units.base), np.ascontiguousarray(units.stake), units.most)
        return replace(self, units=gapless, variance=self.variance[:, some])


@dataclass
class AddedUp:
    total: Floats
    squares: Floats
    stick_total: Floats
    stick_squares: Floats
    naming: Floats = field(default_factory=lambda: np.zeros(2))
    rounding: float = 0.0

    @classmethod
    def zeros(cls, n: int, sticks: int) -> AddedUp:
        return cls(np.zeros(n), np.zeros(n), np.zeros((sticks, n)), np.zeros((sticks, n)))

    @property
    def units(self) -> int:
        return len(self.total)

    def corner(self, tile: slice) -> AddedUp:
        """Room for some units, without gaps: loops over it are fast."""
        return AddedUp.zeros(len(self.total[tile]), len(self.stick_total))

    def join(self, tile: slice, corner: AddedUp) -> None:
        for mine, more in (
            (self.total, corner.total),
            (self.squares, corner.squares),
            (self.stick_total, corner.stick_total),
            (self.stick_squares, corner.stick_squares),
        ):
            mine[..., tile] += more

    def add(self, panel: npt.NDArray[np.floating], *, weight: Floats, cuts: Any, best: Floats) -> None:
        """Releases x units, as deviations from the rate."""
        from leakcap.leakage._loops import add_panel

        add_panel(panel, weight, cuts, self.total, self.squares, self.stick_total, self.stick_squares, best)

    def add_naming(self, weight: Floats, best: Floats) -> None:
        self.naming += weight @ best, weight @ best**2

    def means(self, draws: int, rate: float, thresholds: Floats) -> UnitMeans:
        def mean(total: Floats, squares: Floats, span: float | Floats) -> MeanEstimate:
            if draws == 0:
                return MeanEstimate.exact(total, self.rounding)
            return MeanEstimate.from_sums(total, squares, draws=draws, span=span, rounding=self.rounding)

        # |q_u - q| / (4 q (1-q)) above 1/2: at q = 1/2 that is max(q_u, 1 - q_u).
        deviation = mean(self.total, self.squares, max(rate, 1 - rate))
        sticks = mean(self.stick_total, self.stick_squares, 1 - thresholds[:, None])
        naming = mean(self.naming[:1], self.naming[1:], 1.0)
        return UnitMeans(deviation.scaled(0.25 / (rate * (1 - rate)), 0.5), sticks, thresholds, naming)


@dataclass
class Wagered:
    """What releases have left of the wagers: logarithms, `(1 + sticks, units)`."""

    wagers: UnitWagers
    capital: Floats
    naming: Floats = field(default_factory=lambda: np.zeros(1))
    rounding: float = 0.0

    @classmethod
    def of(cls, wagers: UnitWagers) -> Wagered:
        return cls(wagers, np.zeros(wagers.units.base.shape))

    @property
    def units(self) -> int:
        return self.capital.shape[1]

    def corner(self, tile: slice) -> Wagered:
        """Room for some units, without gaps: loops over it are fast."""
        return Wagered.of(self.wagers.of_units(tile))

    def join(self, tile: slice, corner: Wagered) -> None:
        self.capital[:, tile] += corner.capital

    def add(self, panel: npt.NDArray[np.floating], *, weight: Floats, cuts: Any, best: Floats) -> None:
        """Releases x units, as deviations from the rate. Every release counts once."""
        from leakcap.leakage._loops import wager_panel

        wager_panel(panel, cuts, self.wagers.units.base, self.wagers.units.stake, self.capital, best)

    def add_naming(self, weight: Floats, best: Floats) -> None:
        placed = self.wagers.naming
        self.naming += np.log(placed.base.astype(np.float64) - placed.stake.astype(np.float64) * best[:, None]).sum(
            axis=0
        )

    def means(self, draws: int, rate: float, thresholds: Floats) -> UnitMeans:
        def mean(capital: Floats, wagers: Wagers, variance: Floats) -> MeanEstimate:
            return MeanEstimate.from_wagers(capital, wagers, variance=variance, draws=draws, rounding=self.rounding)

        placed, variance = self.wagers.units, self.wagers.variance
        deviation = mean(self.capital[0], placed[0], variance[0])
        sticks = mean(self.capital[1:], placed[1:], variance[1:])
        naming = mean(self.naming, self.wagers.naming, self.wagers.naming_variance)
        return UnitMeans(deviation.scaled(0.25 / (rate * (1 - rate)), 0.5), sticks, thresholds, naming)
