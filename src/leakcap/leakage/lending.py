"""Workers of a cluster that take part in the largest products of a certificate, for as long as somebody lends them.

Who lends them is who makes a plan; a certificate is the same, bit for bit, whoever takes part.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from leakcap.simulate.executors import Workers

__all__ = ["lent", "lent_for"]

LEAST_PRODUCTS = 2.0**39  # seconds of work for a core: below that what travels takes longer
_lent: ContextVar[Workers | None] = ContextVar("lent", default=None)


@contextmanager
def lent(workers: Workers | None) -> Iterator[None]:
    """Whatever is certified in this block may be shared with these workers."""
    before = _lent.set(workers)
    try:
        yield
    finally:
        _lent.reset(before)


def lent_for(products: float) -> Workers | None:
    """Those who take part in so many multiplications; None where they are too few, or nobody was lent."""
    return _lent.get() if products >= LEAST_PRODUCTS else None
