"""The change log: which rows have changed since a version, and which pods came and went."""

from collections import deque
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

LOG_LENGTH = 65_536
_N_ALIKE = 64


class PodChange(NamedTuple):
    """A pod came to a node's row (``sign`` 1) or went from it (-1)."""

    row: int
    pod: int
    namespace_id: int
    spec_id: int
    labels_id: int
    terminating: bool
    sign: int


@dataclass(frozen=True)
class Changes:
    """What happened since a version.

    Attributes
    ----------
    rows : intp[n]
        All touched rows, each once.
    pods : list of PodChange
        By kind; a pod that came and one like it that went cancel out.
    nodes : bool
        Whether node objects changed, and not only the pods on them.
    moves : list of PodChange
        Every pod that came or went, in order, for who keeps pods by id: what cancels out is alike, but may be two pods.
    """

    rows: NDArray[np.intp]
    pods: list[PodChange] = field(default_factory=list)
    nodes: bool = False
    moves: list[PodChange] = field(default_factory=list)

    @cached_property
    def spec_ids(self) -> frozenset[int]:
        """The specs of the pods that came or went."""
        return frozenset(change.spec_id for change in self.pods)


class ChangeLog:
    """The latest changes, by version. What lies further back than its length has to be computed anew."""

    def __init__(self, length: int = LOG_LENGTH) -> None:
        self.version = 0
        self._entries: deque[PodChange | int] = deque(maxlen=length)
        self._broken_at = 0
        self._alike: dict[int, int] = {}

    def pod(self, change: PodChange) -> None:
        """Note that a pod came or went."""
        self.version += 1
        self._entries.append(change)

    def node(self, row: int) -> None:
        """Note that a node's object changed."""
        self.version += 1
        self._entries.append(row)

    def everything(self) -> None:
        """Note that no kept evaluation holds any more: nodes came or went, a service or volume changed, a bulk load."""
        self.version += 1
        self._entries.clear()
        self._broken_at = self.version

    def restored(self, version: int) -> None:
        """Note that all is again as it was at a version: what was kept of that holds now."""
        versions = [old for old, now in self._alike.items() if now == version]
        self._alike = dict.fromkeys([*versions[1 - _N_ALIKE :], version], self.version)

    def since(self, version: int) -> Changes | None:
        """Return the changes after a version, None if they are not all known."""
        latest = self._latest(version)
        if latest is None:
            return None
        moves = [entry for entry in latest if not isinstance(entry, int)]
        return Changes(
            np.array(sorted(_rows(latest)), dtype=np.intp), _net(moves), len(moves) < len(latest), moves
        )

    def rows_since(self, version: int) -> set[int] | None:
        """Return the rows touched after a version, None if they are not all known."""
        latest = self._latest(version)
        return None if latest is None else _rows(latest)

    def _latest(self, version: int) -> list[PodChange | int] | None:
        version = self._alike.get(version, version)
        n = self.version - version
        if version < self._broken_at or n > len(self._entries):
            return None
        return [self._entries[i] for i in range(len(self._entries) - n, len(self._entries))]


def _rows(entries: list[PodChange | int]) -> set[int]:
    return {entry if isinstance(entry, int) else entry.row for entry in entries}


def _net(changes: list[PodChange]) -> list[PodChange]:
    """Leave out pairs of changes that take each other back: what is planned and undone leaves nothing to mend."""
    left: dict[tuple[int, ...], list[PodChange]] = {}
    for change in changes:
        alike = left.setdefault(
            (change.row, change.namespace_id, change.spec_id, change.labels_id, change.terminating), []
        )
        if alike and alike[-1].sign != change.sign:
            alike.pop()
        else:
            alike.append(change)
    return [change for alike in left.values() for change in alike]
