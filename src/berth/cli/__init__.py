"""The command line. Knows the sub-commands, not what they do."""

from importlib.metadata import version
from typing import Annotated

import typer

from berth.cli.answer import answer
from berth.cli.bench import bench
from berth.cli.config import config
from berth.cli.diff import diff
from berth.cli.errors import BerthGroup
from berth.cli.plan import OrderedCommand, plan
from berth.cli.run import run
from berth.cli.serve import serve
from berth.cli.snapshot import snapshot

app = typer.Typer(name="berth", cls=BerthGroup, no_args_is_help=True, rich_markup_mode="markdown")

app.command()(serve)
app.command()(run)
app.command()(answer)
app.command(cls=OrderedCommand)(plan)
app.command()(diff)
app.command()(snapshot)
app.command()(config)
app.command()(bench)


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


def main() -> None:
    """Run the command line, as the installed command ``berth`` does."""
    app(prog_name="berth")
