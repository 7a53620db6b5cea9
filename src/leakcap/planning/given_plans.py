"""A plan over given inputs from its request and its run, and what such a plan refuses: all that is about people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from leakcap.errors import InputError
from leakcap.noise import OperatingSystem, Randomness, Seeded
from leakcap.planning.certifier import Run, certifier
from leakcap.planning.plans import Plan
from leakcap.planning.request import Request
from leakcap.planning.told import OutputWords
from leakcap.simulate import Node, Outputs
from leakcap.worlds import GivenInputs

__all__ = ["GIVEN", "InputsRequest", "given_plan"]

GIVEN = "given inputs"  # in the checkpoint
NONE = GivenInputs.of((0, 1))  # a field after others that have values has one


@dataclass(frozen=True, eq=False)
class InputsRequest(Request):
    """What is asked of a list of inputs."""

    inputs: GivenInputs = NONE
    drawn: bool = False  # by a function, one after the other

    def pool_public(self, simulation: Outputs) -> tuple[str, ...]:
        lines = [*self.settings.pool_public, *_constants(simulation.node)]
        if self.drawn:
            lines.append("How the inputs were drawn: independently, by one law; each is as likely as any other.")
        return tuple(lines)

    @property
    def not_promised(self) -> tuple[str, ...]:
        if not self.drawn:
            return ()
        return (
            "The game is over the inputs that were drawn for this list: it is not about all that the law could give.",
        )


class NoOthers:
    """In place of other promises: those are about people in a pool."""

    def compare(self, plan: Plan, **asked: Any) -> NoReturn:
        raise InputError("compare() is about people in a pool, and these are given inputs: plan.recap(cap) tries caps")

    def hints(self, *about: Any) -> tuple[str, ...]:
        """None."""
        return ()


def given_plan(request: InputsRequest, run: Run, outputs: OutputWords = None) -> Plan:
    """The plan, certified."""
    randomness: Randomness = OperatingSystem() if request.seed is None else Seeded(request.seed)
    others: Any = NoOthers()
    certify = certifier(request, run)
    return Plan(request.caps, run, certify, randomness=randomness, advise=_no_advice, others=others, words=outputs)


def _no_advice(*asked: Any, **how: Any) -> NoReturn:
    raise InputError("suggest() tries other worlds of a pool, and these are given inputs: plan.recap(cap) tries caps")


def _constants(node: Node) -> tuple[str, ...]:
    names = sorted({path.rsplit(".", 1)[-1] for path in node.constants() if "." in path and not path.endswith("]")})
    return ("Passed into the answer because it is equal for all inputs: " + ", ".join(names) + ".",) if names else ()
