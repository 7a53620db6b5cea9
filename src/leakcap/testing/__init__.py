"""Checks for what users write themselves: kernels, attacks, mechanisms and stores; and releases to try them on."""

from leakcap.audit.mechanism import check_mechanism
from leakcap.audit.trials import releases
from leakcap.testing.check_attack import check_attack
from leakcap.testing.check_kernel import check_kernel
from leakcap.testing.check_store import check_store

__all__ = ["check_attack", "check_kernel", "check_mechanism", "check_store", "releases"]
