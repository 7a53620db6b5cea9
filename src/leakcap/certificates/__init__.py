"""Certificates: frozen public records of what holds, and their plain words."""
