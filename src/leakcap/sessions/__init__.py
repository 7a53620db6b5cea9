"""Sessions: many answers from one secret, each charged to everybody's clock before it is drawn."""
