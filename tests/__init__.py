"""The tests."""

import os

# As in the Makefile, and before numpy is there: threads of the linear algebra in processes that share the cores wait.
os.environ.setdefault("OMP_NUM_THREADS", "1")
