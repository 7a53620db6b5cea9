"""From any function to a certified plan, and from a plan to one release."""
