"""The exceptions that Berth raises on purpose. Knows nothing of who raises them."""


class BerthError(Exception):
    """Whatever went wrong in a way that a person can be told about."""
