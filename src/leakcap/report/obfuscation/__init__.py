"""The page of an encoded set."""
