"""Logistic regression from one noised sum: the likelihood needs nothing else of the labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from leakcap.ground.arrays import Floats
from leakcap.labels.statistics.base import SummedRows
from leakcap.labels.statistics.lda import discriminants
from leakcap.labels.statistics.logistic_sums import LogisticSums, LogisticWeights
from leakcap.labels.statistics.ridge import Ridge
from leakcap.labels.statistics.shrink import Twins, doubt, refined, twins
from leakcap.simulate.teaching import generator_of

__all__ = ["Logistic"]

FARTHEST = 600.0  # of a score below the best
PENALTIES = (1.0, 0.1, 0.01, 1e-3, 1e-4)  # beside what all rows say: from heavy to hardly any


class Logistic(Ridge):
    """Logistic regression from the sums that `Ridge` takes: its likelihood needs nothing else of the labels.

    Rows are public, so the likelihood of a logistic model depends on labels through `A'Y` alone. The noised sums,
    shrunk as those of `Ridge`, take its place, and a penalty makes up for the noise that is left: the heaviest that no
    lighter one surpasses, by more than noise, in the likelihood of copies of the sums whose noise is independent.
    Discriminants, as `LDA` makes them of these sums, stand for election too, by the same likelihood. Where labels
    follow features closely it is right more often than `Ridge` and `LDA`; a fit takes seconds more.

    Guarantee: as for `Ridge`: `fit` draws once; everything in this object is computed from features and noised sums.

    Args:
        epsilon: differential privacy of each label, at least 1e-6.
        n_classes: number of classes, at least 2; labels are then whole numbers from 0 to `n_classes` - 1.
        classes: names of the classes instead. Public: never taken from the labels.
        delta: probability with which epsilon may fail, above 0 and below 1.
        components: most principal components; "auto" by epsilon, rows, classes and eigenvalues.
        strength: of the ridge that weighs components; "auto" gives as many degrees of freedom as the noise leaves room
            for.
        clip: quantile of the rows' lengths at which they are shortened; "auto" for the median.
        refine: rounds in which the sums are shrunk towards the predictions of ridge regression; "auto" takes up to 3.
        random_state: seed of the fresh noise by which "auto" and the penalty are chosen. It has no part in privacy.

    Attributes:
        classes_: names of the classes, sorted.
        certificate_: what the best attacker can learn of a label.
        sums_: the noised sums: all that was taken from the labels.
        arithmetic_: total variation, at most, between the law of the noised sums and normal noise.
        components_: the public map to components.
        coef_: `(components, classes)`.
        intercept_: `(classes,)`.
        penalty_: on squared weights.
        by_rule_: whether discriminants were likelier than weights under any penalty, and are taken.

    Examples:
        >>> import leakcap as lc
        >>> from sklearn.datasets import make_blobs
        >>> X, y = make_blobs(2000, centers=3, random_state=0, cluster_std=0.5)
        >>> model = lc.labels.Logistic(epsilon=1.0, n_classes=3, random_state=0).fit(X, y)
        >>> bool(model.score(X, y) > 0.9), model.certificate_.epsilon
        (True, 1.0)
    """

    def _learn(self, public: SummedRows, order: npt.NDArray[np.intp]) -> None:
        super()._learn(public, order)
        told, made, shares = self.sums_, public.made_of, self.intercept_
        even = np.outer(told.totals[1:], shares)
        sums, variance = told.balanced[1:, order], told.deviation**2 * (1 - 1 / len(order))
        rows = LogisticSums(made, shares)

        def cleaned(given: Floats, noise: float) -> Floats:
            rounds = refined(given - even, noise, lambda found: np.asarray(made.guess(found, shares)), self.rounds_)
            return np.asarray(even + np.mean(list(rounds), axis=0))

        def by_rule(given: Floats, noise: float) -> LogisticWeights:
            doubted = doubt(given - even, noise)
            return LogisticWeights(
                *discriminants(made.solve @ (cleaned(given, noise) - even), shares, told.labels, doubted)
            )

        copies = twins(sums, variance, generator_of(self.random_state))
        self.penalty_, said, start = self._penalty(rows, copies, lambda seen: cleaned(seen, 2 * variance))
        self.by_rule_ = said < sum(rows.log_likelihood(by_rule(seen, 2 * variance), hidden) for seen, hidden in copies)
        fitted = by_rule(sums, variance) if self.by_rule_ else rows.fit(cleaned(sums, variance), self.penalty_, start)
        self.coef_, self.intercept_ = fitted.weights, fitted.offsets

    def _penalty(
        self, rows: LogisticSums, copies: Twins, cleaned: Callable[[Floats], Floats]
    ) -> tuple[float, float, LogisticWeights]:
        """The penalty under which each copy makes the other likeliest, how likely, and weights to start from.

        A lighter penalty is taken if what it adds is more than the noise on the copies would in one of two cases: light
        ones follow noise, and are then likelier by chance.
        """
        clean, noise = [cleaned(seen) for seen, _ in copies], np.sqrt(2) * self.sums_.deviation
        best, told, kept = PENALTIES[0], -np.inf, list[LogisticWeights]()
        for penalty in PENALTIES:
            starts: Sequence[LogisticWeights | None] = kept or [None] * len(copies)
            found = [rows.fit(seen, penalty, before) for seen, before in zip(clean, starts, strict=True)]
            pairs = zip(found, copies, strict=True)
            said = sum(rows.log_likelihood(model, hidden) for model, (_, hidden) in pairs)
            chance = [rows.doubt(model, before, noise) for model, before in zip(found, kept, strict=bool(kept))]
            if said - told <= np.linalg.norm(chance):
                break
            best, told, kept = penalty, said, found
        return best, told, kept[0]

    def _chances(self, scores: Floats) -> Floats:
        # No class is impossible: a chance of 0 would be the end of every score by logarithms.
        return np.asarray(softmax(np.maximum(scores, scores.max(axis=1, keepdims=True) - FARTHEST), axis=1))
