"""What a person sees when something goes wrong: words and an exit code, never a traceback. In one place, for all."""

import sys
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import typer
from typer.core import TyperGroup

from berth.errors import BerthError

USAGE = 2
"""The exit code for input that can't be used; 0 is for an answer, whatever it says."""

P = ParamSpec("P")
T = TypeVar("T")


class InputMistakes(BerthError):
    """Everything that is wrong with what was given, a line each."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        super().__init__("\n".join(lines))


class Mistakes:
    """Collects what is wrong with several inputs, so that all of it is told at once."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def attempt(self, read: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """Return what ``read`` returns; None, with its mistakes noted, if it can't."""
        try:
            return read(*args, **kwargs)
        except BerthError as error:
            self.lines += str(error).splitlines()
            return None

    def raise_any(self) -> None:
        """Raise what was collected, if anything was."""
        if self.lines:
            raise InputMistakes(self.lines)


class BerthGroup(TyperGroup):
    """The commands, with `BerthError` turned into words and the exit code for unusable input."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BerthError as error:
            show_error(error)
            raise typer.Exit(USAGE) from None


def show_error(error: BerthError) -> None:
    """Write an error's lines to standard error, red on a terminal."""
    first, *rest = str(error).splitlines() or [type(error).__name__]
    typer.echo(typer.style("error: ", fg=typer.colors.RED, bold=True) + first, err=True)
    for line in rest:
        typer.echo(typer.style(f"  {line.strip()}", fg=typer.colors.RED), err=True)


def note(text: str) -> None:
    """Tell a person something that is no part of the answer."""
    typer.echo(text, file=sys.stderr)
