"""The exception hierarchy, used by all layers."""


class BerthError(Exception):
    """Whatever Berth raises on purpose; its text is a sentence for the user."""
