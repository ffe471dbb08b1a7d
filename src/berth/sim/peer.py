"""kube-scheduler's own code as a peer: built with Go on demand, given the cluster and pods that Berth is measured on."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import msgspec

from berth.cluster.cluster import Cluster
from berth.errors import BerthError
from berth.sim.benchmarks import cache_folder
from berth.sim.made_cluster import MadeCluster, PodStream
from berth.sim.recipe import JsonObject
from berth.sim.scheduling import filled_cluster
from berth.sources.writer import pod_objects

VERSION = "1.36.3"
SAMPLED = 0
"""percentageOfNodesToScore: kube-scheduler's default, which looks at fewer nodes the more there are."""
EVERY_NODE = 100

_SOURCES = Path(__file__).resolve().parents[3] / "conformance" / "oracles" / f"v{VERSION}"
# So that a comparison takes a minute at most, whatever the size: pods times nodes.
_PODS_TIMES_NODES = {SAMPLED: 10_000_000, EVERY_NODE: 5_000_000}


class NoPeerError(BerthError):
    """The peer can't be had; the message says why."""


@dataclass(frozen=True, slots=True)
class PeerResult:
    """What the peer took for the first pods of a workload, or all. [seconds, MB of 2^20 bytes]"""

    percentage: int
    pods: int
    decisions_per_second: float
    seconds: float
    cpu_seconds: float
    peak_rss_mb: float


def build() -> Path:
    """Return the peer's program: built once for each state of its sources, kept in the user's cache folder.

    Raises
    ------
    NoPeerError
        There is no Go, no source, or it does not build.
    """
    if not (_SOURCES / "peer").is_dir():
        raise NoPeerError("kube-scheduler's code is compared with from a checkout of Berth's sources only")
    program = cache_folder("peer") / f"{VERSION}-{_digest()}"
    if program.exists():
        return program
    go = shutil.which("go")
    if go is None:
        raise NoPeerError("kube-scheduler's code can't be built: Go is not installed (no go on the PATH)")
    program.parent.mkdir(parents=True, exist_ok=True)
    unfinished = program.with_name(f"{program.name}.{os.getpid()}")
    done = subprocess.run(
        [go, "build", "-C", str(_SOURCES), "-o", str(unfinished), "./peer"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"go ended with {done.returncode}"])[-1]
        raise NoPeerError(f"kube-scheduler's code can't be built: {last}")
    unfinished.rename(program)
    return program


def measure_peer(program: Path, made: MadeCluster, percentages: Iterable[int]) -> list[PeerResult]:
    """Give the peer the cluster and pods of a workload, once for each percentage of nodes to score.

    Raises
    ------
    NoPeerError
        It ended with an error.
    """
    with tempfile.TemporaryDirectory(prefix="berth-peer-") as folder:
        file = Path(folder) / "workload.jsonl"
        with file.open("wb") as out:
            _write(out, made, filled_cluster(made))
        stream = made.measured()
        return [_measure(program, file, stream, percentage, made.size.nodes) for percentage in percentages]


def _measure(program: Path, file: Path, stream: PodStream, percentage: int, n_nodes: int) -> PeerResult:
    limit = max(100, _PODS_TIMES_NODES[percentage] // n_nodes)
    arguments = ["-percentage", str(percentage), "-limit", str(limit), str(file)]
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoPeerError(f"kube-scheduler's code failed: {done.stderr.strip()}")
    said = msgspec.json.decode(done.stdout)
    n_counted = stream.n_counted(said["count"])
    return PeerResult(
        percentage=percentage,
        pods=n_counted,
        decisions_per_second=round(said["decisions_per_second"] * n_counted / said["count"], 1),
        seconds=said["seconds"],
        cpu_seconds=said["cpu_seconds"],
        peak_rss_mb=said["max_rss_mb"],
    )


def _write(out: BinaryIO, made: MadeCluster, cluster: Cluster) -> None:
    """Write what the peer reads: the cluster in one line, then each incoming pod in one of its own."""
    out.write(b'{"namespaces":%b,"services":%b,"nodes":[' % tuple(map(msgspec.json.encode, _others(made))))
    _write_all(out, made.nodes(), b",")
    out.write(b'],"pods":[')
    _write_all(out, _existing(cluster), b",")
    out.write(b"]}\n")
    stream = made.measured()
    incoming = (
        _named(stream.templates[number], f"incoming-{i}") for i, number in enumerate(stream.order.tolist())
    )
    _write_all(out, incoming, b"\n")


def _others(made: MadeCluster) -> tuple[list[JsonObject], list[JsonObject]]:
    return made.namespaces(), made.services()


def _existing(cluster: Cluster) -> Iterator[JsonObject]:
    pods = cluster.pods.alive.nonzero()[0].tolist()
    for i, text in enumerate(pod_objects(cluster, pods)):
        yield _named(msgspec.json.decode(text), f"existing-{i}")


def _named(pod: JsonObject, name: str) -> JsonObject:
    return pod | {"metadata": {**pod["metadata"], "name": name}}


def _write_all(out: BinaryIO, items: Iterable[JsonObject], between: bytes) -> None:
    for i, item in enumerate(items):
        if i:
            out.write(between)
        out.write(msgspec.json.encode(item))


def _digest() -> str:
    digest = hashlib.blake2b(digest_size=8)
    for file in (_SOURCES / "go.mod", _SOURCES / "go.sum", *sorted((_SOURCES / "peer").glob("*.go"))):
        digest.update(file.read_bytes())
    return digest.hexdigest()
