"""Learnable obfuscation: rows are mixed, masked and noised, and a server learns from what is left."""
