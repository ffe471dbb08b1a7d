"""One pod's cycle, and batches of equal pods: from a profile and a cluster to a node."""
