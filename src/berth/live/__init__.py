"""A real cluster: the client of its kube-apiserver, and reflectors that keep a `Cluster` as the API server has it."""
