"""Networks trained in a session: every step is a noised sum over people of gradients, cut row by row."""
