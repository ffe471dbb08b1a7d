"""What the pages show is what Berth prints: every command in them is run as it stands there."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import WITH_EXAMPLES, agrees, blocks, examples
from tests.docs.terminal import on_terminal


@pytest.mark.skipif(sys.platform == "win32", reason="needs a terminal as Unix has it")
@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: page.name)
def test_examples_print_what_is_shown(page: Path, tmp_path: Path) -> None:
    n_examples = 0
    for block in blocks(page):
        if block.title:
            (tmp_path / block.title).write_text(block.text, encoding="utf-8")
        if block.title and block.title.endswith(".py"):
            subprocess.run([sys.executable, block.title], cwd=tmp_path, check=True)
        for example in examples(block):
            printed = on_terminal(example.command, tmp_path)
            told = "\n".join(printed)
            assert agrees(example.shown, printed), f"$ {example.command}\nprints\n{told}"
            n_examples += 1
    assert n_examples > 0
