"""Central label privacy on pictures: representations without labels, noised sums, self-training.

Pictures are public and labels are secret. The ladder of a run:

1. `contrastive.py` learns a network from training pictures alone.
2. `releases.py` sums its features by class, with noise: the first of at most two places where labels are read.
3. `selftrain.py` trains the network on what the sums say, twice, the second time on what it says itself:
   post-processing, which costs nothing.
4. From epsilon .2 on the rest of the budget asks again, of the better network: sums over the pictures it doubts (below
   1), or every label one by one among the classes it thinks likely (from 1 on). Then it is trained once more: on
   anchors, or by the likelihood of the responses (`likelihood.py`).

`python -m reproductions.label_dp.central --out FOLDER` runs it on one GPU; `--smoke` on two cores.
"""
