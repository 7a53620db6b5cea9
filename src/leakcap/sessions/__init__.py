"""Many answers from one secret: what each costs, who can still pay, and what all of them together allow."""
