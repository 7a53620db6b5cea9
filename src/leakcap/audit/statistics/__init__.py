"""The statistics of an audit: from counts of right and wrong guesses to statements that are rarely false.

Everything here takes counts (or bounded values) of trials that were *judged*: independent releases on which nothing
was chosen, neither the attack nor the unit, the threshold or the number of trials. Intervals are two-sided, with total
error `alpha`; p-values are one-sided. So a claim is refuted at `alpha` (the lower end lies above it) when its p-value
is at most `alpha / 2`. Nothing rests on a normal approximation. Proof page: audit.
"""

from leakcap.audit.statistics.epsilon import epsilon_lower, epsilon_p_value, epsilon_upper, one_run, one_run_epsilon
from leakcap.audit.statistics.means import mean_interval, mean_p_value
from leakcap.audit.statistics.rates import Balanced, Rates, interval, p_value, trials_to_decide, true_positive_rate

__all__ = [
    "Balanced",
    "Rates",
    "epsilon_lower",
    "epsilon_p_value",
    "epsilon_upper",
    "interval",
    "mean_interval",
    "mean_p_value",
    "one_run",
    "one_run_epsilon",
    "p_value",
    "trials_to_decide",
    "true_positive_rate",
]
