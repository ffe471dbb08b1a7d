"""The root of every error Berth raises on purpose."""


class BerthError(Exception):
    """Something Berth was asked or given is wrong, or the world it works with is."""
