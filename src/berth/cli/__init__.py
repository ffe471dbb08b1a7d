"""The command line. Knows the sub-commands, not what they do."""

from importlib.metadata import version
from typing import Annotated

import typer

from berth.cli.serve import EXAMPLE, serve

app = typer.Typer(name="berth", no_args_is_help=True)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"berth {version('berth')}")
        raise typer.Exit


@app.callback()
def berth(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Decide where Kubernetes pods go, and which of them leave."""


app.command(epilog=EXAMPLE)(serve)


def main() -> None:
    """Run the command line, as the installed command ``berth`` does."""
    app()
