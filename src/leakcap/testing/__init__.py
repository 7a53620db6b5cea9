"""Checks for what users write themselves: kernels, attacks and mechanisms; and releases to try them on."""

from leakcap.audit.mechanism import check_mechanism
from leakcap.audit.trials import releases
from leakcap.testing.check_attack import check_attack
from leakcap.testing.check_kernel import check_kernel

__all__ = ["check_attack", "check_kernel", "check_mechanism", "releases"]
