"""*Learnable obfuscation*: its figures and tables, made again, with what the printed figures say about one member."""
