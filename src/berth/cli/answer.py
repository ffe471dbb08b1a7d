"""``berth answer``: cases in, answers out, line by line."""

import sys
from typing import Annotated, BinaryIO

import typer

from berth.errors import InputError

RELEASES = ("module",)

Release = Annotated[
    str, typer.Option("--release", metavar="RELEASE", help=f"Whose answers: {', '.join(RELEASES)}.")
]


def answer(release: Release) -> None:
    """Answer cases, JSON lines on standard input, with JSON lines on standard output.

    With --release module a case is a scenario: a cluster, requests and the rules of one round. The answers come in
    the order of the cases, each as soon as it is known. A line that can't be answered is answered with an "error".

    Example:

        berth answer --release module < scenarios.jsonl > plans.jsonl
    """
    if release not in RELEASES:
        raise InputError("--release", release, f"one of: {', '.join(RELEASES)}")
    answer_all(sys.stdin.buffer, sys.stdout.buffer)


def answer_all(lines: BinaryIO, output: BinaryIO) -> None:
    """Answer every line that is not empty, and flush each answer: somebody may wait for it with the next case."""
    from berth.sources.scenario import answer_line

    for line in lines:
        if line.strip():
            output.write(answer_line(line) + b"\n")
            output.flush()
