"""Write docs/configuration.md from the settings, so that the page is never behind them."""

from pathlib import Path

from berth.config.keys import SettingRow, describe_settings

PAGE = Path(__file__).resolve().parent.parent / "docs" / "configuration.md"

HEAD = """\
# Configuration

<!-- Made by scripts/make_configuration_docs.py from the settings themselves: change those, not this page. -->

Settings come from one YAML file, from environment variables, and from the command line. The command line
wins over the environment, the environment over the file, the file over the defaults. All mistakes, of every
source, are told at once, each with its key, where it stands, its value, and what was expected.

```yaml
module:
  ties: name
  roundInterval: 2s
  addWeights:
    LeastRequestedPriority: 3   # the others keep their defaults
    MostRequestedPriority: 1    # off unless it has a weight
forecast:
  file: forecasts.csv
```

```console
$ BERTH_MODULE_ROUND_INTERVAL=500ms berth serve --config berth.yaml
```

- Durations are written as in Kubernetes: `15m`, `1h30m`, `500ms`, `1s`.
- A key that is absent or `null`, and a variable that is empty, leave the default.
- Unknown keys and unknown `BERTH_…` variables are mistakes. Variables that Kubernetes makes for Services
  (`BERTH_SERVICE_HOST`, `BERTH_PORT=tcp://…`) are passed over.
- A list is one variable with the system's path separator between its parts:
  `BERTH_SNAPSHOT_PATHS=nodes.json:pods.json`.
- Relative paths start at the current folder.
- `BERTH_CONFIG` names the file, where the command line doesn't.
- A priority's weight is a whole number; 0 takes it out of the total. A priority without a default is
  off until it has a weight.
"""


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    """Compose the page: a table for each group of keys."""
    groups: dict[str, list[SettingRow]] = {}
    for row in describe_settings():
        groups.setdefault(row.key.rpartition(".")[0], []).append(row)
    return "\n".join([HEAD, *(_table(group, rows) for group, rows in groups.items())])


def _table(group: str, rows: list[SettingRow]) -> str:
    lines = [f"## {group}", "", "| key | variable | default | meaning |", "| --- | --- | --- | --- |"]
    for row in rows:
        default = f"`{row.default}`" if row.default else ""
        meaning = row.meaning.replace("|", "\\|")
        lines.append(f"| `{row.key}` | `{row.variable}` | {default} | {meaning} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
