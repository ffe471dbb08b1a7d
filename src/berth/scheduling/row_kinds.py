"""Rows told apart by columns that do not move: what hangs on such columns alone is kept once for all rows that are alike."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import IdColumn


class RowKinds:
    """Kinds of rows; a column that is added splits those that it tells apart.

    A kind that is split keeps its number for those rows that are like its first one.

    Attributes
    ----------
    of_row : int32[n_rows]
        Each row's kind.
    first : int64[n_kinds]
        A row of each kind.
    """

    def __init__(self, n_rows: int) -> None:
        self.of_row: IdColumn = np.zeros(n_rows, dtype=np.int32)
        self.first = np.zeros(min(n_rows, 1), dtype=np.int64)
        self._parent = np.zeros(min(n_rows, 1), dtype=np.int64)

    def add(self, column: NDArray[Any]) -> NDArray[Any]:
        """Tell rows apart by a column, too; return its values by kind."""
        rows = np.flatnonzero(column != column[self.first][self.of_row])
        if len(rows):
            values, code = np.unique(column[rows], return_inverse=True)
            key = self.of_row[rows].astype(np.int64) * len(values) + code
            found, first, kind = np.unique(key, return_index=True, return_inverse=True)
            self.of_row[rows] = len(self.first) + kind
            self.first = np.concatenate([self.first, rows[first]])
            self._parent = np.concatenate([self._parent, found // len(values)])
        return column[self.first]

    def now(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the values of a column that was added earlier by the kinds that there are now."""
        at = np.arange(len(self.first))
        while len(at) > len(values) and (at >= len(values)).any():
            at = np.where(at < len(values), at, self._parent[at])
        return values[at]
