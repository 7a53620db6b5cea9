"""Several answers from one secret, asked beforehand: one noise for all of them, or one for each.

With one noise the stacked answer is analysed as a whole, which needs the least of it. With noise of their own the parts
can leave at different times; their certificates have the same secret, and `leakcap.compose` adds them up.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from leakcap import modes
from leakcap.caps import Cap, CapLike, as_caps
from leakcap.certificates.compose import compose
from leakcap.certificates.composition import Composition
from leakcap.certificates.release import Certificate
from leakcap.errors import InputError
from leakcap.ground.proofs import proves
from leakcap.noise import Noise
from leakcap.noise.shapes import information_by_covariance
from leakcap.planning.certifier import Certifier, Run, certifier
from leakcap.planning.entry import plan
from leakcap.planning.one_secret import PartSource, PartToken, SharedSecret
from leakcap.planning.plans import Plan
from leakcap.planning.released import Release
from leakcap.planning.request import Request
from leakcap.planning.stacked import Stacked
from leakcap.simulate.seeds import Sown, SownTogether

__all__ = ["JointPlan", "plan_together"]

ELSEWHERE = {
    "ledger": "answers that are charged to an account are asked in a session, or planned one by one with the ledger",
    "seed": "a seed makes a simulation, and simulations add up to nothing: leave it out",
}


def plan_together(functions: Sequence[Callable[..., Any]], *data: Any, cap: CapLike, **options: Any) -> JointPlan:
    """Plan several functions of the same data at once, for one secret.

    All are run in the same worlds. The plan that comes back covers the tuple of their answers with one noise, under
    `cap`; `JointPlan.apart` gives every function noise of its own instead.

    Args:
        functions: two or more, each as for `plan`. They are fixed now: none may depend on what another one released.
        *data: the data, as for `plan`.
        cap: what may leak from all answers together: one cap, or a list that must hold together.
        **options: further arguments of `plan`, for lists of worlds (`mode="exact"`, which is the default) or for secret
            seeds (`mode="confidence", randomness="secret"`: one fresh half, and a seed for each function).

    Returns:
        The joint plan, and its parts.

    Raises:
        InputError: an argument cannot be used.
        OutputError: noise cannot cover the functions' outputs.
        CapError: no noise keeps the cap.

    Guarantee: the joint certificate bounds what all answers tell together; `JointPlan.apart` says what holds of parts.

    Examples:
        >>> import numpy as np
        >>> import leakcap as lc
        >>> ages = np.random.default_rng(0).normal(50, 10, size=200)
        >>> both = lc.plan_together([np.mean, np.median], ages, cap=lc.membership(0.6), worlds=64)
        >>> both.certificate.membership_success <= 0.6
        True
    """
    if callable(functions) or not isinstance(functions, Collection):
        raise InputError("the first argument is a list of functions, such as [lc.stats.mean, lc.stats.covariance]")
    asked = tuple(functions)
    if len(asked) < 2 or not all(map(callable, asked)):
        raise InputError("give two functions or more, and nothing else in the list; for one there is leakcap.plan")
    for name, reason in ELSEWHERE.items():
        if options.get(name) is not None:
            raise InputError(f"plan_together takes no {name}: {reason}")
    if options.get("randomness") is not None or options.get("seeds") is not None:
        return JointPlan(plan(SownTogether(tuple(Sown.of(one, len(data)) for one in asked)), *data, cap=cap, **options))
    if options.get("mode", "exact") != "exact" or options.get("design", "worlds") in ("bits", "pool"):
        raise InputError(
            "plan_together is for lists of worlds (mode='exact'): one of them is the secret of all answers. Many "
            "answers with a coin for everybody are asked in a session: lc.Session(data, cap=0.6)"
        )
    joint = plan(Stacked(asked), *data, cap=cap, **{"design": "worlds", **options})
    if joint.certificate.mode != "exact":
        raise InputError("plan_together is for caps on who was used: a pool cap is for one function, or for a session")
    return JointPlan(joint)


class JointPlan:
    """Several functions planned for one secret; custodian side."""

    def __init__(self, joint: Plan) -> None:
        """Made by `plan_together`.

        Args:
            joint: the plan of the functions' answers side by side.
        """
        self.plan = joint
        self._parts: tuple[Plan, ...] | None = None
        self._secret = SharedSecret(joint.run.token)

    @property
    def certificate(self) -> Certificate:
        """What all answers tell together, with one noise for them all."""
        return self.plan.certificate

    @property
    def noise(self) -> Noise:
        """The one noise for all answers."""
        return self.plan.noise

    def release(self) -> Release:
        """All answers at once, under the joint certificate; its value is the tuple of them.

        Returns:
            The released answers.

        Raises:
            AlreadyReleased: they, or one of the parts, were released before.
        """
        self._secret.refuse_begun("release the other parts, not all of them anew")
        return self.plan.release()

    @proves("composition")
    def apart(self, *caps: CapLike) -> tuple[Plan, ...]:
        """A plan for each function, with noise of its own and the same secret; each can be released once, at any time.

        All of them are fixed here, before any is released: their noise does not depend on an answer. So what they tell
        together is bounded by `leakcap.compose(*certificates, data="same")`.

        Args:
            *caps: one for each function, in their order, or one for all: what may leak from that answer alone.

        Returns:
            The plans. Their certificates hold together with the confidence that was asked for.

        Raises:
            InputError: another number of caps; or the parts were planned before, or the plan has a checkpoint.
            AlreadyReleased: the joint answer was released.
            CapError: no noise keeps a cap.

        Guarantee: every certificate is of its answer alone; all share one secret, and no two share noise.
        """
        nodes = [node for _, node in self.plan.run.simulation.node.children()]
        if self._parts is not None:
            raise InputError("the parts are planned already: recap them, before one is released, for other caps")
        if self.plan.run.checkpoint is not None:
            raise InputError("parts are released from one process: plan them without a checkpoint")
        given = caps * len(nodes) if len(caps) == 1 else caps
        if len(given) != len(nodes):
            raise InputError(f"give one cap for each of the {len(nodes)} functions, or one for all")
        self.plan.run.token.refuse_spent()
        ends = np.cumsum([node.size() for node in nodes])
        parts = [slice(end - node.size(), end) for end, node in zip(ends, nodes, strict=True)]
        made = [
            self._part(number, columns, as_caps(cap))
            for number, (columns, cap) in enumerate(zip(parts, given, strict=True))
        ]
        self._parts = tuple(made)
        return self._parts

    def _part(self, number: int, columns: slice, caps: tuple[Cap, ...]) -> Plan:
        run, request = self.plan.run, self.plan.run.request
        assert request is not None
        simulation, (_, node) = run.simulation, run.simulation.node.children()[number]
        pool, weights = simulation.whole_pool, request.settings.weights
        if weights is not None and not isinstance(weights, str):
            weights = np.asarray(weights).ravel()[columns]
        asked = replace(
            request,
            caps=caps,
            settings=replace(request.settings, weights=weights),
            gamma=request.gamma / len(run.simulation.node.children()),
        )
        right = PartToken(self._secret)
        own = replace(
            run,
            simulation=replace(
                simulation,
                table=np.ascontiguousarray(simulation.table[:, columns]),
                node=node,
                whole_pool=None if pool is None else pool[columns],
            ),
            entropy=_another(run.entropy, number),
            token=right,
            request=asked,
            finishing=None,
        )
        if run.sown is not None:
            own = replace(own, sown=run.sown.part(number, columns, node), draw=partial(right.half, run.draw))
        return Plan(caps, own, self._certifier(asked, own), randomness=PartSource(right, self._secret))

    def _certifier(self, request: Request, run: Run) -> Certifier:
        certify = certifier(request, run)

        def certified(caps: tuple[Cap, ...]) -> tuple[modes.Releaser, Certificate]:
            self._secret.refuse_begun(
                "a cap that is chosen after an answer was seen is not covered by adding up. Fix all caps before the "
                "first release, or ask in a session"
            )
            return certify(caps)

        return certified

    @property
    def parts(self) -> tuple[Plan, ...]:
        """The plans of `apart`."""
        if self._parts is None:
            raise InputError("the parts have no noise of their own yet: call apart(...) with a cap for each function")
        return self._parts

    def composed(self) -> Composition:
        """What the parts tell together, by adding up their certificates: `leakcap.compose(..., data="same")`."""
        return compose(*(part.certificate for part in self.parts), data="same")

    @proves("log-det")
    def information_of_parts(self) -> float:
        """Nats that the parts carry together, by the covariance of all their answers; custodian side.

        Guarantee: never above the sum that `composed` states, apart from the sampler's part that it adds.
        """
        if self.plan.run.sown is not None:
            raise InputError("with secret seeds no covariance bounds the information: composed() adds distances up")
        whitened = [part.noise.space.coordinates / part.noise.deviations for part in self.parts]
        return information_by_covariance(np.hstack(whitened))

    def __repr__(self) -> str:
        count = len(self.plan.run.simulation.node.children())
        return f"JointPlan({count} functions, one secret)\n  joint: {self.plan!r}"


def _another(entropy: int, number: int) -> int:
    """A stream of certifying draws for a part: other draws than those of the joint plan and of other parts."""
    words = np.random.SeedSequence(entropy, spawn_key=(2, number)).generate_state(4)
    return int.from_bytes(words.tobytes(), "little")
