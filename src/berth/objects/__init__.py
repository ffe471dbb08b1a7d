"""Kubernetes objects as structs: what scheduling reads of them, and nothing of the cluster that they form."""
