"""What is wrong with a configuration: all of it, each with its place. Knows nothing of how it is read."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from berth.errors import BerthError


@dataclass(frozen=True, slots=True)
class ConfigMistake:
    """One mistake.

    Attributes
    ----------
    path
        The key (``module.maxNumber``), or the name of the variable or file.
    source
        Where it stands: ``berth.yaml, line 3``, ``BERTH_MODULE_MAX_NUMBER``, ``command line``.
    value
        What stands there; ``None`` where there is no value to show.
    expected
        What was expected instead.
    """

    path: str
    source: str
    value: object
    expected: str

    def __str__(self) -> str:
        place = self.path if self.path == self.source else f"{self.path} ({self.source})"
        got = "" if self.value is None else f" {self.value!r},"
        return f"{place}:{got} expected {self.expected}"


class ConfigError(BerthError):
    """A configuration with mistakes."""

    def __init__(self, mistakes: Sequence[ConfigMistake]) -> None:
        self.mistakes = tuple(mistakes)
        count = "1 mistake" if len(self.mistakes) == 1 else f"{len(self.mistakes)} mistakes"
        lines = "".join(f"\n  {mistake}" for mistake in self.mistakes)
        super().__init__(f"{count} in the configuration:{lines}")


def known_name(name: str, known: Iterable[str], what: str) -> str:
    """What to expect in place of an unknown name: the nearest, else the list of all."""
    names = tuple(known)
    folded = {candidate.casefold(): candidate for candidate in names}
    nearest = get_close_matches(name.casefold(), folded, n=1, cutoff=0.75)
    if nearest:
        return f"a known {what}; did you mean {folded[nearest[0]]}?"
    return f"a known {what}: {', '.join(names)}"
