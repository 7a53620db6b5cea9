"""What "PAC Privacy" reports, run again."""
