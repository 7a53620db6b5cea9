"""Synthetic data as post-processing of a private release."""
