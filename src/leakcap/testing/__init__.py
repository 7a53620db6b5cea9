"""Checks for what users bring along: kernels of their own."""

from leakcap.testing.kernels import check_kernel

__all__ = ["check_kernel"]
