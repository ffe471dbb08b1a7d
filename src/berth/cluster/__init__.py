"""The state of a cluster as columns: nodes are rows, pods are rows of a second table. Knows no clock and no API server."""
