"""Checks for what users bring along: kernels, attacks, mechanisms; and releases to try them on."""

from leakcap.audit.mechanism import check_mechanism
from leakcap.audit.trials import releases
from leakcap.testing.attacks import check_attack
from leakcap.testing.kernels import check_kernel

__all__ = ["check_attack", "check_kernel", "check_mechanism", "releases"]
