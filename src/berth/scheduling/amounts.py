"""What is used and offered on every node, as floats side by side: what rules of resources are applied to."""

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import IntColumn
from berth.cluster.cluster import Cluster

Floats = NDArray[np.float64]

MAX_EXACT = 1 << 46
"""Amounts below it, times a score of up to 127, are whole numbers that floats hold exactly."""

_MAX_ONE_BY_ONE = 32


class Amounts:
    """A column for each resource, and one more where defaults for silent containers count (`Term.counts_silent`).

    Kept with the cluster, and brought up to its version whenever it is asked for.

    Attributes
    ----------
    used, offered, free : float64[n_columns, n_rows]
        Whole numbers. [milli-CPU, bytes or counts]
    is_exact : bool
        Whether all amounts are small enough for arithmetic in floats to be exact, and none is negative.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._keys: dict[tuple[bool, int], int] = {}
        self._version = -1
        self._has_none: list[bool] = []
        self._scratch: Floats = np.empty((0, 0))
        self.used: Floats = np.empty((0, 0))
        self.offered: Floats = np.empty((0, 0))
        self.free: Floats = np.empty((0, 0))
        self.is_exact = True

    @classmethod
    def of(cls, cluster: Cluster) -> "Amounts":
        """Return the cluster's amounts as they are now."""
        amounts: Amounts | None = cluster.derived.get("Amounts")
        if amounts is None:
            amounts = cluster.derived["Amounts"] = cls(cluster)
        if amounts._version != cluster.log.version:
            amounts._update()
        return amounts

    def column(self, counts_silent: bool, resource_id: int) -> int:
        """Return the column of a resource; it stays what it is."""
        key = counts_silent, resource_id
        column = self._keys.get(key)
        if column is None:
            column = self._keys[key] = len(self._keys)
            self._fill()
        return column

    def all_offer(self, column: int) -> bool:
        """Tell whether every row has some of a column's resource."""
        return not self._has_none[column]

    def scratch(self, n: int, width: int) -> Floats:
        """Return memory to compute in, of the last caller's values: float64[n, width]."""
        if self._scratch.shape[0] < n or self._scratch.shape[1] < width:
            self._scratch = np.empty((n, width))
        return self._scratch[:n, :width]

    def _update(self) -> None:
        log = self._cluster.log
        rows = log.rows_since(self._version) if self._version >= 0 else None
        if rows is None or len(rows) > _MAX_ONE_BY_ONE:
            self._fill()
            return
        for key, column in self._keys.items():
            used, offered = self._source(*key)
            for row in rows:
                amount, of = used.item(row), offered.item(row)
                self.used[column, row] = amount
                self.offered[column, row] = of
                self.free[column, row] = of - amount
                if not of:
                    self._has_none[column] = True
                if not (0 <= amount < MAX_EXACT and 0 <= of < MAX_EXACT):
                    self.is_exact = False
        self._version = log.version

    def _fill(self) -> None:
        size = len(self._keys), self._cluster.nodes.n_rows
        self.used, self.offered, self.free = np.empty((3, *size))
        self._has_none = [False] * size[0]
        self.is_exact = True
        for key, column in self._keys.items():
            used, offered = self._source(*key)
            self.used[column], self.offered[column] = used, offered
            np.subtract(self.offered[column], self.used[column], out=self.free[column])
            self._has_none[column] = bool((offered == 0).any())
            for amounts in (used, offered):
                if int(amounts.min(initial=0)) < 0 or int(amounts.max(initial=0)) >= MAX_EXACT:
                    self.is_exact = False
        self._version = self._cluster.log.version

    def _source(self, counts_silent: bool, resource_id: int) -> tuple[IntColumn, IntColumn]:
        cluster = self._cluster
        offered = cluster.nodes.allocatable.of(resource_id)
        if counts_silent:
            return (cluster.nonzero_milli_cpu, cluster.nonzero_memory)[resource_id], offered
        return cluster.requested.of(resource_id), offered
