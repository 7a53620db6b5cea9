"""*PAC Privacy*: its examples, made again, the paper's figures beside ours and the reason where they differ."""
