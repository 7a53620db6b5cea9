"""The kernels' inner loops, compiled by numba on first use. One thread each: callers split the work."""
