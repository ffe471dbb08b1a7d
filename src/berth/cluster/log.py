"""The change log: which rows have changed since a version, and which pods came and went."""

from collections import deque
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

LOG_LENGTH = 65_536


@dataclass(frozen=True, slots=True)
class PodChange:
    """A pod came to a node's row (``sign`` 1) or went from it (-1)."""

    row: int
    pod: int
    namespace_id: int
    spec_id: int
    labels_id: int
    terminating: bool
    sign: int


@dataclass(frozen=True, slots=True)
class Changes:
    """What happened since a version.

    Attributes
    ----------
    rows : intp[n]
        All touched rows, each once.
    pods : list of PodChange
        In the order in which they happened.
    nodes : bool
        Whether node objects changed, and not only the pods on them.
    """

    rows: NDArray[np.intp]
    pods: list[PodChange] = field(default_factory=list)
    nodes: bool = False


class ChangeLog:
    """The latest changes, by version. What lies further back than its length has to be computed anew."""

    def __init__(self, length: int = LOG_LENGTH) -> None:
        self.version = 0
        self._entries: deque[PodChange | int] = deque(maxlen=length)
        self._broken_at = 0

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

    def since(self, version: int) -> Changes | None:
        """Return the changes after a version, None if they are not all known."""
        n = self.version - version
        if version < self._broken_at or n > len(self._entries):
            return None
        latest = [self._entries[i] for i in range(len(self._entries) - n, len(self._entries))]
        rows = {entry if isinstance(entry, int) else entry.row for entry in latest}
        return Changes(
            np.array(sorted(rows), dtype=np.intp),
            [entry for entry in latest if not isinstance(entry, int)],
            any(isinstance(entry, int) for entry in latest),
        )
