"""From released numbers back to an answer of the function's own form: tried out before the secret is drawn.

What is made of released numbers is the user's code: a class may refuse a negative variance. After the draw it is too
late to find out, because the release is spent. So simulated releases are rebuilt first, of worlds and noise from fixed
seeds, and a class that fails on them fails then. If it fails on the real one nevertheless, the numbers leave as they
are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leakcap.errors import OutputError
from leakcap.ground.arrays import Floats
from leakcap.noise import GRID, Noise, Seeded, released_vector

__all__ = ["REHEARSALS", "attempted", "rebuilt", "refuse_fragile"]

REHEARSALS, MIN_REHEARSALS = 20, 2
# Products of all rehearsals together. Their number depends on the size of the answer and never on a clock: a run that
# is begun again tries the same.
MAX_PRODUCTS = 2**28


def refuse_fragile(make: Callable[[Floats], Any], noise: Noise, build: Callable[[Any], Any] | None) -> None:
    """An OutputError if a simulated release cannot be made into an answer, and `build` make of it what it does.

    Nothing is drawn from the operating system, nothing is spent, and nothing of the secret is known here.
    """
    coordinates = noise.space.coordinates
    products = max(1, len(noise.space.centre) * noise.space.rank)
    for seed in range(min(REHEARSALS, max(MIN_REHEARSALS, MAX_PRODUCTS // products))):
        source = Seeded(seed)
        vector = released_vector(noise, coordinates[source.below(len(coordinates))], GRID, source)
        value, kind = attempted(make, vector)
        if not kind and build is not None:
            _, kind = attempted(build, value)
        if kind:
            raise OutputError(
                f"a simulated release could not be made into an answer again ({kind}; its text is withheld): nothing "
                "was drawn, and nothing is spent. Let the classes of your answer take whatever numbers noise may give, "
                "such as a negative variance, or return arrays or dicts of numbers"
            )


def rebuilt(make: Callable[[Floats], Any], vector: Floats) -> tuple[Any, str | None]:
    """The answer, or its plain numbers and the reason; a function of released numbers alone."""
    value, kind = attempted(make, vector)
    if not kind:
        return value, None
    return vector.copy(), (
        f"the answer could not be rebuilt from its released numbers ({kind}): value holds them as they are, in the "
        "order of names. They are the release, and there is no other"
    )


def attempted(make: Callable[[Any], Any], given: Any) -> tuple[Any, str]:
    """What is made of something, or the kind of error that is raised. Its text may quote numbers, so it stays here."""
    try:
        return make(given), ""
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # some compiled libraries panic with one
        return None, type(error).__name__
