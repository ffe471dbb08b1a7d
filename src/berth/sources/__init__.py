"""Where things are read from and written to: snapshots of clusters as kubectl writes them."""
