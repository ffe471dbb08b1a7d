"""A real control plane on loopback, for tests and benchmarks: etcd, kube-apiserver and what else Kubernetes is made of."""
