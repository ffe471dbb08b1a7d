"""What is wrong with a file of rows: the first of its mistakes, and how many there are."""

from collections.abc import Sequence
from dataclasses import dataclass

from berth.errors import BerthError

SHOWN_MISTAKES = 20


@dataclass(frozen=True, slots=True)
class RowMistake:
    """One mistake.

    Attributes
    ----------
    file
        The file's path as it was given.
    row
        ``line 3`` or ``[2]``; empty where it is about the whole file.
    field
        The field's name; empty where it is about the whole row.
    value
        What stands there; ``None`` where there is nothing to show.
    expected
        What was expected instead.
    """

    file: str
    row: str
    field: str
    value: object
    expected: str

    def __str__(self) -> str:
        place = ", ".join(part for part in (self.file, self.row, self.field) if part)
        got = "" if self.value is None else f" {_short(self.value)},"
        return f"{place}:{got} expected {self.expected}"


class SourceError(BerthError):
    """A file that can't be used as it is; ``mistakes`` holds the first ones, ``n_more`` counts the rest."""

    def __init__(self, mistakes: Sequence[RowMistake], n_more: int = 0) -> None:
        self.mistakes = tuple(mistakes)
        self.n_more = n_more
        super().__init__("\n".join(self.lines()))

    def lines(self) -> list[str]:
        """Return the message's lines."""
        more = [f"and {self.n_more} more"] if self.n_more else []
        return [*map(str, self.mistakes), *more]


class Mistakes:
    """Collects the mistakes of one file."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._shown: list[RowMistake] = []
        self._n_more = 0

    def __len__(self) -> int:
        return len(self._shown) + self._n_more

    def add(self, row: str, field: str, value: object, expected: str) -> None:
        """Note one mistake; beyond the first ones it is only counted."""
        if len(self._shown) < SHOWN_MISTAKES:
            self._shown.append(RowMistake(self._file, row, field, value, expected))
        else:
            self._n_more += 1

    def lines(self) -> list[str]:
        """Return what was collected as text."""
        return SourceError(self._shown, self._n_more).lines() if self._shown else []

    def raise_any(self) -> None:
        """Raise what was collected, if anything was."""
        if self._shown:
            raise SourceError(self._shown, self._n_more)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
