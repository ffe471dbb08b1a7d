"""``berth answer``: cases in, answers out, line by line."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

if TYPE_CHECKING:
    from berth.releases.release import Release as KubernetesRelease

MODULE = "module"
_CHUNK_BYTES = 1 << 16

Release = Annotated[
    str,
    typer.Option(
        "--release", metavar="RELEASE", help=f"Whose answers: {MODULE}, or a Kubernetes release such as 1.13."
    ),
]

FeatureGates = Annotated[
    str,
    typer.Option(
        "--feature-gates", metavar="NAME=true,…", help="Feature gates, set over those of each case."
    ),
]


def answer(release: Release, feature_gates: FeatureGates = "") -> None:
    """Answer cases, JSON lines on standard input, with JSON lines on standard output.

    With --release module a case is a scenario: a cluster, requests and the rules of one round. With a Kubernetes
    release it is a pod and a cluster, and the answer what kube-scheduler says of every node. The answers come in the
    order of the cases, each as soon as it is known. A line that can't be answered is answered with an "error".

    Examples:

        berth answer --release module < scenarios.jsonl > plans.jsonl

        berth answer --release 1.36 < cases.jsonl > answers.jsonl
    """
    answer_all(answerer(release, feature_gates), sys.stdin.buffer, sys.stdout.buffer)


def answer_all(answer_line: Callable[[bytes], bytes], lines: BinaryIO, output: BinaryIO) -> None:
    """Answer every line that is not empty; flush when the input runs dry: somebody may wait with the next case."""
    rest: list[bytes] = []
    while chunk := lines.read1(_CHUNK_BYTES):  # type: ignore[attr-defined]
        *whole, unfinished = chunk.split(b"\n")
        if whole:
            whole[0] = b"".join((*rest, whole[0]))
            rest.clear()
        rest.append(unfinished)
        for line in whole:
            if line.strip():
                output.write(answer_line(line) + b"\n")
        output.flush()
    last = b"".join(rest)
    if last.strip():
        output.write(answer_line(last) + b"\n")
        output.flush()


def answerer(release: str, feature_gates: str = "") -> Callable[[bytes], bytes]:
    """Return what answers one line.

    Raises
    ------
    InputError
        There is no such release (yet), or the feature gates can't be read.
    """
    from berth.errors import InputError
    from berth.sources.answers import answer_line
    from berth.sources.cases import answer_case
    from berth.sources.scenario import answer_scenario

    gates = parse_feature_gates(feature_gates)
    if release == MODULE:
        if gates:
            raise InputError("--feature-gates", feature_gates, f"for --release {MODULE}, which has none")
        return lambda line: answer_line(line, answer_scenario)
    found = find_release("--release", release, also=(MODULE,))
    return lambda line: answer_line(line, lambda case: answer_case(case, found, gates))


def find_release(option: str, name: str, also: tuple[str, ...] = ()) -> "KubernetesRelease":
    """Return a release by its name; ``also`` is what the option takes besides.

    Raises
    ------
    InputError
        There is no such release (yet).
    """
    from berth.errors import InputError
    from berth.releases import RELEASES

    if name not in RELEASES:
        raise InputError(option, name, f"one of those there are: {', '.join((*also, *RELEASES))}")
    return RELEASES[name]


def parse_feature_gates(text: str) -> dict[str, bool]:
    """Read ``Name=true,Other=false``.

    Raises
    ------
    InputError
        It is no such thing.
    """
    from berth.errors import InputError

    gates: dict[str, bool] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        name, _, value = part.partition("=")
        if not name or value.lower() not in ("true", "false"):
            raise InputError("--feature-gates", part, "a gate such as EvenPodsSpread=true")
        gates[name] = value.lower() == "true"
    return gates
