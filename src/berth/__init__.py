"""Berth: a Kubernetes scheduler that scores every node, adds and removes pods, and heeds forecasts."""
