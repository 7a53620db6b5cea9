"""Release any computation on private data, and cap what any adversary can learn from it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from leakcap.version import __version__

if TYPE_CHECKING:
    from leakcap import audit, cluster, convert, estimators, labels, local, obfuscation, sql, stats, synthetic, testing
    from leakcap.caps import (
        any_inference,
        identification,
        membership,
        mip,
        mutual_information,
        name_a_member,
        pool_membership,
        precision,
        task,
        true_positive_rate,
    )
    from leakcap.certificates.compose import compose
    from leakcap.certificates.composition import Composition
    from leakcap.certificates.release import Certificate
    from leakcap.certificates.session import SessionCertificate
    from leakcap.cluster.parted.partitions import Partitions, partitions
    from leakcap.errors import (
        AlreadyReleased,
        BudgetError,
        CapError,
        InputError,
        LeakcapError,
        NumericalError,
        OutputError,
        RepeatedReleaseWarning,
    )
    from leakcap.kernels import kernel
    from leakcap.kernels.additive import additive
    from leakcap.kernels.blocks import blocks
    from leakcap.planning.entry import plan, release
    from leakcap.planning.online import Online
    from leakcap.planning.optimising import optimize_noise
    from leakcap.planning.plans import Plan
    from leakcap.planning.released import Release
    from leakcap.planning.settings import Settings
    from leakcap.planning.together import JointPlan, plan_together
    from leakcap.planning.verify import verify
    from leakcap.report.release.saved import load
    from leakcap.server.remote import connect
    from leakcap.sessions.session import Session
    from leakcap.simulate.run_report import RunReport

__all__ = [
    "AlreadyReleased",
    "BudgetError",
    "CapError",
    "Certificate",
    "Composition",
    "InputError",
    "JointPlan",
    "LeakcapError",
    "NumericalError",
    "Online",
    "OutputError",
    "Partitions",
    "Plan",
    "Release",
    "RepeatedReleaseWarning",
    "RunReport",
    "Session",
    "SessionCertificate",
    "Settings",
    "__version__",
    "additive",
    "any_inference",
    "audit",
    "blocks",
    "cluster",
    "compose",
    "connect",
    "convert",
    "estimators",
    "identification",
    "kernel",
    "labels",
    "load",
    "local",
    "membership",
    "mip",
    "mutual_information",
    "name_a_member",
    "obfuscation",
    "optimize_noise",
    "partitions",
    "plan",
    "plan_together",
    "pool_membership",
    "precision",
    "release",
    "sql",
    "stats",
    "synthetic",
    "task",
    "testing",
    "true_positive_rate",
    "verify",
]

# Loaded on first use: `leakcap --help` should not wait for numpy and scipy.
_HOMES = {
    "caps": "any_inference identification membership mip mutual_information name_a_member "
    "pool_membership precision task true_positive_rate",
    "certificates.compose": "compose",
    "certificates.composition": "Composition",
    "certificates.release": "Certificate",
    "certificates.session": "SessionCertificate",
    "errors": "AlreadyReleased BudgetError CapError InputError LeakcapError NumericalError OutputError "
    "RepeatedReleaseWarning",
    "kernels": "kernel",
    "kernels.additive": "additive",
    "kernels.blocks": "blocks",
    "cluster.parted.partitions": "Partitions partitions",
    "planning.entry": "plan release",
    "planning.online": "Online",
    "planning.optimising": "optimize_noise",
    "planning.plans": "Plan",
    "planning.released": "Release",
    "planning.settings": "Settings",
    "planning.together": "JointPlan plan_together",
    "planning.verify": "verify",
    "report.release.saved": "load",
    "server.remote": "connect",
    "sessions.session": "Session",
    "simulate.run_report": "RunReport",
}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}
_MODULES = {"audit", "caps", "convert", "datasets", "errors", "estimators", "labels", "local", "stats", "testing"}
_MODULES |= {"cluster", "obfuscation", "sql", "synthetic"}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"leakcap.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'leakcap' has no attribute {name!r}")
    found = getattr(import_module(f"leakcap.{_HOME[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
