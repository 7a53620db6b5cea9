"""A standing mutation run: small faults, each with the tests that must fail when it is planted."""
