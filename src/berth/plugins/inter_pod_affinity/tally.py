"""Sums per topology domain, and the rows that a change of them concerns. Knows no pods and no terms."""

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import NONE, BoolColumn, IntColumn, Rows
from berth.cluster.nodes import NodeTable

Slots = NDArray[np.int32]

NODE = "the node itself"
"""A topology key (no label can be called so) of which every row is a domain of its own."""


DEFAULT_KEYS = (
    "kubernetes.io/hostname",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)
"""What an empty topology key of a preferred term meant in 1.7: any of these."""

_AND = "\n"
"""Joins the labels of a key whose domains share the values of all of them; no label has it in its name."""


class Tally:
    """For each topology key an amount per value of the label.

    A row's slot is its label's value id plus one; slot 0 is for rows without the label and stays 0.

    Parameters
    ----------
    presence : bool
        Only whether a sum is above 0 matters; else every change of it counts as one.
    any_of : tuple of str
        The labels of which the empty key means any; none: the empty key is a label that no node has.
    """

    def __init__(self, nodes: NodeTable, *, presence: bool, any_of: tuple[str, ...] = ()) -> None:
        self.sums: dict[str, IntColumn] = {}
        self._nodes = nodes
        self._presence = presence
        self._slots: dict[str, Slots] = {}
        self._touched: dict[str, set[int]] = {}
        # Nodes that share at least one label are counted once: those that share one, less those that share two, and so on.
        self._parts_of_empty = [
            (_AND.join(keys), 1 if n % 2 else -1)
            for n in range(1, len(any_of) + 1)
            for keys in combinations(any_of, n)
        ]

    def slots(self, key: str) -> Slots:
        """Return every row's slot (int32[n_rows])."""
        slots = self._slots.get(key)
        if slots is None:
            slots = self._slots[key] = self._current_slots(key)
            self.sums[key] = np.zeros(int(slots.max(initial=0)) + 1, dtype=np.int64)
        return slots

    def holds(self) -> bool:
        """Tell whether the nodes still lie in the domains that they lay in."""
        return all(np.array_equal(slots, self._current_slots(key)) for key, slots in self._slots.items())

    def add(self, key: str, rows: NDArray[np.int32], amount: int = 1) -> None:
        """Add an amount for each of the rows (one may stand there several times)."""
        if not key and self._parts_of_empty:
            for part, sign in self._parts_of_empty:
                self.add(part, rows, sign * amount)
            return
        if not len(rows):
            return
        slots = self.slots(key)[rows]
        sums = self.sums[key]
        sums += np.bincount(slots, minlength=len(sums)) * amount
        sums[0] = 0

    def change(self, key: str, row: int, amount: int) -> None:
        """Add an amount for one row, and note the domain that this changes."""
        if not key and self._parts_of_empty:
            for part, sign in self._parts_of_empty:
                self.change(part, row, sign * amount)
            return
        slot = int(self.slots(key)[row])
        if slot == 0:
            return
        sums = self.sums[key]
        before = int(sums[slot])
        sums[slot] = before + amount
        if not self._presence or (before > 0) != (before + amount > 0):
            self._touched.setdefault(key, set()).add(slot)

    def of(self, key: str, rows: Rows) -> IntColumn:
        """Return the sums that hold for rows (int64[n])."""
        slots = self.slots(key)
        taken: IntColumn = self.sums[key][slots[rows]]
        return taken

    def has(self, key: str, rows: Rows) -> BoolColumn:
        """Tell which rows have the label."""
        labelled: BoolColumn = self.slots(key)[rows] > 0
        return labelled

    def is_empty(self) -> bool:
        """Tell whether every sum is 0."""
        return not any(sums.any() for sums in self.sums.values())

    def mark_touched(self, rows: BoolColumn) -> None:
        """Mark the rows of all domains that changed since the last call."""
        for key, slots in self._touched.items():
            changed = np.zeros(len(self.sums[key]), dtype=np.bool_)
            changed[list(slots)] = True
            rows |= changed[self._slots[key]]
        self._touched.clear()

    def _current_slots(self, key: str) -> Slots:
        if key == NODE:
            return np.arange(1, self._nodes.n_rows + 1, dtype=np.int32)
        if _AND in key:
            parts = np.stack([self._current_slots(part) for part in key.split(_AND)])
            numbers = np.unique(parts, axis=1, return_inverse=True)[1].reshape(-1) + 1
            return np.where((parts > 0).all(axis=0), numbers, 0).astype(np.int32)
        column = self._nodes.labels.column(key)
        slots: Slots = column - np.int32(NONE)
        return slots
