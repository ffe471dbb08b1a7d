"""Node selectors over columns: which nodes do the terms of a node affinity match? Knows no plugin.

Upstream's ``MatchNodeSelectorTerms`` (alike from 1.13 to 1.36). One term must match; within a term all
expressions and all fields must. A term without any matches no node, nor does one that Kubernetes would
refuse.
"""

from collections.abc import Callable

import numpy as np

from berth.cluster.arrays import NONE, BoolColumn
from berth.cluster.nodes import NodeTable
from berth.objects.base import LabelSelectorRequirement
from berth.objects.nodes import Node
from berth.objects.pods import NodeSelector, NodeSelectorTerm
from berth.objects.selectors import EVERYTHING, Selector, SelectorError, from_node_expressions

NAME_FIELD = "metadata.name"
"""The only field of a node that ``matchFields`` knows; every other one is empty."""


def matches_node_selector(
    nodes: NodeTable, selector: NodeSelector, *, with_fields: bool = True
) -> BoolColumn:
    """Tell for every row whether one of the selector's terms matches (bool[n_rows]); without terms none does.

    Parameters
    ----------
    with_fields : bool
        Whether the node's fields are known. Where not (node affinity of volumes), they count as empty.
    """
    met = np.zeros(nodes.n_rows, dtype=np.bool_)
    for term in selector.node_selector_terms:
        met |= matches_term(nodes, term, with_fields=with_fields)
    return met


def matches_expressions(nodes: NodeTable, selector: NodeSelector) -> BoolColumn:
    """Do the same as releases up to 1.10 (bool[n_rows]).

    They know no fields, and stop at a term that they refuse: those before it count, those after it do not.
    """
    met = np.zeros(nodes.n_rows, dtype=np.bool_)
    for term in selector.node_selector_terms:
        try:
            met |= nodes.labels.matches(from_node_expressions(term.match_expressions))
        except SelectorError:
            break
    return met


def matches_term(nodes: NodeTable, term: NodeSelectorTerm, *, with_fields: bool = True) -> BoolColumn:
    """Tell for every row whether a term matches (bool[n_rows]); ``with_fields`` as above."""
    if not term.match_expressions and not term.match_fields:
        return np.zeros(nodes.n_rows, dtype=np.bool_)
    if term.match_expressions:
        try:
            met = nodes.labels.matches(from_node_expressions(term.match_expressions))
        except SelectorError:
            return np.zeros(nodes.n_rows, dtype=np.bool_)
    else:
        met = np.ones(nodes.n_rows, dtype=np.bool_)
    for field in term.match_fields:
        met &= _matches_field(nodes, field, with_fields)
    return met


def _matches_field(nodes: NodeTable, field: LabelSelectorRequirement, with_fields: bool) -> BoolColumn:
    if field.operator not in ("In", "NotIn") or len(field.values) != 1:
        return np.zeros(nodes.n_rows, dtype=np.bool_)
    (value,) = field.values
    if with_fields and field.key == NAME_FIELD:
        equal = np.zeros(nodes.n_rows, dtype=np.bool_)
        row = nodes.row(value)
        if row != NONE:
            equal[row] = True
    else:
        equal = np.full(nodes.n_rows, value == "", dtype=np.bool_)
    return equal if field.operator == "In" else ~equal


NodeMatcher = Callable[[Node], bool]
"""Tells whether a single node matches."""


def matcher_of(selector: NodeSelector) -> NodeMatcher:
    """Read a selector once, to be asked of single nodes: `matches_node_selector` without columns."""
    terms = [read for term in selector.node_selector_terms if (read := _read(term)) is not None]
    return lambda node: any(
        labels.matches(node.metadata.labels) and all(_is_met(field, node.metadata.name) for field in fields)
        for labels, fields in terms
    )


def _read(term: NodeSelectorTerm) -> tuple[Selector, tuple[LabelSelectorRequirement, ...]] | None:
    """Read a term; None of one that matches no node."""
    if not term.match_expressions:
        return (EVERYTHING, term.match_fields) if term.match_fields else None
    try:
        return from_node_expressions(term.match_expressions), term.match_fields
    except SelectorError:
        return None


def _is_met(field: LabelSelectorRequirement, name: str) -> bool:
    if field.operator not in ("In", "NotIn") or len(field.values) != 1:
        return False
    return (field.values[0] == (name if field.key == NAME_FIELD else "")) == (field.operator == "In")
