"""PAC-Private Algorithms (Sridhar, Xiao, Devadas): its tables and figures, made again with leakcap beside them."""
