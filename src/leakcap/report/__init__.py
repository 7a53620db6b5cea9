"""Draws frozen records and arrays: pictures for the custodian and for the public. Computes no privacy figure."""
