"""Everything that only the custodian may open: keys, folders, checkpoints, and what was spent."""
