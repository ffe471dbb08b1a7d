"""From which nodes can a volume be reached? Local volumes are many, each on one node: rows are listed."""

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import NONE, BoolColumn
from berth.cluster.cluster import Cluster
from berth.cluster.nodes import NodeTable
from berth.framework.csi_migration import Migration
from berth.framework.node_selection import matches_expressions, matches_node_selector
from berth.objects.base import LabelSelectorRequirement
from berth.objects.pods import NodeSelector
from berth.objects.selectors import SelectorError, from_node_expressions
from berth.objects.storage import PersistentVolume
from berth.plugins.volume_binding.rules import BindingRules

RowNumbers = NDArray[np.intp]


class VolumeReach:
    """The rows that meet the node affinity of volumes, each affinity looked at once."""

    def __init__(self, nodes: NodeTable, rules: BindingRules) -> None:
        self.nodes = nodes
        self._match_fields = rules.match_fields
        self._rows: dict[NodeSelector, RowNumbers] = {}
        self._all = np.arange(nodes.n_rows, dtype=np.intp)
        self._by_value: dict[str, dict[int, RowNumbers]] = {}

    def of(self, volume: PersistentVolume) -> RowNumbers:
        """Return the rows from which a volume can be reached, in no order."""
        affinity = volume.spec.node_affinity
        if affinity is None or affinity.required is None:
            return self._all
        rows = self._rows.get(affinity.required)
        if rows is None:
            rows = self._rows[affinity.required] = self._rows_of(affinity.required)
        return rows

    def _rows_of(self, selector: NodeSelector) -> RowNumbers:
        only = _only_expression(selector)
        if only is not None:
            return self._rows_with(only)
        if self._match_fields:
            return np.flatnonzero(matches_node_selector(self.nodes, selector, with_fields=False))
        return np.flatnonzero(matches_expressions(self.nodes, selector))

    def _rows_with(self, one: LabelSelectorRequirement) -> RowNumbers:
        """Look the rows up by the values of ``In``: a local volume names the one node that it is on."""
        try:
            from_node_expressions((one,))
        except SelectorError:
            return self._all[:0]
        rows_of = self._by_value.get(one.key)
        if rows_of is None:
            rows_of = self._by_value[one.key] = self._by_values_of(one.key)
        value_ids = {self.nodes.labels.value_id(value) for value in one.values}
        found = [rows_of[value_id] for value_id in value_ids if value_id in rows_of]
        return np.concatenate(found) if found else self._all[:0]

    def _by_values_of(self, key: str) -> dict[int, RowNumbers]:
        column = self.nodes.labels.column(key)
        order = np.argsort(column, kind="stable")
        value_ids, starts, counts = np.unique(column[order], return_index=True, return_counts=True)
        runs = zip(value_ids.tolist(), starts.tolist(), counts.tolist(), strict=True)
        return {value_id: order[start : start + n] for value_id, start, n in runs if value_id != NONE}


def reached_by_driver(volume: PersistentVolume, migration: Migration, cluster: Cluster) -> BoolColumn:
    """Tell from which rows an in-tree volume can be reached as a CSI volume (bool[n_rows]).

    Raises
    ------
    berth.framework.csi_migration.NotTranslatable
        It can't be one.
    """
    affinity = migration.affinity(volume)
    if affinity is None:
        return np.ones(cluster.nodes.n_rows, dtype=np.bool_)
    return matches_node_selector(cluster.nodes, affinity, with_fields=False)


def is_reached(volume: PersistentVolume, cluster: Cluster, row: int, rules: BindingRules) -> bool:
    """Tell whether a volume can be reached from a row, as the driver there has it.

    Raises
    ------
    berth.framework.csi_migration.NotTranslatable
        The driver there can't have it.
    """
    plugin, _ = rules.migration.handle(volume)
    if plugin in rules.migration.by_row(cluster).get(row, ()):
        return bool(reached_by_driver(volume, rules.migration, cluster)[row])
    return row in VolumeReach(cluster.nodes, rules).of(volume)


def _only_expression(selector: NodeSelector) -> LabelSelectorRequirement | None:
    """Return the expression of a selector that is a single ``In``."""
    if len(selector.node_selector_terms) != 1:
        return None
    (term,) = selector.node_selector_terms
    if len(term.match_expressions) != 1 or term.match_fields or term.match_expressions[0].operator != "In":
        return None
    return term.match_expressions[0]
