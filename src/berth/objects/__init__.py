"""Kubernetes objects, as read from the API. Knows nothing of scheduling."""
