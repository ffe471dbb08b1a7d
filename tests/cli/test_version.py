from importlib.metadata import version

from typer.testing import CliRunner

from berth.cli import app


def test_version_is_the_installed_one() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.output == f"berth {version('berth')}\n"
