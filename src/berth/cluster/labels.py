"""Labels as columns: a test of a label is an array comparison."""

from collections.abc import Iterable, Mapping

import numpy as np

from berth.cluster.arrays import NONE, BoolColumn, GrowingArray, IdColumn, Interner
from berth.objects.selectors import Requirement, Selector


class LabelColumns:
    """The labels of rows (nodes, or distinct label sets of pods), stored as (row, key, value) triples of ids.

    A row's triples lie next to each other. Those of a row that got others stay behind as gaps (row `NONE`) until gaps are
    more than half of all. A column of a key is made when it is first asked for and kept up to date from then on. Columns
    are ``int32[n_rows]`` of value ids, `NONE` where the label is absent.
    """

    def __init__(self) -> None:
        self._keys: Interner[str] = Interner()
        self._values: Interner[str] = Interner()
        self._row = GrowingArray(np.int32)
        self._key = GrowingArray(np.int32)
        self._value = GrowingArray(np.int32)
        self._start = GrowingArray(np.int64)
        self._count = GrowingArray(np.int32)
        self._n_gaps = 0
        self._columns: dict[str, GrowingArray] = {}
        self.n_rows = 0

    def set(self, row: int, labels: Mapping[str, str]) -> None:
        """Give a row its labels, in place of those it had."""
        if row < self.n_rows:
            if self.get(row) == labels:
                return
            self._row.values[self._of(row)] = NONE
            self._n_gaps += int(self._count.values[row])
        self.n_rows = max(self.n_rows, row + 1)
        for column in self._columns.values():
            column.grow_to(self.n_rows)
            column.values[row] = NONE
        for bounds in (self._start, self._count):
            bounds.grow_to(self.n_rows)
        self._start.values[row], self._count.values[row] = self._row.size, len(labels)
        for key, value in labels.items():
            value_id = self._values.id(value)
            self._row.append(row)
            self._key.append(self._keys.id(key))
            self._value.append(value_id)
            if key in self._columns:
                self._columns[key].values[row] = value_id
        if self._n_gaps > self._row.size // 2:
            self._close_gaps()

    def get(self, row: int) -> dict[str, str]:
        """Return a row's labels."""
        at = self._of(row)
        keys, values = self._key.values[at].tolist(), self._value.values[at].tolist()
        return {self._keys.items[k]: self._values.items[v] for k, v in zip(keys, values, strict=True)}

    def all(self) -> list[dict[str, str]]:
        """Return the labels of all rows, in one pass."""
        rows: list[dict[str, str]] = [{} for _ in range(self.n_rows)]
        keys, values = self._keys.items, self._values.items
        triples = (self._row.values.tolist(), self._key.values.tolist(), self._value.values.tolist())
        for row, key_id, value_id in zip(*triples, strict=True):
            if row != NONE:
                rows[row][keys[key_id]] = values[value_id]
        return rows

    def column(self, key: str) -> IdColumn:
        """Return the value ids of a label over all rows (int32[n_rows], `NONE` where absent)."""
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = GrowingArray(np.int32, fill=NONE)
            column.grow_to(self.n_rows)
            key_id = self._keys.find(key)
            if key_id != NONE:
                at = self._key.values == key_id
                rows, values = self._row.values[at], self._value.values[at]
                column.values[rows[rows != NONE]] = values[rows != NONE]
        column.grow_to(self.n_rows)
        return column.values

    def _of(self, row: int) -> slice:
        """Return where a row's triples lie."""
        start = int(self._start.values[row])
        return slice(start, start + int(self._count.values[row]))

    def _close_gaps(self) -> None:
        kept = self._row.values != NONE
        n_before = np.concatenate(([0], np.cumsum(kept)))
        self._start.values[:] = n_before[self._start.values]
        self._row, self._key, self._value = (
            GrowingArray.of(triples.values[kept]) for triples in (self._row, self._key, self._value)
        )
        self._n_gaps = 0

    def value_id(self, value: str) -> int:
        """Return the id of a label's value, `NONE` if no row has it under any key."""
        return self._values.find(value)

    def value(self, value_id: int) -> str:
        """Return the text of a value id."""
        return self._values.items[value_id]

    def matches(self, selector: Selector) -> BoolColumn:
        """Tell for every row whether it meets all requirements of a selector (bool[n_rows])."""
        if selector.requirements is None:
            return np.zeros(self.n_rows, dtype=np.bool_)
        if not selector.requirements:
            return np.ones(self.n_rows, dtype=np.bool_)
        met = self._meets(selector.requirements[0])
        for requirement in selector.requirements[1:]:
            met &= self._meets(requirement)
        return met

    def _meets(self, requirement: Requirement) -> BoolColumn:
        column = self.column(requirement.key)
        match requirement.operator:
            case "Exists":
                return column != NONE
            case "DoesNotExist":
                return column == NONE
            case "In":
                return self._one_of(column, requirement.values)
            case "NotIn":
                return ~self._one_of(column, requirement.values)
        # Gt, Lt: numbers are rare in labels, so each distinct value is parsed once per call.
        distinct, inverse = np.unique(column, return_inverse=True)
        texts = (None if value_id == NONE else self.value(value_id) for value_id in distinct.tolist())
        return np.fromiter(map(requirement.accepts, texts), dtype=np.bool_, count=len(distinct))[inverse]

    def _one_of(self, column: IdColumn, values: Iterable[str]) -> BoolColumn:
        value_ids = [value_id for value in values if (value_id := self._values.find(value)) != NONE]
        if not value_ids:
            return np.zeros(len(column), dtype=np.bool_)
        found: BoolColumn = column == value_ids[0]
        for value_id in value_ids[1:]:
            found |= column == value_id
        return found
