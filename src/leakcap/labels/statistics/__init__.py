"""Label-private statistics: features are public, so only sums of rows by class need noise."""
