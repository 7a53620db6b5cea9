"""Learning from privatised labels."""
