"""Figures, not tests: every comparison is a ratio measured side by side in one process."""
