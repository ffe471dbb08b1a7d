"""Compiled loops in groups: loaded when it is worth it, kept from one process to the next, never in the way."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType

import pytest

from berth.scheduling import compiled, kernel
from berth.scheduling.batch_kernels import BATCH, BatchKernels
from berth.scheduling.compiled import Group
from berth.scheduling.look_kernels import LOOK
from berth.scheduling.stream_kernels import STREAM
from berth.scheduling.warming import exercises
from tests.scheduling.worlds import PROFILE

KEEP = """
import sys
from berth.scheduling import compiled
from berth.scheduling.warming import exercises
from tests.scheduling.worlds import PROFILE

compiled.keep_in(sys.argv[1])
group, exercise = next(pair for pair in exercises(PROFILE) if pair[0].name == "look")
group.warm_up(exercise)
assert group.kernels_for(1) is not None
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    pytest.importorskip("numba")
    compiled.keep_in(str(tmp_path))
    yield tmp_path
    compiled.keep_in(None)


def a_group(n_worth_loading: int = 100) -> Group[BatchKernels]:
    return Group("test", BatchKernels(kernel.run, kernel.build), n_worth_loading, methods=BATCH.methods)


def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    pytest.importorskip("numba")
    root = Path(__file__).parents[2]
    seen = []
    for _ in range(2):
        subprocess.run([sys.executable, "-c", KEEP, str(tmp_path)], cwd=root, check=True)
        seen.append({file: file.stat().st_mtime_ns for file in sorted(tmp_path.rglob("*")) if file.is_file()})
    assert any(file.suffix == ".nbc" for file in seen[0])
    assert {file.relative_to(tmp_path).parts[0] for file in seen[0]} == {f"look-{LOOK.digest()}"}
    assert seen[0] == seen[1]


def test_every_group_has_an_exercise_that_uses_it() -> None:
    for group, exercise in exercises(PROFILE):
        asked: list[str] = []

        class Asked:
            def __getattr__(self, name: str, asked: list[str] = asked) -> object:
                asked.append(name)
                raise InterruptedError

        with group.using(Asked()), pytest.raises(InterruptedError):
            exercise()
        assert asked


@pytest.mark.parametrize("group", [BATCH, STREAM, LOOK])
def test_an_edit_changes_the_digest(monkeypatch: pytest.MonkeyPatch, group: Group[BatchKernels]) -> None:
    before = group.digest()
    assert group.digest() == before
    helper = {
        "batch": kernel.join,
        "stream": STREAM.plain.run.__globals__["log"],
        "look": LOOK.plain.apply.__globals__["_balanced_gain"],
    }[group.name]
    assert isinstance(helper, FunctionType)
    code = helper.__code__
    monkeypatch.setattr(helper, "__code__", code.replace(co_consts=(*code.co_consts, 17)))
    assert group.digest() != before


def test_an_edit_of_a_constant_or_a_part_changes_the_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    digests = {BATCH.digest()}
    monkeypatch.setattr(kernel, "SHIFT", 5)
    digests.add(BATCH.digest())
    method = BATCH.parts[0].class_of
    monkeypatch.setattr(method, "__code__", method.__code__.replace(co_consts=(17,)))
    digests.add(BATCH.digest())
    assert len(digests) == 3


def test_loaded_when_it_is_worth_it(folder: Path) -> None:
    group = a_group()
    assert group.kernels_for(99) is None
    kernels = group.kernels_for(100)
    assert kernels is not None
    assert group.kernels_for(1) is kernels
    compiled.keep_in(None)
    assert a_group().kernels_for(10**9) is None


def test_a_folder_that_cannot_be_written(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "file").touch()
    compiled.keep_in(str(tmp_path / "file"))
    kernels = a_group().load()
    assert kernels is not None
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_without_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    group = a_group()
    assert group.load() is None
    group.warm_up(lambda: pytest.fail("there is nothing to exercise"))
    assert group.kernels_for(10**9) is None


def test_one_thread_may_do_without(folder: Path) -> None:
    group = a_group()
    kernels = group.load()
    with group.using(None):
        assert group.kernels_for(10**9) is None
        with group.using(kernels):
            assert group.kernels_for(1) is kernels
        assert group.kernels_for(1) is None
    assert group.kernels_for(1) is kernels


def test_nobody_waits_for_a_warm_up(folder: Path) -> None:
    group = a_group()
    begun, ended = threading.Event(), threading.Event()

    def exercise() -> None:
        assert group.kernels_for(1) is not None
        begun.set()
        ended.wait(30)

    thread = threading.Thread(target=group.warm_up, args=(exercise,))
    thread.start()
    assert begun.wait(30)
    assert group.kernels_for(10**9) is None
    ended.set()
    thread.join()
    assert group.kernels_for(1) is not None


def test_loops_that_fail_are_left_alone(folder: Path) -> None:
    group = a_group()
    with pytest.raises(ZeroDivisionError):
        group.warm_up(lambda: 1 // 0)
    assert group.kernels_for(10**9) is None
