"""A real control plane for tests: etcd, kube-apiserver and what else Kubernetes is made of, on loopback."""
