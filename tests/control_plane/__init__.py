"""A real control plane for tests, and what may stand before it."""
