"""Columns that grow, and strings as small integers."""

from collections.abc import Hashable
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

IntColumn = NDArray[np.int64]
IdColumn = NDArray[np.int32]
FloatColumn = NDArray[np.float64]
BoolColumn = NDArray[np.bool_]
Rows = slice | NDArray[np.intp]
"""Rows of a table: a slice (all of them, without a copy) or their numbers."""

ALL_ROWS = slice(None)
NONE = -1
"""An id that stands for "there is none"."""

K = TypeVar("K", bound=Hashable)


class GrowingArray:
    """A one-dimensional array with room to grow; new entries hold ``fill``.

    Attributes
    ----------
    values : array[size]
        The entries as a view: valid until the array grows.
    """

    __slots__ = ("_data", "_fill", "size", "values")

    def __init__(self, dtype: DTypeLike, fill: int = 0) -> None:
        self._data: NDArray[Any] = np.empty(0, dtype=dtype)
        self._fill = fill
        self.size = 0
        self.values = self._data

    @classmethod
    def of(cls, values: NDArray[Any], fill: int = 0) -> "GrowingArray":
        """Make one of entries."""
        array = cls(values.dtype, fill)
        array.extend(values)
        return array

    def __reduce__(self) -> tuple[Any, ...]:
        # Copied by themselves, the view would no longer show the array.
        return GrowingArray.of, (self.values, self._fill)

    def item(self, index: int) -> int:
        """Return an entry, 0 or later, as Python has it; quicker than by way of `values`."""
        value: int = self._data.item(index)
        return value

    def grow_to(self, size: int) -> None:
        """Make the array at least ``size`` long."""
        if size <= self.size:
            return
        if size > len(self._data):
            grown = np.full(max(size, 16, len(self._data) * 3 // 2), self._fill, dtype=self._data.dtype)
            grown[: self.size] = self._data[: self.size]
            self._data = grown
        self.size = size
        self.values = self._data[:size]

    def append(self, value: int) -> int:
        """Add an entry and return its index."""
        index = self.size
        self.grow_to(index + 1)
        self._data[index] = value
        return index

    def extend(self, values: NDArray[Any]) -> None:
        """Add entries."""
        start = self.size
        self.grow_to(start + len(values))
        self._data[start : self.size] = values


class Interner(Generic[K]):
    """Small integers for hashable things, in the order of their first sight."""

    __slots__ = ("_ids", "items")

    def __init__(self) -> None:
        self._ids: dict[K, int] = {}
        self.items: list[K] = []

    def __len__(self) -> int:
        return len(self.items)

    def id(self, item: K) -> int:
        """Return the item's id, giving it one if it has none."""
        found = self._ids.get(item)
        if found is None:
            found = self._ids[item] = len(self.items)
            self.items.append(item)
        return found

    def find(self, item: K) -> int:
        """Return the item's id, or `NONE`."""
        return self._ids.get(item, NONE)


def numbered(values: NDArray[Any]) -> tuple[IntColumn, IntColumn]:
    """Number integers by value, from 0 without a gap (int64[n]); also return the values by number."""
    lowest = int(values.min(initial=0))
    span = int(values.max(initial=0)) - lowest + 1
    if span > 4 * len(values) + 1_000:
        distinct, number = np.unique(values, return_inverse=True)
        return number.astype(np.int64), distinct.astype(np.int64)
    # Marking them is quicker than sorting.
    is_there = np.zeros(span, dtype=np.bool_)
    is_there[values - lowest] = True
    numbers = np.cumsum(is_there) - 1
    return numbers[values - lowest], np.flatnonzero(is_there) + lowest
