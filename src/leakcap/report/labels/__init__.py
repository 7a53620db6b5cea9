"""The page of privatised labels."""
