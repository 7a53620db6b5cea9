"""Checks for what users bring along: kernels, mechanisms, releases."""

from leakcap.audit.mechanism import check_mechanism
from leakcap.audit.trials import releases
from leakcap.testing.kernels import check_kernel

__all__ = ["check_kernel", "check_mechanism", "releases"]
