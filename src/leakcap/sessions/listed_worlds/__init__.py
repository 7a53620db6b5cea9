"""Any function, one of a list of worlds: what many answers tell about who took part, by the exact posterior."""
