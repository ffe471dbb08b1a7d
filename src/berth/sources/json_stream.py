"""The objects of a JSON file of any size, one by one, without parsing what lies between them.

Knows JSON and the shape of a Kubernetes ``List``, and nothing of the kinds in it.

Where an object ends is guessed first: at the next text like the one that stood between the last two objects
(``}},{"kind":``, with whatever white space). Decoding proves the guess: no shorter beginning of a JSON object is
a JSON object, so what decodes as a whole is the object, whatever its strings hold. Where the guess was wrong a
decoder that skips all it reads tells the end.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, Generic, TypeVar

import msgspec

from berth.errors import BerthError

T = TypeVar("T")
Decode = Callable[[memoryview], T]
"""Decodes an object; raises msgspec.DecodeError if the text holds less or more, or another thing than it should."""

CHUNK_SIZE = 1 << 19  # stays in the processor's cache: 4 MiB take half as long again
_LONGEST_KEY = 1 << 20
# An escape or number that is cut off looks malformed; this is how far from the end that may show.
_LONGEST_TOKEN_START = 16

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SPACE = re.compile(rb"[ \t\r\n]*")
_BETWEEN_TOP_LEVEL = re.compile(rb"(?:[ \t\r\n]|^---(?=[ \t\r\n]))*", re.MULTILINE)
_KEY = re.compile(rb'[ \t\r\n]*("(?:[^"\\]|\\.)*")[ \t\r\n]*:[ \t\r\n]*(?=[^ \t\r\n])', re.DOTALL)
_LAST_BRACES = re.compile(rb"(?:\}[ \t\r\n]*)?\}\Z")
_NEXT_ITEM = re.compile(rb'[ \t\r\n]*,[ \t\r\n]*(\{[ \t\r\n]*"[^"\\]{0,64}"[ \t\r\n]*:)')
_NEXT_TOP_LEVEL = re.compile(rb'[ \t\r\n]*(\{[ \t\r\n]*"[^"\\]{0,64}"[ \t\r\n]*:)')
_BYTE = re.compile(r" \(byte (\d+)\)$")

_skipper = msgspec.json.Decoder(msgspec.Raw)


class JsonSyntaxError(BerthError):
    """The text is no JSON, or ends too early.

    Attributes
    ----------
    offset : int
        Where, in bytes from the start.
    """

    def __init__(self, problem: str, offset: int) -> None:
        super().__init__(problem)
        self.problem = problem
        self.offset = offset


@dataclass(slots=True)
class ListHead:
    """What a ``List`` says of its items; complete only when it has been read to its end."""

    kind: str = ""
    api_version: str = ""


@dataclass(slots=True)
class Found(Generic[T]):
    """An object of the file.

    Attributes
    ----------
    number : int
        Its place in the file, from 1 on.
    text : memoryview
        Its bytes; valid as long as it is held.
    decoded : T or None
        None if it could not be decoded: it is one JSON value, but not of the type.
    list_head : ListHead or None
        The list that it is an item of.
    """

    number: int
    text: memoryview
    decoded: T | None
    list_head: ListHead | None


@dataclass(slots=True)
class _Boundary:
    """The text between two objects, as it stood there last."""

    text: bytes
    n_before: int
    to_next: int


@dataclass(slots=True)
class _Text:
    """A window of the file. Offsets are counted from ``pos``, so that they hold when more is read."""

    file: BinaryIO
    chunk_size: int
    buffer: bytes = b""
    pos: int = 0
    n_dropped: int = 0
    at_end: bool = False
    view: memoryview = field(default_factory=lambda: memoryview(b""))

    def more(self) -> bool:
        """Read on, and forget all before ``pos``; false at the end of the file."""
        if self.at_end:
            return False
        rest = self.buffer[self.pos :]
        self.n_dropped += self.pos
        # As much again as is there already: an object of any size is gone over a few times at most.
        self.view, self.buffer = memoryview(b""), b""
        chunk = self.file.read(max(self.chunk_size, len(rest)))
        self.at_end = not chunk
        self.buffer = rest + chunk if rest else chunk
        self.view = memoryview(self.buffer)
        self.pos = 0
        return not self.at_end

    def error(self, problem: str, offset: int = 0) -> JsonSyntaxError:
        return JsonSyntaxError(problem, self.n_dropped + self.pos + offset)

    def match(self, pattern: re.Pattern[bytes], offset: int = 0) -> re.Match[bytes] | None:
        return pattern.match(self.buffer, self.pos + offset)

    def peek(self, offset: int = 0, between: re.Pattern[bytes] = _SPACE) -> tuple[int, bytes]:
        """Return the offset of the next byte that is no white space, and the byte (none at the file's end)."""
        while True:
            match = self.match(between, offset)
            at = match.end() if match else self.pos + offset
            # Some bytes ahead, for "---" is told from white space only when it is there as a whole.
            if at + 4 <= len(self.buffer) or self.at_end:
                return at - self.pos, self.buffer[at : at + 1]
            self.more()

    def value_end(self, offset: int = 0) -> int | None:
        """Return where the value at ``offset`` ends; None if that needs more text than is here."""
        start = self.pos + offset
        try:
            _skipper.decode(self.view[start:])
        except msgspec.DecodeError as error:
            return self._end_by_error(error, start)
        except RecursionError:
            raise self.error("it is nested too deeply", offset) from None
        if not self.at_end and self.buffer[-1] not in b'}]" \t\r\n':
            return None  # a number may go on
        return len(self.buffer) - self.pos

    def _end_by_error(self, error: msgspec.DecodeError, start: int) -> int | None:
        match = _BYTE.search(str(error))
        at = start + int(match[1]) if match else len(self.buffer)
        if match and "trailing characters" in str(error):
            return at - 1 - self.pos  # it has read the byte that it tells of
        if not self.at_end and at + _LONGEST_TOKEN_START >= len(self.buffer):
            return None
        if match is None:
            raise self.error("it ends in the middle of an object: is the file truncated?", at - self.pos)
        problem = _BYTE.sub("", str(error)).removeprefix("JSON is malformed: ")
        raise self.error(f"it is not JSON: {problem}", at - self.pos)

    def whole_value_end(self, offset: int = 0) -> int:
        """Return where the value at ``offset`` ends, reading on as far as it takes."""
        while (end := self.value_end(offset)) is None:
            self.more()
        return end


def read_objects(
    file: BinaryIO,
    decode: Decode[T],
    chunk_size: int = CHUNK_SIZE,
    on_list_end: Callable[[ListHead], None] | None = None,
) -> Iterator[Found[T]]:
    """Find the objects of a file: those one after another, the items of lists, the elements of arrays.

    Parameters
    ----------
    decode : callable
        Decodes an object; what stands in lists of lists is left to it.
    on_list_end : callable, optional
        Told of every list when it is known in full.

    Raises
    ------
    JsonSyntaxError
        At the place where the file stops being JSON; all before it has been yielded.
    """
    return _Reader(_Text(file, chunk_size), decode, on_list_end or (lambda _: None)).objects()


class _Reader(Generic[T]):
    def __init__(self, text: _Text, decode: Decode[T], on_list_end: Callable[[ListHead], None]) -> None:
        self._text = text
        self._on_list_end = on_list_end
        self._decode = decode
        self._boundary: _Boundary | None = None
        self._at_item = False  # pos stands on the next item already, past the comma
        self._number = 0

    def objects(self) -> Iterator[Found[T]]:
        text = self._text
        after_single = False
        if text.peek()[1] == _BYTE_ORDER_MARK[:1] and text.buffer.startswith(_BYTE_ORDER_MARK):
            text.pos += len(_BYTE_ORDER_MARK)
        while True:
            offset, byte = text.peek(between=_BETWEEN_TOP_LEVEL)
            text.pos += offset
            if not byte:
                return
            if byte not in b"{[":
                raise text.error("it is not JSON: expected an object")
            found = self._whole(_NEXT_TOP_LEVEL, None) if after_single else None
            if found is not None:
                yield found
                continue
            after_single = False
            if byte == b"[":
                yield from self._items(1, None)
            elif (items_at := self._items_offset(head := ListHead())) is not None:
                yield from self._items(items_at + 1, head)
                self._rest_of_list(head)
                self._on_list_end(head)
            else:
                after_single = True
                while (found := self._whole(_NEXT_TOP_LEVEL, None)) is None:
                    text.more()
                yield found

    def _items_offset(self, head: ListHead) -> int | None:
        """Walk an object's keys to the ``items`` of a list; None if the object is no list."""
        text, offset = self._text, 1
        while True:
            at, byte = text.peek(offset)
            if byte == b"}":
                return None
            key, at = self._key(at)
            if key == "items" and text.peek(at)[1] == b"[" and (not head.kind or head.kind.endswith("List")):
                return at
            offset = text.whole_value_end(at)
            self._note(head, key, at, offset)
            offset, byte = text.peek(offset)
            if byte == b",":
                offset += 1
            elif byte != b"}":
                raise text.error(_unexpected(byte, "',' or '}'"), offset)

    def _rest_of_list(self, head: ListHead) -> None:
        """Walk the keys that follow a list's items."""
        text = self._text
        while True:
            offset, byte = text.peek()
            if byte == b"}":
                text.pos += offset + 1
                return
            if byte != b",":
                raise text.error(_unexpected(byte, "',' or '}'"), offset)
            key, at = self._key(offset + 1)
            end = text.whole_value_end(at)
            self._note(head, key, at, end)
            text.pos += end

    def _key(self, offset: int) -> tuple[str, int]:
        text = self._text
        while (match := text.match(_KEY, offset)) is None:
            if len(text.buffer) - text.pos - offset > _LONGEST_KEY or not text.more():
                break
        if match is None:
            at, byte = text.peek(offset)
            raise text.error(_unexpected(byte if byte != b'"' else b"", "a key"), at)
        return str(msgspec.json.decode(match[1])), match.end() - text.pos

    def _note(self, head: ListHead, key: str, start: int, end: int) -> None:
        if key in ("kind", "apiVersion"):
            value = msgspec.json.decode(self._text.view[self._text.pos + start : self._text.pos + end])
            if isinstance(value, str):
                setattr(head, "kind" if key == "kind" else "api_version", value)

    def _items(self, offset: int, head: ListHead | None) -> Iterator[Found[T]]:
        """Yield the elements of the array whose first would stand at ``offset``; leave ``pos`` behind the array."""
        text, self._boundary = self._text, None
        text.pos += offset
        offset, byte = text.peek()
        if byte == b"]":
            text.pos += offset + 1
            return
        text.pos += offset
        while True:
            while (found := self._whole(_NEXT_ITEM, head)) is None:
                text.more()
            yield found
            if self._at_item:
                continue
            offset, byte = text.peek()
            text.pos += offset + 1
            if byte == b"]":
                self._boundary = None
                return
            if byte != b",":
                text.pos -= 1
                raise text.error(_unexpected(byte, "',' or ']'"))
            offset, _ = text.peek()
            text.pos += offset

    def _whole(self, next_one: re.Pattern[bytes], head: ListHead | None) -> Found[T] | None:
        """Take the value at ``pos`` if it lies in the buffer as a whole."""
        text, boundary = self._text, self._boundary
        if boundary is not None:
            at = text.buffer.find(boundary.text, text.pos)
            if at >= 0:
                piece = text.view[text.pos : at + boundary.n_before]
                try:
                    decoded = self._decode(piece)
                except (msgspec.DecodeError, RecursionError):
                    pass
                else:
                    text.pos = at + boundary.to_next
                    self._at_item = True
                    self._number += 1
                    return Found(self._number, piece, decoded, head)
        return self._skipped(next_one, head)

    def _skipped(self, next_one: re.Pattern[bytes], head: ListHead | None) -> Found[T] | None:
        """As `_whole`, by a pass that skips the value."""
        text = self._text
        end = text.value_end()
        if end is None:
            return None
        piece = text.view[text.pos : text.pos + end]
        try:
            decoded = self._decode(piece)
        except (msgspec.DecodeError, RecursionError):
            decoded = None
        self._learn(text.pos + end, next_one)
        text.pos += end
        self._at_item = False
        self._number += 1
        return Found(self._number, piece, decoded, head)

    def _learn(self, end: int, next_one: re.Pattern[bytes]) -> None:
        """Note the text between the value that ends here and the next, to find the next ends by it."""
        buffer = self._text.buffer
        end = len(buffer[max(0, end - 256) : end].rstrip()) + max(0, end - 256)
        tail, head = (
            _LAST_BRACES.search(buffer, max(self._text.pos, end - 128), end),
            next_one.match(buffer, end),
        )
        if tail and head:
            start = tail.start()
            self._boundary = _Boundary(buffer[start : head.end()], end - start, head.start(1) - start)


def _unexpected(byte: bytes, expected: str) -> str:
    if not byte:
        return "it ends in the middle of an object: is the file truncated?"
    return f"it is not JSON: expected {expected}"
