"""Tests of `berth.store`."""
