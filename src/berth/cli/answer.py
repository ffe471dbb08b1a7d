"""``berth answer``: cases in, answers out, line by line."""

import sys
from collections.abc import Callable
from typing import Annotated, BinaryIO

import typer

MODULE = "module"

Release = Annotated[
    str,
    typer.Option(
        "--release", metavar="RELEASE", help=f"Whose answers: {MODULE}, or a Kubernetes release such as 1.13."
    ),
]


def answer(release: Release) -> None:
    """Answer cases, JSON lines on standard input, with JSON lines on standard output.

    With --release module a case is a scenario: a cluster, requests and the rules of one round. With a Kubernetes
    release it is a pod and a cluster, and the answer what kube-scheduler says of every node. The answers come in the
    order of the cases, each as soon as it is known. A line that can't be answered is answered with an "error".

    Example:

        berth answer --release module < scenarios.jsonl > plans.jsonl
    """
    answer_all(answerer(release), sys.stdin.buffer, sys.stdout.buffer)


def answer_all(answer_line: Callable[[bytes], bytes], lines: BinaryIO, output: BinaryIO) -> None:
    """Answer every line that is not empty, and flush each answer: somebody may wait for it with the next case."""
    for line in lines:
        if line.strip():
            output.write(answer_line(line) + b"\n")
            output.flush()


def answerer(release: str) -> Callable[[bytes], bytes]:
    """Return what answers one line.

    Raises
    ------
    InputError
        There is no such release (yet).
    """
    from berth.errors import InputError
    from berth.releases import RELEASES
    from berth.sources.answers import answer_line
    from berth.sources.cases import answer_case
    from berth.sources.scenario import answer_scenario

    if release == MODULE:
        return lambda line: answer_line(line, answer_scenario)
    if release in RELEASES:
        return lambda line: answer_line(line, lambda case: answer_case(case, RELEASES[release]))
    raise InputError("--release", release, f"one of those there are: {', '.join((MODULE, *RELEASES))}")
