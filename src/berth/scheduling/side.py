"""The filters of a profile, or its scores, for one shape: states and columns, made when somebody asks for them."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar, overload

from berth.cluster.arrays import ALL_ROWS, IntColumn, Rows
from berth.cluster.cluster import Cluster, Incoming
from berth.cluster.log import Changes
from berth.framework.plugin import Plugin

T = TypeVar("T")

_MISSING: Any = object()


class Lazy(Sequence[T], Generic[T]):
    """Things that are made, each once, when they are asked for."""

    def __init__(self, n: int, make: Callable[[int], T]) -> None:
        self._items: list[T] = [_MISSING] * n
        self._make = make

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> list[T]: ...

    def __getitem__(self, index: int | slice) -> T | list[T]:
        """Return one or several, made if they are not there yet."""
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        item = self._items[index]
        if item is _MISSING:
            item = self._items[index] = self._make(index)
        return item

    def has(self, index: int) -> bool:
        """Tell whether one is made."""
        return self._items[index] is not _MISSING

    def drop(self, index: int) -> None:
        """Have one made anew when it is asked for next."""
        self._items[index] = _MISSING


class Side:
    """Plugins with what they say of one shape.

    Attributes
    ----------
    states : sequence
        What each plugin has prepared; of one that skips the shape, made only if somebody asks.
    columns : sequence of int64[n_rows]
        What each says of all rows.
    skipped, busy : list of bool
        Which plugins skip the shape, and which have anything to say of it. All others share a column of zeros.
    """

    def __init__(
        self,
        plugins: Sequence[Plugin[Any]],
        pod: Incoming,
        cluster: Cluster,
        ask: Callable[[int, Any, Rows], IntColumn],
        nothing: Callable[[], IntColumn],
    ) -> None:
        self._plugins = plugins
        self._pod = pod
        self._cluster = cluster
        self._ask = ask
        n = len(plugins)
        self.skipped = [plugin.skips(pod, cluster) for plugin in plugins]
        self.states: Lazy[Any] = Lazy(n, lambda i: plugins[i].prepare(pod, cluster))
        self.busy = [
            not skipped and not plugin.is_idle(self.states[i])
            for i, (plugin, skipped) in enumerate(zip(plugins, self.skipped, strict=True))
        ]
        self.columns: Lazy[IntColumn] = Lazy(
            n, lambda i: ask(i, self.states[i], ALL_ROWS) if self.busy[i] else nothing()
        )

    def mend(self, changes: Changes) -> Iterator[tuple[int, Rows]]:
        """Bring everything up to date; tell of which plugins which rows may say something else now."""
        for i, plugin in enumerate(self._plugins):
            was_busy = self.busy[i]
            rows = self._mend_state(i, plugin, changes)
            if rows is None:
                rows = ALL_ROWS
            if self.busy[i] != was_busy:
                self.columns.drop(i)
                yield i, ALL_ROWS
            elif was_busy:
                if isinstance(rows, slice):
                    self.columns.drop(i)
                elif self.columns.has(i):
                    self.columns[i][rows] = self._ask(i, self.states[i], rows)
                yield i, rows

    def _mend_state(self, i: int, plugin: Plugin[Any], changes: Changes) -> Rows | None:
        """Bring a state up to date; return the rows that may have changed, None for all."""
        was_skipped, self.skipped[i] = self.skipped[i], plugin.skips(self._pod, self._cluster)
        if self.skipped[i]:
            self.states.drop(i)
            self.busy[i] = False
            return None
        rows = None
        if was_skipped:
            self.states.drop(i)
        else:
            rows = plugin.mend(self.states[i], changes)
            if rows is None:
                self.states.drop(i)
        self.busy[i] = not plugin.is_idle(self.states[i])
        return rows
