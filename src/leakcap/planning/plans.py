"""What a plan is: the custodian's, until it is released."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.caps import Cap, CapLike, as_caps
from leakcap.certificates.display import Displayed
from leakcap.certificates.release import Certificate
from leakcap.certificates.text import in_a_line
from leakcap.errors import AlreadyReleased, InputError, LeakcapError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats
from leakcap.modes.interface import Releaser
from leakcap.noise import Noise, Randomness, Seeded
from leakcap.planning.accuracy import (
    LEVELS,
    Expected,
    Summary,
    half_widths,
    mean_and_spread,
    noise_widths,
    worlds_drawn,
)
from leakcap.planning.certifier import Certifier, Run
from leakcap.planning.comparison import Alternatives, Comparison
from leakcap.planning.finishing import widths_of
from leakcap.planning.offers import Offered
from leakcap.planning.rebuilding import attempted, rebuilt, refuse_fragile
from leakcap.planning.released import Release, remember_plan
from leakcap.planning.suggestions import Suggestions
from leakcap.planning.told import OutputWords, Told, cost_words, labels_for
from leakcap.simulate import rebuild
from leakcap.worlds import Worlds

__all__ = ["LEVELS", "Plan", "certifier_of", "release_of_trial", "spend_on_trials", "with_noise"]

MAX_NAMED = 10_000  # outputs that are given names


class Plan(Displayed):
    """A calibrated, certified release that has not been made yet. Custodian side: never published or pickled."""

    _custodian_only = True

    def __init__(
        self,
        caps: tuple[Cap, ...],
        run: Run,
        certifier: Certifier,
        *,
        randomness: Randomness,
        advise: Callable[..., Suggestions] | None = None,
        others: Alternatives | None = None,
        words: OutputWords = None,
    ) -> None:
        self.caps, self.run = caps, run
        self._words, self.labels = words, labels_for(self._names(), words)
        began = time.perf_counter()
        self.releaser, self.certificate = certifier(caps)
        self._seconds = time.perf_counter() - began
        self.randomness = randomness
        self.offered: Offered | None = None  # what only its maker knows about it, for `suggest`
        self._certifier, self._advise, self._others = certifier, advise, others
        self._token, self._checkpoint = run.token, run.checkpoint
        self._finishing = None if run.finishing is None else run.finishing.knowing(self.releaser.noise)

    @property
    def worlds(self) -> Worlds:
        """The possible worlds: who takes part in each."""
        self._refuse_coins("worlds")
        return self.run.worlds

    @property
    def outputs(self) -> Floats:
        """`(m, d)`: what the function returned in each world, flattened."""
        self._refuse_coins("outputs")
        return self.run.simulation.table

    def _refuse_coins(self, what: str) -> None:
        if self.run.design == "pool":
            raise InputError(f"under a pool cap there are no {what}: everybody takes part, and all rows are used")
        if self.run.design == "bits":
            raise InputError(
                f"design='bits' has no {what}: everybody takes part by a coin of their own, so that every subset is "
                "possible. plan.summary() has the expected errors; design='worlds' makes a list of worlds"
            )

    @property
    def noise(self) -> Noise:
        """The noise that will be added."""
        return self.releaser.noise

    @property
    def exposure(self) -> Floats:
        """Certified membership success against each unit, in the order of the units; given inputs have none."""
        return self.releaser.exposure

    def recap(self, cap: CapLike) -> Plan:
        """Another cap for the same simulation, with the same right to release once.

        Args:
            cap: one cap, or a list that must hold together.

        Returns:
            A new plan that shares worlds, outputs and the right to release with this one.
        """
        return _another(self, as_caps(cap), self._certifier)

    def release(self) -> Release:
        """Draw the secret world and the noise, and rebuild the answer. Once for a plan and all its recaps.

        With a checkpoint, a resumed plan that was released already hands out that same release. Before anything is
        drawn, 20 simulated releases are rebuilt (fewer of very large answers): what fails on them fails in time. If the
        answer cannot be rebuilt nevertheless, `Release.value` is its numbers and `Release.not_rebuilt` says why.

        Returns:
            The released answer with its certificate.

        Raises:
            AlreadyReleased: this plan, or a recap of it, or a copy of its checkpoint was released before.
            OutputError: simulated releases cannot be rebuilt. Nothing is drawn or spent.
            LeakcapError: this process was forked off after the plan was made.
        """
        widths, names = self._widths(), self._names()
        stored = self._checkpoint.released() if self._checkpoint else None
        # Squared distances that add up with those of other answers; where there are none, a release is the only one.
        charged, charge = self.run.charged, (getattr(self.releaser, "squares", None), self.certificate.sampler_distance)
        if charged is not None:
            known = charged.released(self.caps, *charge)
            if known is not None and stored is None and self._checkpoint is not None:
                raise AlreadyReleased(
                    "this was released before, with a plan of its own that lies elsewhere: keep that release. This "
                    "plan was made anew, and does not belong to it"
                )
            stored = known or stored
        quiet = self.certificate.kind == "simulation" or stored is not None
        if stored is None:
            self._token.refuse_spent()
            if not quiet:
                self._token.refuse_child()
            refuse_fragile(self.answer_of, self.noise, self.offered.build if self.offered else None)
        self._token.spend(quiet or charged is not None)
        if stored is None:
            vector = self.releaser.vector(self.randomness)
            if self._checkpoint is None and charged is None:
                return self._released(vector, names, widths)
            # Stored before it is seen: a run that is killed here and resumed has no other value to give.
            stored = {
                "vector": vector,
                "widths": np.array([width for _, width in widths]),
                "certificate": self.certificate.to_json(),
            }
            if self._checkpoint is not None:
                stored = self._checkpoint.commit(**stored)
        if charged is not None:
            stored = charged.commit(self.caps, *charge, **stored)
        certificate = Certificate.from_json(str(stored["certificate"]))
        if charged is None and certificate.capped != self.certificate.capped:
            raise AlreadyReleased(
                "this checkpoint was released already, under other caps or with other noise: resume it with those of "
                "that release to see it again"
            )
        widths = tuple(zip(LEVELS, stored["widths"], strict=False))
        return self._released(stored["vector"], names, widths, certificate)

    def _names(self) -> tuple[str, ...]:
        node = self.run.simulation.node
        return tuple(node.labels()) if node.size() <= MAX_NAMED else ()

    def _released(
        self,
        vector: Floats,
        names: tuple[str, ...],
        widths: tuple[tuple[float, Floats], ...],
        certificate: Certificate | None = None,
    ) -> Release:
        value, reason = rebuilt(self.answer_of, vector)
        finishing = self._finishing
        if finishing is not None and reason is None:
            # Form and error bars, too: under a pool cap nothing but the released sums may have a part in them.
            value, node, numbers = finishing.released(vector)
            if self.run.design == "pool":
                own = replace(finishing, node=node)
                near, failed = attempted(partial(own.noised, self.noise), vector)
                widths = () if failed else widths_of(near - numbers)
            names, vector = (tuple(node.labels()) if node.size() <= MAX_NAMED else ()), numbers
        labels = self.labels if len(self.labels) == len(names) else names
        told = Told.of(self.run, labels, widths[-1][1] if widths else None)
        made = Release(value, certificate or self.certificate, names, vector, _widths=widths, not_rebuilt=reason)
        return remember_plan(replace(made, labels=told.labels, notes=told.notes), self)

    def answer_of(self, vector: Floats) -> Any:
        """What is made of a released vector: the answer in the function's own form.

        Args:
            vector: the noised numbers, as the plan's releaser gives them.

        Returns:
            The answer. Nothing is spent: it is a function of the vector alone.
        """
        finishing = self._finishing
        return rebuild(self.run.simulation.node, vector) if finishing is None else finishing.released(vector)[0]

    @property
    def released_certificate(self) -> Certificate | None:
        """The certificate under which this plan's checkpoint was released, or None."""
        stored = self._checkpoint.committed() if self._checkpoint else None
        return None if stored is None else Certificate.from_json(str(stored["certificate"]))

    def forget(self) -> None:
        """Remove the checkpoint of this plan, if it has one: worlds, outputs and the stored release."""
        if self._checkpoint is not None:
            self._checkpoint.forget()

    def summary(self) -> Summary:
        """Expected error of each output: what halving costs and what noise costs; time and memory."""
        pool, outputs = self.run.simulation.whole_pool, self.run.simulation.table
        centre, halving = mean_and_spread(outputs, pool, self.run.worlds.shares)
        noise, made = self.noise.output_deviations, self._finishing
        noise = noise if made is None else made.deviations(self.noise, outputs)
        told = Told.of(self.run, self.labels, np.hypot(halving, noise))
        return Summary(
            names=told.labels or tuple(islice(self.run.simulation.node.labels(), MAX_NAMED)),
            answer=centre,
            halving=halving,
            noise=noise,
            certificate=self.certificate,
            forecast=cost_words(self.run),
            seconds=self.seconds,
            hints=(*told.sentences, *(self._others.hints(self, centre, (halving, noise)) if self._others else ())),
        )

    @property
    def seconds(self) -> float:
        """That the whole plan took, compiling included."""
        return self.run.seconds + self._seconds

    def expected(self, score: Callable[[Any], float], releases: int = 20, seed: int = 0) -> Expected:
        """What `score(value)` would be for a released value: its mean and spread over simulated releases.

        Nothing is spent and nothing leaves. Custodian side: scores may reveal something about the data.

        Args:
            score: function of a released value, of an estimator the fitted one, that returns a number.
            releases: number of releases to simulate.
            seed: seed of the simulated releases.

        Returns:
            Mean and spread of the score, and its mean without noise.
        """
        checks.count(releases=releases)
        node, source = self.run.simulation.node, Seeded(seed)
        build = self.offered.build if self.offered else lambda value: value
        noised = [float(score(build(self.answer_of(self.releaser.vector(source))))) for _ in range(releases)]
        outputs = self.run.simulation.table
        worlds, times = worlds_drawn(len(outputs), self.run.worlds.shares, releases, seed)
        plain = np.repeat([float(score(build(rebuild(node, outputs[world])))) for world in worlds], times)
        return Expected(float(np.mean(noised)), float(np.std(noised)), float(np.mean(plain)), releases)

    def suggest(
        self,
        score: Callable[[Any], float] | None = None,
        *,
        strata: Mapping[str, npt.ArrayLike] | None = None,
        worlds: int = 256,
        releases: int = 100,
        seconds: float = 120.0,
        seed: int = 0,
    ) -> Suggestions:
        """Which knob would buy most utility for these data and caps, each tried alone, by simulation.

        Tried are more worlds, clipped outputs, other weights, other rates, strata, and what the maker of the plan
        offers (of an estimator: its regularisation). Nothing is spent, nothing leaves, nothing is certified: a plan
        with the new setting is. The figures are the custodian's: they tell about the data.

        Args:
            score: of a released value (of an estimator: of the fitted one), higher is better. None: an estimator's own
                utility; otherwise minus the error of the outputs, relative to the answer on the whole pool.
            strata: groups to try, each a label for every row, under the name that the table should show.
            worlds: in how many worlds settings are compared that need the function to be run again, at most.
            releases: simulated, of every setting.
            seconds: that running the function again may take, about; what does not fit is left out, and named.
            seed: of the simulated releases: the same gives the same figures.

        Returns:
            The knobs, best first, each with the expected utility with and without it.

        Raises:
            InputError: an argument cannot be used, or the plan has another mode than "exact".
        """
        if self._advise is None:
            raise InputError("this plan was made by hand: suggest() is for plans of leakcap.plan")
        how = {"worlds": worlds, "releases": releases, "seconds": seconds, "seed": seed}
        return self._advise(self, score, strata=strata or {}, **how)

    def compare(
        self,
        bounds: Any = None,
        rows_per_unit: int | None = None,
        *,
        worlds: int = 1024,
        answers: int = 2048,
        seed: int = 0,
    ) -> Comparison:
        """What each promise would cost for this function and these data, at the same success of the attacker.

        Compared are worlds, a coin for everybody (`design="bits"`), pool caps, and plain differential privacy for the
        statement of a pool cap: Laplace noise, (epsilon, delta)-DP and zCDP by normal noise. The success is the
        smallest that the plan's membership or pool caps allow. Nothing is spent, nothing leaves, nothing is certified.
        The figures are the custodian's: they tell about the data.

        Args:
            bounds: for pool caps and differential privacy, as for `plan`; counts and shares need none. None: those of
                the plan, if it has some. They must not come from the data.
            rows_per_unit: the most rows of one unit that count, for the same promises; needed where a unit has several.
            worlds: to simulate, where the plan has none.
            answers: to simulate, where errors have no closed form.
            seed: of the simulated answers: the same gives the same figures.

        Returns:
            The promises, the least total error first; within 10 %, the stronger one.

        Raises:
            InputError: an argument cannot be used, or no cap is about one person.
        """
        if self._others is None:
            raise InputError("this plan was made by hand: compare() is for plans of leakcap.plan")
        return self._others.compare(
            self, bounds=bounds, rows_per_unit=rows_per_unit, worlds=worlds, answers=answers, seed=seed
        )

    def _widths(self) -> tuple[tuple[float, Floats], ...]:
        pool, finishing, noise = self.run.simulation.whole_pool, self._finishing, self.noise
        if self.run.design == "given":  # the noise is all that stands between the answer and what leaves
            return noise_widths(noise.output_deviations, noise.law)
        if pool is None or self.run.design == "pool":
            return ()  # under a pool cap they follow from what was released
        if finishing is not None:
            return widths_of(finishing.noised(noise) - pool)
        return half_widths(self.run.simulation.table, pool, noise.output_deviations, noise.law)

    def __reduce__(self) -> Any:
        raise LeakcapError("a plan is custodian-side and is not pickled; pickle the release or save its certificate")

    def __repr__(self) -> str:
        kind, d, design = self.certificate.kind, self.certificate.outputs, self.run.design
        drawn = f"design={design!r}" if design in ("bits", "pool") else f"worlds={self.run.worlds.m}"
        return (
            f"Plan(kind={kind!r}, {drawn}, outputs={d}, noise std={self.noise.std:.4g})\n"
            f"  {in_a_line(self.certificate)}\n"
            "  .summary() says what it costs, .certificate what it promises, .release() releases once"
        )


def spend_on_trials(plan: Plan) -> None:
    """Releases whose secrets are told are none for the public, but no other may follow as if they had not been."""
    with suppress(AlreadyReleased):
        plan._token.spend(quiet=True)


def release_of_trial(plan: Plan, vector: Floats) -> Release:
    """What `release()` makes of a released vector, error bars included: for audits, of a plan that is spent."""
    return plan._released(vector, plan._names(), plan._widths())


def certifier_of(plan: Plan) -> Certifier:
    """What certified a plan, and may certify more of the same simulation."""
    return plan._certifier


def with_noise(plan: Plan, releaser: Releaser, certificate: Certificate) -> Plan:
    """The same plan with other noise that its own certifier has certified for the same caps, and the same right to
    release once."""
    other = _another(plan, plan.caps, lambda _: (releaser, certificate))
    other._certifier = plan._certifier
    return other


def _another(plan: Plan, caps: tuple[Cap, ...], certifier: Certifier) -> Plan:
    other = Plan(
        caps,
        plan.run,
        certifier,
        randomness=plan.randomness,
        advise=plan._advise,
        others=plan._others,
        words=plan._words,
    )
    other.offered = plan.offered
    return other
