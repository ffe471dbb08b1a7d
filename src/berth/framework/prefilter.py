"""What filters say of a pod before any node is looked at, put together: upstream's PreFilter of 1.36."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from berth.cluster.arrays import BoolColumn
from berth.cluster.nodes import NodeTable
from berth.framework.plugin import FilterPlugin, Finality, Rejection


@dataclass(frozen=True, slots=True)
class PreFiltered:
    """What holds for all nodes.

    Attributes
    ----------
    error : str or None
        The decision fails with that text.
    rejection : tuple of str
        The reasons for which the pod is turned away as a whole; empty if it is not.
    names : frozenset of str or None
        The only nodes that are to be asked; None for all.
    restricted_by : tuple of str
        The filters that named them.
    rejected_by : tuple of str
        The filters that turned the pod away as a whole.
    """

    error: str | None = None
    rejection: tuple[str, ...] = ()
    names: frozenset[str] | None = None
    restricted_by: tuple[str, ...] = ()
    rejected_by: tuple[str, ...] = ()

    @property
    def left_out(self) -> str:
        """The reason of the nodes that are not asked."""
        return f"node(s) didn't satisfy plugin(s) [{' '.join(self.restricted_by)}]"

    def asked(self, nodes: NodeTable) -> BoolColumn:
        """Tell which rows are to be asked (bool[n_rows])."""
        if self.error is not None or self.rejection:
            return np.zeros(nodes.n_rows, dtype=np.bool_)
        if self.names is None:
            return nodes.alive
        asked = np.zeros(nodes.n_rows, dtype=np.bool_)
        asked[[row for row in map(nodes.row, self.names) if row >= 0]] = True
        return asked


EVERY_NODE = PreFiltered()


def prefilter(filters: Iterable[tuple[str, FilterPlugin[Any], Any]]) -> PreFiltered:
    """Ask filters, given by name and with their states, in the profile's order."""
    names: frozenset[str] | None = None
    restricted_by: list[str] = []
    rejection: tuple[str, ...] = ()
    rejected_by: tuple[str, ...] = ()
    for name, plugin, state in filters:
        rejected = plugin.reject(state)
        if rejected is not None:
            if rejected.finality is not Finality.OPEN:
                return _stop(name, rejected)
            rejection, rejected_by = rejected.reasons, (name,)
            continue
        named = plugin.restrict(state)
        if named is not None:
            restricted_by = sorted({*restricted_by, name})
            names = named if names is None else names & named
            if not names:
                return PreFiltered(rejection=(_none_left(restricted_by),), rejected_by=tuple(restricted_by))
    if rejection:
        return PreFiltered(rejection=rejection, rejected_by=rejected_by)
    return EVERY_NODE if names is None else PreFiltered(names=names, restricted_by=tuple(restricted_by))


def _stop(name: str, rejected: Rejection) -> PreFiltered:
    if rejected.finality is Finality.ERROR:
        return PreFiltered(error=", ".join(rejected.reasons))
    return PreFiltered(rejection=rejected.reasons, rejected_by=(name,))


def _none_left(plugins: list[str]) -> str:
    if len(plugins) == 1:
        return f"node(s) didn't satisfy plugin {plugins[0]}"
    return f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}] simultaneously"
