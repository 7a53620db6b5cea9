"""Mechanisms that privatise labels, and the exact laws they draw from."""
