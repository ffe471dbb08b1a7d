"""Berth's tests, laid out as the package is."""
