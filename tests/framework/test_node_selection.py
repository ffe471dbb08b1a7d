import string

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.cluster.arrays import Interner
from berth.cluster.nodes import NodeTable
from berth.framework.node_selection import (
    matcher_of,
    matches_expressions,
    matches_node_selector,
    matches_term,
)
from berth.objects.base import LabelSelectorRequirement, ObjectMeta, SelectorOperator
from berth.objects.nodes import Node
from berth.objects.pods import NodeSelector, NodeSelectorTerm
from berth.objects.selectors import SelectorError, from_node_expressions

Labels = dict[str, str]


def a_table(*labels: Labels) -> NodeTable:
    nodes = NodeTable(Interner())
    for i, of_node in enumerate(labels):
        nodes.put(Node(metadata=ObjectMeta(name=f"n{i}", labels=of_node)))
    return nodes


def expression(key: str, operator: SelectorOperator, *values: str) -> LabelSelectorRequirement:
    return LabelSelectorRequirement(key=key, operator=operator, values=values)


def term(*expressions: LabelSelectorRequirement) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=expressions)


def fields(*expressions: LabelSelectorRequirement) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_fields=expressions)


NODES = a_table({"disk": "ssd", "rank": "3"}, {"disk": "hdd", "rank": "x"}, {"gpu": ""})


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (expression("disk", "In", "ssd", "tape"), [True, False, False]),
        (expression("disk", "NotIn", "ssd"), [False, True, True]),
        (expression("gpu", "Exists"), [False, False, True]),
        (expression("disk", "DoesNotExist"), [False, False, True]),
        (expression("rank", "Gt", "2"), [True, False, False]),
        (expression("rank", "Lt", "3"), [False, False, False]),
        # Refused, hence never met:
        (expression("disk", "NotIn"), [False, False, False]),
        (expression("gpu", "Exists", "x"), [False, False, False]),
        (expression("rank", "Gt", "-1"), [False, False, False]),
        (expression("no key", "DoesNotExist"), [False, False, False]),
    ],
)
def test_expressions(one: LabelSelectorRequirement, expected: list[bool]) -> None:
    assert matches_term(NODES, term(one)).tolist() == expected


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (expression("metadata.name", "In", "n1"), [False, True, False]),
        (expression("metadata.name", "NotIn", "n1"), [True, False, True]),
        (expression("metadata.name", "In", "gone"), [False, False, False]),
        (expression("metadata.uid", "NotIn", "n1"), [True, True, True]),
        (expression("metadata.uid", "In", ""), [True, True, True]),
        (expression("metadata.name", "In", "n0", "n1"), [False, False, False]),
        (expression("metadata.name", "Exists"), [False, False, False]),
    ],
)
def test_fields(one: LabelSelectorRequirement, expected: list[bool]) -> None:
    assert matches_term(NODES, fields(one)).tolist() == expected


def test_fields_of_volumes_are_empty() -> None:
    assert not matches_term(NODES, fields(expression("metadata.name", "In", "n1")), with_fields=False).any()
    assert matches_term(NODES, fields(expression("metadata.name", "NotIn", "n1")), with_fields=False).all()


def test_terms_are_alternatives_and_their_parts_are_not() -> None:
    both = NodeSelectorTerm(
        match_expressions=(expression("disk", "Exists"),),
        match_fields=(expression("metadata.name", "In", "n1"),),
    )
    assert matches_term(NODES, both).tolist() == [False, True, False]
    either = NodeSelector(node_selector_terms=(both, term(expression("gpu", "Exists"))))
    assert matches_node_selector(NODES, either).tolist() == [False, True, True]


def test_nothing_matches_nothing() -> None:
    assert not matches_node_selector(NODES, NodeSelector()).any()
    assert not matches_term(NODES, NodeSelectorTerm()).any()


def test_a_name_goes_with_its_node() -> None:
    nodes = a_table({}, {})
    nodes.remove("n0")
    assert not matches_term(nodes, fields(expression("metadata.name", "In", "n0"))).any()


def test_old_releases_stop_at_a_term_that_they_refuse() -> None:
    ssd, refused, hdd = (term(expression("disk", "In", value)) for value in ("ssd", "not a value", "hdd"))
    selector = NodeSelector(
        node_selector_terms=(ssd, fields(expression("metadata.name", "In", "n2")), refused, hdd)
    )
    assert matches_expressions(NODES, selector).tolist() == [True, False, False]
    assert matches_node_selector(NODES, selector).tolist() == [True, True, True]


keys = st.sampled_from(["a", "b", "c"])
values = st.sampled_from(["", "x", "y", "1", "2", "10", "07", "-3", "9223372036854775808"])
operators = st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])
expressions = st.builds(
    LabelSelectorRequirement,
    key=keys | st.text(string.printable, max_size=3),
    operator=operators,
    values=st.lists(values, max_size=3).map(tuple),
)


def scalar(one: NodeSelectorTerm, labels: Labels) -> bool:
    try:
        return from_node_expressions(one.match_expressions).matches(labels)
    except SelectorError:
        return False


@given(
    st.lists(st.dictionaries(keys, values), min_size=1, max_size=6),
    st.lists(st.lists(expressions, max_size=3).map(lambda e: term(*e)), max_size=3),
)
def test_columns_equal_the_scalar_rule(rows: list[Labels], terms: list[NodeSelectorTerm]) -> None:
    got = matches_node_selector(a_table(*rows), NodeSelector(node_selector_terms=tuple(terms)))
    assert got.dtype == np.bool_
    assert got.tolist() == [any(scalar(one, labels) for one in terms) for labels in rows]


fields_of_nodes = st.builds(
    LabelSelectorRequirement,
    key=st.sampled_from(["metadata.name", "metadata.namespace"]),
    operator=st.sampled_from(["In", "NotIn", "Exists"]),
    values=st.lists(st.sampled_from(["n0", "n1", ""]), max_size=2).map(tuple),
)


@given(
    st.lists(st.dictionaries(keys, values), min_size=1, max_size=4),
    st.lists(
        st.builds(
            lambda asked, named: NodeSelectorTerm(match_expressions=tuple(asked), match_fields=tuple(named)),
            st.lists(expressions, max_size=2),
            st.lists(fields_of_nodes, max_size=2),
        ),
        max_size=3,
    ),
)
def test_single_nodes_are_matched_as_columns_are(rows: list[Labels], terms: list[NodeSelectorTerm]) -> None:
    selector = NodeSelector(node_selector_terms=tuple(terms))
    matches = matcher_of(selector)
    nodes = [Node(metadata=ObjectMeta(name=f"n{i}", labels=labels)) for i, labels in enumerate(rows)]
    assert [matches(node) for node in nodes] == matches_node_selector(a_table(*rows), selector).tolist()
