"""How long to wait before trying again."""

from random import Random


class Backoff:
    """Delays that double up to a longest one, each with a jitter of up to half of it, so that many do not come as one.

    Parameters
    ----------
    first_s, longest_s : float
        [seconds]
    """

    def __init__(self, first_s: float, longest_s: float, random: Random) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._random = random
        self._base_s = first_s

    def next_s(self, at_least_s: float | None = None) -> float:
        """Return the next delay; never less than the server asks for."""
        base = self._base_s
        self._base_s = min(base * 2, self._longest_s)
        return (at_least_s or 0.0) + base * self._random.uniform(0.5, 1.0)

    def reset(self) -> None:
        """Begin with the first delay again: things go well."""
        self._base_s = self._first_s
