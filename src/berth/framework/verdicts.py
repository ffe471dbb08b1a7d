"""Verdicts of a filter whose answers are worked out once for a shape and kept."""

from dataclasses import dataclass, field

import numpy as np

from berth.cluster.arrays import BoolColumn, IntColumn, Rows


@dataclass(slots=True)
class Verdicts:
    """A code for every row, and the texts of errors.

    Attributes
    ----------
    codes : int64[n_rows]
        0 where the pod fits, positive for the plugin's reasons, minus the number (from 1) of an error.
    """

    codes: IntColumn
    errors: list[str] = field(default_factory=list)

    @property
    def every_row(self) -> BoolColumn:
        """A new mask of all rows (bool[n_rows])."""
        return np.ones(len(self.codes), dtype=np.bool_)

    def of(self, rows: Rows) -> IntColumn:
        """Return the codes of rows as a copy, which the caller may keep and change."""
        return self.codes[rows].copy()

    def fail(self, rows: BoolColumn, text: str) -> None:
        """Give rows an error, unless they have one."""
        self.errors.append(text)
        self.codes[rows & (self.codes >= 0)] = -len(self.errors)

    def error(self, code: int) -> str:
        """Return the text behind a negative code."""
        return self.errors[-code - 1]
