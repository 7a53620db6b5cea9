"""What every room stands on: checks, kinds of arrays, cores, compiled loops, links to proofs. No privacy words."""
