"""*Provable Membership Inference Privacy*: Figures 1 and 2, Algorithm 1, Theorems 5 and 7, and attacks on its noise."""
