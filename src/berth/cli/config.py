"""``berth config``: the settings that hold, and who set them."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from berth.config.load import EffectiveSetting

_WIDE = 130


def config(
    file: Annotated[
        Path | None,
        typer.Option(
            "--config", help="Settings (berth.yaml). Without: what BERTH_CONFIG names, if it is set."
        ),
    ] = None,
    changed: Annotated[bool, typer.Option("--changed", help="Only what is not the default.")] = False,
) -> None:
    """Check the settings, and show each with its value and where that comes from.

    A value comes from the file, from a variable such as BERTH_MODULE_TIES, which wins over the file, or is the default.
    All mistakes are told at once; the exit code is then 2.

    Example:

        berth config --config berth.yaml
    """
    from berth.config.load import DEFAULT_SOURCE, explain_settings

    settings = explain_settings(file, os.environ, {})
    shown = [setting for setting in settings if not changed or setting.source != DEFAULT_SOURCE]
    if not shown:
        typer.echo("every setting has its default", err=True)
    elif sys.stdout.isatty():
        _print_table(shown, DEFAULT_SOURCE)
    else:
        _print_plain(shown)


def _print_plain(shown: "list[EffectiveSetting]") -> None:
    width = max(len(setting.key) for setting in shown)
    value_width = max(len(setting.value) for setting in shown)
    for setting in shown:
        typer.echo(f"{setting.key:{width}}  {setting.value or '-':{value_width}}  {setting.source}")


def _print_table(settings: "list[EffectiveSetting]", default: str) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    # The keys are long: on a narrow terminal they stand alone.
    with_meaning = console.width >= _WIDE
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("setting", no_wrap=True)
    for column in ("value", "from", "what it means")[: 3 if with_meaning else 2]:
        table.add_column(column, overflow="fold")
    for setting in settings:
        style = "dim" if setting.source == default else "bold"
        cells = [Text(cell, style) for cell in (setting.key, setting.value, setting.source)]
        table.add_row(*cells, *([Text(setting.meaning)] if with_meaning else []))
    console.print(table)
