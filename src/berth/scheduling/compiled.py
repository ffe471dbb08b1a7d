"""The batch kernel compiled by Numba: loaded when somebody asks, kept in a folder that the program names.

Numba's cache does not see edits in files other than the kernel's own; its folder is therefore named after a digest of all
code that is compiled into it. Without Numba nothing is lost but speed.
"""

import hashlib
import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib import import_module
from types import CodeType, FunctionType
from typing import Any

from berth.plugins.pod_topology_spread import scoring as topology_spread
from berth.plugins.selector_spread import SpreadClasses, spread_score
from berth.plugins.service_affinity import Shares, share_score
from berth.scheduling import board, joint, kernel
from berth.scheduling.board import NoClasses

PARTS: tuple[type[Any], ...] = (
    NoClasses, SpreadClasses, Shares, topology_spread.DomainClasses, joint.JointClasses,
)  # fmt: skip
"""The classed parts that are compiled; a batch with another one runs in Python."""

METHODS = ("class_of", "table", "place", "close")
HELPERS: tuple[Callable[..., Any], ...] = (
    board.next_local, board.recount, board.recount_class, board.is_stale,
    kernel.refresh_block, kernel.join, kernel.refresh, kernel.kth, kernel.slot_for, kernel.shut,
    spread_score, share_score, *topology_spread.COMPILED, *joint.COMPILED,
)  # fmt: skip

N_WORTH_LOADING = 100_000
"""How many decisions at once are worth loading Numba for (about a second)."""


@dataclass(slots=True)
class Kernels:
    """The compiled functions, those of `berth.scheduling.kernel`."""

    run: Callable[..., int]
    build: Callable[..., None]


@dataclass(slots=True)
class _Shelf:
    folder: str | None = None
    kernels: Kernels | None = None
    failed: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)


_shelf = _Shelf()


def keep_in(folder: str) -> None:
    """Say in which folder compiled code is kept; big batches then load it by themselves."""
    _shelf.folder = folder


def loaded() -> Kernels | None:
    """Return the kernels if they have been loaded."""
    return _shelf.kernels


def kernels_for(n: int) -> Kernels | None:
    """Return the kernels if they are there, or if so many decisions are worth loading them; else None."""
    if _shelf.kernels is None and _shelf.folder is not None and n >= N_WORTH_LOADING:
        load()
    return _shelf.kernels


def load() -> Kernels | None:
    """Load the kernels, compiling what is not kept yet when it is first used; None where Numba is not installed."""
    with _shelf.lock:
        if _shelf.kernels is None and not _shelf.failed:
            try:
                _shelf.kernels = _compile(_shelf.folder)
            except ImportError:
                _shelf.failed = True
        return _shelf.kernels


def _compile(folder: str | None) -> Kernels:
    # By name: it need not be installed, for a type checker either.
    numba: Any = import_module("numba")
    extending: Any = import_module("numba.extending")
    for helper in HELPERS:
        extending.register_jitable(helper)
    for name in METHODS:
        extending.overload(getattr(kernel, name))(_choose(name))
    if folder is not None:
        numba.config.CACHE_DIR = f"{folder}/{digest()}"
        try:
            return Kernels(numba.njit(cache=True)(kernel.run), numba.njit(cache=True)(kernel.build))
        except RuntimeError:
            pass  # The folder can't be written.
    return Kernels(numba.njit(kernel.run), numba.njit(kernel.build))


def _choose(name: str) -> Callable[..., Any]:
    """Return what tells Numba the method of a part by the part's type."""

    def of_part(part: Any) -> Any:
        method = getattr(part.instance_class, name)
        return _bare(method)

    def of_row(self: Any, row: Any) -> Any:
        return of_part(self)

    def of_classes(self: Any, classes: Any, sizes: Any) -> Any:
        return of_part(self)

    return _bare(of_classes if name == "table" else of_row)


def _bare(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function without its annotations: Numba wants those of a method and of what chooses it to be equal."""
    assert isinstance(function, FunctionType)
    return FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )


def digest() -> str:
    """Return a digest of everything that is compiled, and of the Python that compiles it."""
    code: list[Any] = [sys.version]
    methods = (getattr(part, name) for part in PARTS for name in METHODS)
    for function in (*HELPERS, *methods, kernel.run, kernel.build, _compile, _choose):
        code.append(_described(_code_of(function)))
    return hashlib.sha256(repr(code).encode()).hexdigest()[:16]


def _code_of(function: Callable[..., Any]) -> CodeType:
    assert isinstance(function, FunctionType)
    return function.__code__


def _described(code: CodeType) -> tuple[Any, ...]:
    constants: Iterable[Any] = (_described(c) if isinstance(c, CodeType) else c for c in code.co_consts)
    return code.co_name, code.co_code, code.co_names, code.co_varnames, tuple(constants)
