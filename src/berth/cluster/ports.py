"""Which host ports are taken on which nodes."""

from collections.abc import Iterable

import numpy as np

from berth.cluster.arrays import BoolColumn, GrowingArray, Rows
from berth.cluster.specs import HostPort

ANY_IP = "0.0.0.0"


def collide(a: HostPort, b: HostPort) -> bool:
    """Tell whether two pods on one node can't take both: 0.0.0.0 conflicts with every IP of the port."""
    return a[:2] == b[:2] and (a[2] == b[2] or ANY_IP in (a[2], b[2]))


class HostPortTable:
    """For each host port seen, how many pods of each node take it (int32[n_rows])."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, int], dict[str, GrowingArray]] = {}
        self._n_rows = 0

    def grow_to(self, n_rows: int) -> None:
        """Make room for so many nodes."""
        self._n_rows = max(self._n_rows, n_rows)

    def change(self, row: int, ports: Iterable[HostPort], sign: int) -> None:
        """Count ports as taken (+1) or free again (-1) on a node."""
        for protocol, port, ip in ports:
            counts = self._counts.setdefault((protocol, port), {}).setdefault(ip, GrowingArray(np.int32))
            counts.grow_to(self._n_rows)
            counts.values[row] += sign

    def conflicts(self, ports: Iterable[HostPort], rows: Rows) -> BoolColumn:
        """Tell for rows whether any of the ports is taken there: 0.0.0.0 conflicts with every IP of the port."""
        taken = np.zeros(self._n_rows, dtype=np.bool_)[rows]
        for protocol, port, ip in ports:
            for other_ip, counts in self._counts.get((protocol, port), {}).items():
                if ANY_IP in (ip, other_ip) or ip == other_ip:
                    counts.grow_to(self._n_rows)
                    taken |= counts.values[rows] > 0
        return taken
