"""Files of rows: a JSON list of objects, JSON lines, or CSV with a header; gzip too. Knows no fields."""

import csv
import gzip
import io
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from berth.sources.mistakes import Mistakes

_GZIP_MAGIC = b"\x1f\x8b"


class Row(NamedTuple):
    """One row: where it stands (``line 3``, ``[2]``), and its values by field, ``None`` for gaps."""

    place: str
    values: dict[str, object]


def read_rows(path: Path, mistakes: Mistakes) -> Iterator[Row]:
    """The rows of the file; what is no row is a mistake.

    The content tells the format, so that a name may say ``.json`` for JSON lines; only a file
    called ``.csv`` is CSV whatever it looks like, and one called ``.json…`` is never CSV.
    """
    text = _text(path, mistakes)
    if text is None:
        return iter(())
    start = text.lstrip()[:1]
    if not start:
        mistakes.add("", "", None, "a JSON list, JSON lines or CSV with a header, but the file is empty")
        return iter(())
    suffix = next((suffix for suffix in reversed(path.suffixes) if suffix.lower() != ".gz"), "").lower()
    if suffix != ".csv" and start == "[":
        return _json_list(text, mistakes)
    if suffix != ".csv" and (start == "{" or suffix in (".json", ".jsonl", ".ndjson")):
        return _json_lines(text, mistakes)
    return _csv(text, mistakes)


def _text(path: Path, mistakes: Mistakes) -> str | None:
    try:
        data = path.read_bytes()
        if data.startswith(_GZIP_MAGIC):
            data = gzip.decompress(data)
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        mistakes.add("", "", None, f"UTF-8, but byte {error.start} is none")
    except (EOFError, zlib.error, gzip.BadGzipFile):
        mistakes.add("", "", None, "a whole gzip file, but it is cut off or damaged")
    except OSError as error:
        mistakes.add("", "", None, f"a file that can be read: {error.strerror}")
    return None


def _json_list(text: str, mistakes: Mistakes) -> Iterator[Row]:
    items = _json(text, mistakes, "")
    for index, item in enumerate(items if isinstance(items, list) else ()):
        yield from _object(item, f"[{index}]", mistakes)


def _json_lines(text: str, mistakes: Mistakes) -> Iterator[Row]:
    # Not splitlines(): JSON strings may hold the Unicode separators that it splits at.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            place = f"line {number}"
            before = len(mistakes)
            item = _json(line, mistakes, place)
            if len(mistakes) == before:
                yield from _object(item, place, mistakes)


def _json(text: str, mistakes: Mistakes, place: str) -> object:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        where = place or f"line {error.lineno}"
        mistakes.add(where, "", None, f"JSON, but at column {error.colno}: {error.msg}")
    except (ValueError, RecursionError):
        mistakes.add(place, "", None, "JSON with shorter numbers and less nesting")
    return None


def _object(item: object, place: str, mistakes: Mistakes) -> Iterator[Row]:
    if isinstance(item, dict):
        yield Row(place, item)
    else:
        mistakes.add(place, "", item, "an object")


def _csv(text: str, mistakes: Mistakes) -> Iterator[Row]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    header: list[str] | None = None
    try:
        for cells in reader:
            place = f"line {reader.line_num}"
            if not any(cell.strip() for cell in cells):
                continue
            if header is None:
                header = _header(cells, place, mistakes)
                if header is None:
                    return
            elif len(cells) > len(header):
                mistakes.add(place, "", len(cells), f"at most {len(header)} cells, as in the header")
            else:
                pairs = zip(header, cells, strict=False)
                yield Row(place, {name: cell.strip() or None for name, cell in pairs})
    except csv.Error as error:
        mistakes.add(f"line {reader.line_num}", "", None, f"CSV: {error}")


def _header(cells: list[str], place: str, mistakes: Mistakes) -> list[str] | None:
    names = [cell.strip() for cell in cells]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is None:
        return names
    mistakes.add(place, twice, None, "each column of the header once")
    return None
