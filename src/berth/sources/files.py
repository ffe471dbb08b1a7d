"""The files of a snapshot: which there are, and their bytes, unpacked. Knows nothing of what is in them."""

import gzip
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import IO, BinaryIO, cast

from berth.errors import BerthError

SUFFIXES = frozenset((".json", ".yaml", ".yml", ".jsonl", ".ndjson"))
"""Of the files that are read of a folder; ``.gz`` may follow. A file that is named is read whatever its name."""

Progress = Callable[[int, int], None]
"""Told how many bytes have been read, and how many there are (as they lie on the disk)."""

_GZIP = b"\x1f\x8b"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_PEEK = 4096


class FileError(BerthError):
    """A file or folder that can't be read."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to read; ``named`` if somebody asked for it and not only for its folder."""

    path: Path
    named: bool
    size: int


@dataclass(frozen=True, slots=True)
class Sources:
    """The files to read, in order, and how many in their folders are of no use by their names."""

    files: list[SourceFile]
    n_others: int


def find_files(paths: Sequence[Path]) -> Sources:
    """List the files, those of folders in the order of their names.

    Raises
    ------
    FileError
        A path is not there, or a folder holds nothing to read.
    """
    files: list[SourceFile] = []
    n_others = 0
    for path in paths:
        try:
            if not path.is_dir():
                files.append(SourceFile(path, True, path.stat().st_size))
                continue
            inside = sorted(inner for inner in path.rglob("*") if inner.is_file())
        except OSError as error:
            raise FileError(f"{path}: {_reason(error)}") from None
        usable = [inner for inner in inside if _has_suffix(inner)]
        if not usable:
            raise FileError(f"{path}: the folder holds no {', '.join(sorted(SUFFIXES))} files")
        files += [SourceFile(inner, False, inner.stat().st_size) for inner in usable]
        n_others += len(inside) - len(usable)
    return Sources(files, n_others)


class Opener:
    """Opens files one after another and tells how far it is."""

    def __init__(self, files: Sequence[SourceFile], on_progress: Progress | None) -> None:
        self._total = sum(file.size for file in files)
        self._n_read = 0
        self._on_progress = on_progress

    @contextmanager
    def open(self, file: SourceFile) -> Iterator[BufferedReader]:
        """Open a file, unpacked if it is packed.

        Raises
        ------
        FileError
            It can't be read, here or while it is read.
        """
        try:
            with file.path.open("rb", buffering=0) as raw:
                source: BufferedReader = BufferedReader(_Counted(raw, self._count), _PEEK)
                if source.peek(2).startswith(_GZIP):
                    source = BufferedReader(gzip.GzipFile(fileobj=source), 1 << 18)
                if source.peek(2)[:2] in _UTF_16 and file.path.suffix not in (".yaml", ".yml"):
                    raise FileError(f"{file.path}: the text is UTF-16; save it as UTF-8")
                yield source
        except (OSError, EOFError, zlib.error) as error:
            raise FileError(f"{file.path}: {_reason(error)}") from None

    def _count(self, n_bytes: int) -> None:
        self._n_read += n_bytes
        if self._on_progress is not None:
            self._on_progress(self._n_read, self._total)


def is_json(source: BufferedReader) -> bool:
    """Tell by the first sign of the text whether it is JSON (what is not is YAML)."""
    return source.peek(_PEEK).removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")


class _Counted(RawIOBase):
    """A raw file that tells how much of it has been read."""

    def __init__(self, raw: IO[bytes], count: Callable[[int], None]) -> None:
        self._raw = cast(RawIOBase, raw)
        self._count = count

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int | None:  # type: ignore[override]
        n_bytes = self._raw.readinto(buffer)
        if n_bytes:
            self._count(n_bytes)
        return n_bytes


def line_and_column(source: BinaryIO, offset: int) -> tuple[int, int]:
    """Return the line and column that a byte stands in, both from 1 on; columns are counted in bytes."""
    line, column, left = 1, 1, offset
    while left > 0 and (chunk := source.read(min(left, 1 << 20))):
        line += chunk.count(b"\n")
        last = chunk.rfind(b"\n")
        column = column + len(chunk) if last < 0 else len(chunk) - last
        left -= len(chunk)
    return line, column


def _has_suffix(path: Path) -> bool:
    suffixes = path.suffixes
    if suffixes and suffixes[-1] == ".gz":
        suffixes = suffixes[:-1]
    return bool(suffixes) and suffixes[-1].lower() in SUFFIXES


def _reason(error: Exception) -> str:
    match error:
        case FileNotFoundError():
            return "there is no such file"
        case PermissionError():
            return "not allowed to read it"
        case gzip.BadGzipFile() | EOFError() | zlib.error():
            return f"it is packed with gzip, but broken or truncated ({error})"
        case OSError():
            return f"can't be read: {error.strerror or error}"
    return str(error)
