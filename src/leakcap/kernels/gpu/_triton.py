"""Triton, or stand-ins that let the modules with its kernels be read where it is not installed."""

from __future__ import annotations

from typing import Any

__all__ = ["TensorDescriptor", "jit", "tl"]

tl: Any = None
TensorDescriptor: Any = None


def jit(kernel: Any) -> Any:
    """The kernel, compiled at its first launch."""
    return kernel


try:
    import triton  # type: ignore[import-not-found,unused-ignore]
    import triton.language as tl  # type: ignore[no-redef,import-not-found,unused-ignore]
    from triton.tools.tensor_descriptor import (  # type: ignore[no-redef,import-not-found,unused-ignore]
        TensorDescriptor,
    )

    jit = triton.jit
except ImportError:
    pass
