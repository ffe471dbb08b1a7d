"""Rounds of the scheduling module on a real cluster: what was planned is carried out, exactly once."""
