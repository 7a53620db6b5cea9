"""Parties that hold rows and answer one question about all of them, without showing any."""
