from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.cluster.labels import LabelColumns
from berth.objects.base import LabelSelector, LabelSelectorRequirement, SelectorOperator
from berth.objects.selectors import (
    EVERYTHING,
    NOTHING,
    Requirement,
    Selector,
    SelectorError,
    from_label_selector,
    from_map,
    from_node_expressions,
    parse_int64,
)

KEYS = ("app", "tier", "rank", "example.com/x")
VALUES = ("", "a", "b", "1", "2", "07", "10", "-3", "+3", "9223372036854775807", "9223372036854775808", "x1")

keys, values = st.sampled_from(KEYS), st.sampled_from(VALUES)
label_sets = st.dictionaries(keys, values, max_size=4)
requirements = st.one_of(
    st.builds(
        Requirement, keys, st.sampled_from(["In", "NotIn"]), st.frozensets(values, min_size=1, max_size=3)
    ),
    st.builds(Requirement, keys, st.sampled_from(["Exists", "DoesNotExist"])),
    st.builds(
        Requirement,
        keys,
        st.sampled_from(["Gt", "Lt"]),
        bound=st.sampled_from([0, 1, 2, 7, 10, 2**63 - 1]),
    ),
)
selectors = st.one_of(
    st.just(NOTHING),
    st.just(EVERYTHING),
    st.lists(requirements, min_size=1, max_size=3).map(lambda each: Selector(tuple(each))),
)


@given(
    rows=st.lists(label_sets, min_size=1, max_size=8),
    later=st.lists(st.tuples(st.integers(0, 9), label_sets), max_size=5),
    asked=st.lists(selectors, min_size=1, max_size=4),
)
def test_columns_match_as_the_scalar_rule_does(
    rows: list[dict[str, str]], later: list[tuple[int, dict[str, str]]], asked: list[Selector]
) -> None:
    columns = LabelColumns()
    for row, labels in enumerate(rows):
        columns.set(row, labels)
    for step in (None, *later):  # asked before and after each change: columns are kept
        if step is not None:
            row = min(step[0], len(rows))
            rows[row:] = [step[1], *rows[row + 1 :]]
            columns.set(row, step[1])
        for selector in asked:
            assert columns.matches(selector).tolist() == [selector.matches(labels) for labels in rows]
        assert [columns.get(row) for row in range(len(rows))] == rows


@pytest.mark.parametrize(
    ("operator", "values", "absent", "meets", "fails"),
    [
        ("In", ("a", "b"), False, ["a", "b"], ["", "c"]),
        ("NotIn", ("a",), True, ["", "b"], ["a"]),
        ("Exists", (), False, ["", "a"], []),
        ("DoesNotExist", (), True, [], ["", "a"]),
        ("Gt", ("5",), False, ["6", "006", "+6"], ["5", "-9", "", "x", "9223372036854775808", " 6", "6.5"]),
        ("Lt", ("5",), False, ["4", "-9"], ["5", "", "x", "-9223372036854775809"]),
    ],
)
def test_operators(
    operator: SelectorOperator, values: tuple[str, ...], absent: bool, meets: list[str], fails: list[str]
) -> None:
    selector = from_node_expressions([LabelSelectorRequirement(key="k", operator=operator, values=values)])
    assert selector.matches({}) is absent
    assert [value for value in (*meets, *fails) if selector.matches({"k": value})] == meets


def test_absent_matches_nothing_and_empty_matches_all() -> None:
    assert not from_label_selector(None).matches({})
    assert from_label_selector(LabelSelector()).matches({"a": "b"})
    assert not from_node_expressions([]).matches({})
    assert from_map({}).matches({"a": "b"})


def test_all_requirements_must_hold() -> None:
    selector = from_label_selector(
        LabelSelector(
            match_labels={"app": "web"},
            match_expressions=(LabelSelectorRequirement(key="tier", operator="Exists"),),
        )
    )
    assert selector.matches({"app": "web", "tier": ""})
    assert not selector.matches({"app": "web"})
    assert not selector.matches({"app": "db", "tier": ""})
    assert selector.keys() == {"app", "tier"}


@pytest.mark.parametrize(
    ("key", "operator", "values", "message"),
    [
        ("app", "In", (), "matchExpressions[0].values: [] is not at least one value"),
        ("app", "NotIn", (), "matchExpressions[0].values: [] is not at least one value"),
        ("app", "Exists", ("a",), "matchExpressions[0].values: ['a'] is not empty, as Exists demands"),
        (
            "app",
            "DoesNotExist",
            ("a",),
            "matchExpressions[0].values: ['a'] is not empty, as DoesNotExist demands",
        ),
        ("rank", "Gt", ("1", "2"), "matchExpressions[0].values: ['1', '2'] is not exactly one integer"),
        ("rank", "Gt", (), "matchExpressions[0].values: [] is not exactly one integer"),
        ("rank", "Lt", ("-1",), "matchExpressions[0].values: ['-1'] is not exactly one integer"),
        ("rank", "Lt", ("x",), "matchExpressions[0].values: ['x'] is not exactly one integer"),
        ("rank", "Gt", ("9" * 30,), "is not exactly one integer"),
        ("", "Exists", (), "matchExpressions[0].key: '' is not a label key"),
        ("a b", "Exists", (), "matchExpressions[0].key: 'a b' is not a label key"),
        ("/app", "Exists", (), "is not a label key"),
        ("Example.com/app", "Exists", (), "is not a label key"),
        ("a/b/c", "Exists", (), "is not a label key"),
        ("x" * 64, "Exists", (), "is not a label key"),
        ("e" * 254 + "/app", "Exists", (), "is not a label key"),
        ("app", "In", ("-a",), "matchExpressions[0].values: '-a' is not a label value"),
        ("app", "In", ("a\n",), "is not a label value"),
        ("app", "In", ("a" * 64,), "is not a label value"),
    ],
)
def test_refused(key: str, operator: Any, values: tuple[str, ...], message: str) -> None:
    with pytest.raises(SelectorError) as refused:
        from_node_expressions([LabelSelectorRequirement(key=key, operator=operator, values=values)])
    assert message in str(refused.value)


@pytest.mark.parametrize("operator", ["Gt", "Lt"])
def test_numbers_are_for_nodes_only(operator: Any) -> None:
    expression = LabelSelectorRequirement(key="rank", operator=operator, values=("1",))
    with pytest.raises(SelectorError, match="one of In, NotIn, Exists, DoesNotExist"):
        from_label_selector(LabelSelector(match_expressions=(expression,)))
    assert from_node_expressions([expression]).matches({"rank": "1"}) is False


def test_bad_match_labels_are_refused_with_their_path() -> None:
    with pytest.raises(SelectorError, match=r"spec\.selector\.matchLabels\.key: 'a b'"):
        from_label_selector(LabelSelector(match_labels={"a b": "x"}), "spec.selector")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("-7", -7),
        ("+7", 7),
        ("007", 7),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775808", None),
        ("", None),
        ("1_0", None),
        ("٣", None),
        ("1\n", None),
        ("0" * 5000 + "1", 1),
        ("1" * 5000, None),
    ],
)
def test_integers_as_go_reads_them(text: str, number: int | None) -> None:
    assert parse_int64(text) == number
