"""Pages about what runs did."""
