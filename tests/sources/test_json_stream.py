import io
import json
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from berth.sources.json_stream import JsonSyntaxError, ListHead, read_objects

# What separators, escapes and the ends of things look like, where none is.
nasty = st.sampled_from(
    [
        '},{"',
        '}},{"kind":',
        '"items":[',
        "\\",
        '\\"',
        "}",
        "]",
        "é",
        "\u2028",
        "---",
        "\n",
        "kind",
        "items",
        "😀",
    ]
)
texts = st.one_of(nasty, st.text(max_size=6), st.lists(nasty, max_size=4).map("".join))
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, allow_infinity=False),
    texts,
)
values = st.recursive(
    scalars, lambda v: st.one_of(st.lists(v, max_size=3), st.dictionaries(texts, v, max_size=3)), max_leaves=8
)
items = st.dictionaries(texts, values, max_size=4)
like_kubernetes = st.builds(
    lambda rest, head: head | rest, items, st.just({"kind": "A", "status": {"x": {}}})
)
spaces = st.text(" \t\r\n", max_size=4)
chunk_sizes = st.one_of(st.integers(1, 40), st.just(1 << 20))
layouts = st.tuples(
    st.sampled_from([None, 0, 1, 4, "\t"]), st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", " : ")])
)


def found(text: bytes, chunk_size: int = 1 << 20) -> list[Any]:
    return [
        json.loads(bytes(f.text)) for f in read_objects(io.BytesIO(text), msgspec.json.decode, chunk_size)
    ]


@given(
    st.lists(st.one_of(items, like_kubernetes), max_size=8), items, items, layouts, chunk_sizes, st.booleans()
)
def test_items_of_a_list(
    inside: list[Any], before: Any, after: Any, layout: Any, chunk_size: int, escaped: bool
) -> None:
    for outer in (before, after):
        outer.pop("items", None)
        outer.pop("kind", None)
    after = {key: value for key, value in after.items() if key not in before}
    whole = before | {"items": inside} | after | {"kind": "List"}
    text = json.dumps(whole, indent=layout[0], separators=layout[1], ensure_ascii=escaped)
    assert found(text.encode(), chunk_size) == inside


@given(st.lists(st.one_of(values, like_kubernetes), max_size=6), spaces, chunk_sizes)
def test_elements_of_an_array_are_found_whatever_they_are(
    inside: list[Any], space: str, chunk_size: int
) -> None:
    text = space + "[" + (space + "," + space).join(map(json.dumps, inside)) + space + "]" + space
    assert found(text.encode(), chunk_size) == inside


@given(
    st.lists(st.one_of(items, like_kubernetes), max_size=8),
    st.sampled_from(["", "\n", "\n\n", "\n---\n"]),
    chunk_sizes,
)
@example([{"kind": "A", "items": []}], "\n", 1)
def test_objects_one_after_another(inside: list[Any], between: str, chunk_size: int) -> None:
    for item in inside:
        item.pop("items", None)
    assert found(between.join(map(json.dumps, inside)).encode(), chunk_size) == inside


@given(st.lists(st.one_of(items, like_kubernetes), min_size=1, max_size=4), layouts, chunk_sizes, st.data())
def test_a_truncated_file_is_told(inside: list[Any], layout: Any, chunk_size: int, data: Any) -> None:
    text = json.dumps({"items": inside, "kind": "List"}, indent=layout[0], separators=layout[1]).encode()
    cut = data.draw(st.integers(1, len(text) - 1))
    with pytest.raises(JsonSyntaxError, match=r"truncated|not JSON"):
        found(text[:cut], chunk_size)


@given(st.lists(items, max_size=3), chunk_sizes)
def test_what_the_list_says_of_its_items_is_known_at_its_end(inside: list[Any], chunk_size: int) -> None:
    text = json.dumps({"items": [{"n": 1}, *inside], "apiVersion": "v1", "kind": "NodeList"}).encode()
    heads = [f.list_head for f in read_objects(io.BytesIO(text), msgspec.json.decode, chunk_size)]
    assert set(map(id, heads)) == {id(heads[0])}
    assert heads[0] == ListHead("NodeList", "v1")


@pytest.mark.parametrize(
    ("text", "problem", "offset"),
    [
        (b'{"items": [{"a": 1} {"b": 2}]}', "expected ',' or '\\]'", 20),
        (b'{"items": [{"a": 1}, {"b": 2,}]}', "not JSON", 29),
        (b'{"items": [{"a": 1}', "truncated", 19),
        (b'{"items": [{"a": 1}] "kind": 1}', "expected ',' or '}'", 21),
        (b'{"items": [{"a": 1}], kind: 1}', "expected a key", 22),
        (b'{"a": 1} x', "expected an object", 9),
        (b'{"a": 1},{"a": 2}', "expected an object", 8),
        (b"{a: 1}", "expected a key", 1),
        (b'{"a": ' + b"[" * 5000, "nested too deeply", 6),
    ],
)
@pytest.mark.parametrize("chunk_size", [7, 1 << 20])
def test_what_is_no_json(text: bytes, problem: str, offset: int, chunk_size: int) -> None:
    with pytest.raises(JsonSyntaxError, match=problem) as caught:
        found(text, chunk_size)
    assert caught.value.offset == offset


def test_an_object_that_cannot_be_decoded_is_found_all_the_same() -> None:
    text = b'[{"a": 1}, {"a": "x"}, {"a": 3}, 7]'
    decoded = [f.decoded for f in read_objects(io.BytesIO(text), msgspec.json.Decoder(dict[str, int]).decode)]
    assert decoded == [{"a": 1}, None, {"a": 3}, None]


def test_a_byte_order_mark_is_no_harm() -> None:
    assert found(b'\xef\xbb\xbf{"a": 1}') == [{"a": 1}]


def test_an_empty_file_holds_nothing() -> None:
    assert found(b" \n") == []
