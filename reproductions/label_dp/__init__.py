"""Training on labels nobody may see: the tables of *Antipodes of Label Differential Privacy*, made again.

`runs.py` trains (on one GPU, resumable, one JSON a run); `python -m reproductions.label_dp` prints the tables.
"""
