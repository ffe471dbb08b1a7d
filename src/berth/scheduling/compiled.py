"""Loops that Numba compiles: in groups, each loaded when somebody asks, kept in a folder that the program names.

A group's loops are plain functions over arrays, which call one another by name; what they call is found by itself. Numba's
cache does not see edits in files other than a loop's own; its folder is therefore named after a digest of all code and all
constants that are compiled into the group. Without Numba nothing is lost but speed.
"""

import hashlib
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import CodeType, FunctionType
from typing import Any, ClassVar, Generic, TypeVar, cast

Kernels = TypeVar("Kernels", bound=tuple[Callable[..., Any], ...])

_OPTIONS = {"error_model": "numpy"}
"""A float division does not look for zeros, and can be done several at a time: no loop divides by zero."""


class _Keeping:
    """Where compiled code is kept, what Numba has been told to compile, and the lock for telling it."""

    folder: str | None = None
    told: ClassVar[set[Callable[..., Any]]] = set()
    lock = threading.Lock()


def keep_in(folder: str | None) -> None:
    """Say in which folder compiled code is kept; big inputs then load it by themselves."""
    _Keeping.folder = folder


class Group(Generic[Kernels]):
    """Loops that are compiled, kept and loaded together.

    Parameters
    ----------
    name : str
        What the group's folder begins with.
    plain : named tuple of functions
        The loops as Python runs them, in a type of the group's own; compiled, they come in the same type.
    n_worth_loading : int
        How many decisions at once are worth loading Numba for (about a second).
    parts : sequence of type
        Named tuples of arrays whose methods are compiled too.
    methods : sequence of function
        What the loops call in place of those methods: each stands for the part's method of its name.
    """

    def __init__(
        self,
        name: str,
        plain: Kernels,
        n_worth_loading: int,
        *,
        parts: Sequence[type[Any]] = (),
        methods: Sequence[Callable[..., Any]] = (),
    ) -> None:
        self.name = name
        self.plain = plain
        self.parts = tuple(parts)
        self.methods = tuple(methods)
        self._n_worth_loading = n_worth_loading
        self._kernels: Kernels | None = None
        self._failed = False
        self._loading = threading.Lock()
        self._here = threading.local()

    def kernels_for(self, n: int) -> Kernels | None:
        """Return the compiled loops if they are there, or if so many decisions are worth loading them; else None.

        None, too, while another thread loads them.
        """
        if hasattr(self._here, "kernels"):
            return cast("Kernels | None", self._here.kernels)
        if self._kernels is None and _Keeping.folder is not None and n >= self._n_worth_loading:
            if not self._loading.acquire(blocking=False):
                return None
            try:
                self._load()
            finally:
                self._loading.release()
        return self._kernels

    def load(self) -> Kernels | None:
        """Load the loops, compiling what is not kept yet when it is first used; None where Numba is not installed."""
        with self._loading:
            self._load()
        return self._kernels

    def warm_up(self, exercise: Callable[[], object]) -> None:
        """Load the loops and run an exercise that has them compiled, before any other thread meets them."""
        with self._loading:
            if self._kernels is not None or self._failed:
                return
            self._failed = True
            kernels = self._compiled()
            if kernels is not None:
                with self.using(kernels):
                    exercise()
                self._kernels, self._failed = kernels, False

    @contextmanager
    def using(self, kernels: Kernels | None) -> Iterator[None]:
        """Use these loops in this thread, whatever is loaded; None for what runs in their place."""
        before = dict(self._here.__dict__)
        self._here.kernels = kernels
        try:
            yield
        finally:
            self._here.__dict__.clear()
            self._here.__dict__.update(before)

    def digest(self) -> str:
        """Return a digest of everything that is compiled, and of the Python that compiles it."""
        code: list[Any] = [sys.version, _OPTIONS]
        for function in (*self._functions(), _function(Group._compiled), _function(_choose)):
            code.append((_described(function.__code__), _constants(function)))
        return hashlib.sha256(repr(code).encode()).hexdigest()[:16]

    def _load(self) -> None:
        if self._kernels is None and not self._failed:
            self._kernels = self._compiled()
            self._failed = self._kernels is None

    def _functions(self) -> list[FunctionType]:
        """Return what is compiled: the loops, the parts' methods, and what these call."""
        found: dict[FunctionType, None] = {}
        left = [_function(loop) for loop in self.plain]
        left += [_function(getattr(part, method.__name__)) for part in self.parts for method in self.methods]
        while left:
            function = left.pop()
            if function not in found:
                found[function] = None
                left += [called for called in _called(function) if called not in self.methods]
        return list(found)

    def _compiled(self) -> Kernels | None:
        # By name: it need not be installed, for a type checker either.
        try:
            numba: Any = import_module("numba")
            extending: Any = import_module("numba.extending")
        except ImportError:
            return None
        with _Keeping.lock:
            functions: tuple[Callable[..., Any], ...] = (*self._functions(), *self.methods)
            for function in functions:
                if function in _Keeping.told:
                    continue
                _Keeping.told.add(function)
                if function in self.methods:
                    extending.overload(function, jit_options=_OPTIONS, strict=False)(
                        _choose(function.__name__)
                    )
                else:
                    extending.register_jitable(**_OPTIONS)(function)
            if _Keeping.folder is not None:
                kept = self._kept(numba, f"{_Keeping.folder}/{self.name}-{self.digest()}")
                if kept is not None:
                    return kept
            return self._made(numba.njit(**_OPTIONS))

    def _kept(self, numba: Any, folder: str) -> Kernels | None:
        """Return the loops, to be kept in the folder; None if it can't be written."""
        before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, folder
        try:
            kernels = self._made(numba.njit(cache=True, **_OPTIONS))
        except RuntimeError:
            return None
        finally:
            numba.config.CACHE_DIR = before
        # Numba goes for other places if it can't write there, where nothing tells stale code.
        paths: list[str] = [cast(Any, kernel).stats.cache_path for kernel in kernels]
        return kernels if all(path.startswith(folder) for path in paths) else None

    def _made(self, compile_: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Kernels:
        return cast(Any, type(self.plain))(*map(compile_, self.plain))


def _choose(name: str) -> Callable[..., Any]:
    """Return what tells Numba the method of a part by the part's type."""

    def choose(part: Any, *_: Any) -> Any:
        return _bare(getattr(part.instance_class, name))

    return choose


def _bare(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function without its annotations, which Numba would compare."""
    made = _function(function)
    return FunctionType(
        made.__code__, made.__globals__, made.__name__, made.__defaults__, made.__closure__
    )  # fmt: skip


def _function(function: Callable[..., Any]) -> FunctionType:
    assert isinstance(function, FunctionType)
    return function


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _called(function: FunctionType) -> list[FunctionType]:
    """Return the functions of this package that a function names."""
    named = (function.__globals__.get(name) for name in _names(function.__code__))
    root = __name__.partition(".")[0]
    return [f for f in named if isinstance(f, FunctionType) and f.__module__.partition(".")[0] == root]


def _constants(function: FunctionType) -> list[tuple[str, str]]:
    """Return the global constants that a function names: they are compiled in."""
    named = ((name, function.__globals__.get(name)) for name in _names(function.__code__))
    return [(name, repr(value)) for name, value in named if isinstance(value, (int, float, str, tuple))]


def _described(code: CodeType) -> tuple[Any, ...]:
    constants = (_described(c) if isinstance(c, CodeType) else c for c in code.co_consts)
    return code.co_name, code.co_code, code.co_names, code.co_varnames, tuple(constants)
