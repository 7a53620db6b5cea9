"""What leak tests listen to: everything but the compiler, which says once in a process what it compiles."""

import logging

logging.getLogger("numba").setLevel(logging.WARNING)
