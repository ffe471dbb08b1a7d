"""Builds the control plane from Go modules, once, and keeps what it built in the user's cache folder."""

import fcntl
import hashlib
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from berth.errors import BerthError
from berth.sim.benchmarks import cache_folder

VERSION = "v1.36.3"
_VERSION_PACKAGE = "k8s.io/component-base/version"
_STAGES = ("pod/fast", "node/fast", "node/heartbeat-with-lease")
_SOURCES = Path(__file__).resolve().parents[4] / "conformance" / "control_plane"
_TELL_EVERY_S = 30.0

Say = Callable[[str], None]


class BuildError(BerthError):
    """The control plane can't be built here."""


class GoMissingError(BuildError):
    """Go is not installed, and nothing has been built before."""


class SourcesMissingError(BuildError):
    """This is no checkout of Berth's sources, and they alone say what to build."""


@dataclass(frozen=True)
class Binaries:
    """Where the programs are: etcd (as ``server``) and Kubernetes' own in one folder, KWOK and its stages in another."""

    control_plane: Path
    kwok: Path | None


def ensure(say: Say, *, kwok: bool = True) -> Binaries:
    """Return the binaries, building those that are not there yet.

    Parameters
    ----------
    say : callable
        Shows a line to whoever waits.
    kwok : bool
        Whether KWOK is wanted too.

    Raises
    ------
    BuildError
        Go or what it builds from is missing, or it fails.
    """
    if not _SOURCES.is_dir():
        raise SourcesMissingError("a control plane is built from a checkout of Berth's sources only")
    flags = f"-s -w -X {_VERSION_PACKAGE}.gitVersion={VERSION} -X {_VERSION_PACKAGE}.gitMajor=1 " + (
        f"-X {_VERSION_PACKAGE}.gitMinor=36"
    )
    return Binaries(
        _built("control-plane", _SOURCES, flags, "about 6 minutes on two cores", say),
        _built("kwok", _SOURCES / "kwok", "-s -w", "about a minute", say) if kwok else None,
    )


def _built(name: str, module: Path, flags: str, duration: str, say: Say) -> Path:
    digest = hashlib.sha256(flags.encode())
    for file in ("go.mod", "go.sum"):
        digest.update((module / file).read_bytes())
    folder = _cache() / f"{name}-{digest.hexdigest()[:16]}"
    if folder.is_dir():
        return folder
    if shutil.which("go") is None:
        raise GoMissingError(f"Go is not installed, and {name} has not been built yet")
    with _alone(folder, say):
        if not folder.is_dir():  # another may have built it meanwhile
            say(f"Building {name} for a real control plane: {duration} the first time, once")
            unfinished = folder.with_suffix(".unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            _build(module, flags, unfinished, say)
            if name == "kwok":
                (unfinished / "stages.yaml").write_text(_stages(module), "utf-8")
            unfinished.rename(folder)
    return folder


def _cache() -> Path:
    folder = cache_folder("tests")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def _alone(folder: Path, say: Say) -> Iterator[None]:
    with folder.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"Waiting for another run that builds {folder.name}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build(module: Path, flags: str, output: Path, say: Say) -> None:
    log, start, told = output / "build.log", time.monotonic(), 0.0
    command = ["go", "build", "-v", "-ldflags", flags, "-o", str(output), "tool"]
    with log.open("w") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, cwd=module)
        try:
            while process.poll() is None:
                time.sleep(0.5)
                elapsed = time.monotonic() - start
                if elapsed - told > _TELL_EVERY_S:
                    told = elapsed
                    say(f"  … {len(log.read_text().splitlines())} packages after {elapsed:.0f} s")
        finally:
            process.kill()
            process.wait()
    if process.returncode:
        raise BuildError(f"{' '.join(command)} failed:\n{log.read_text()[-2000:]}")


def _stages(module: Path) -> str:
    query = ["go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok"]
    source = Path(
        subprocess.run(query, cwd=module, check=True, capture_output=True, text=True).stdout.strip()
    )
    files = [
        file for kind in _STAGES for file in sorted((source / "kustomize" / "stage" / kind).glob("*.yaml"))
    ]
    return "\n---\n".join(file.read_text("utf-8") for file in files if file.name != "kustomization.yaml")
