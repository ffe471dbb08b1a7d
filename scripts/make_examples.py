"""Write what Berth prints now under the examples of the README and the tutorial that no longer agree with it.

Run it as ``python -m scripts.make_examples``. Of what was left out with ``…`` only the lines at the beginning are left out
again: shorten the rest by hand, and read what has changed.
"""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.docs.pages import WITH_EXAMPLES, Example, agrees, blocks, examples
from tests.docs.terminal import on_terminal


def main() -> None:
    for page in WITH_EXAMPLES:
        with TemporaryDirectory() as folder:
            refresh(page, Path(folder))


def refresh(page: Path, folder: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for block in blocks(page):
        if block.title:
            (folder / block.title).write_text(block.text, encoding="utf-8")
        for example in examples(block):
            printed = on_terminal(example.command, folder)
            if not agrees(example.shown, printed):
                print(f"{page.name}: {example.command}")
                now = shorten(example, printed)
                text = text.replace(as_text(example.command, example.shown), as_text(example.command, now))
    page.write_text(text, encoding="utf-8")


def shorten(example: Example, printed: list[str]) -> list[str]:
    if example.shown[:1] != ("…",):
        return printed
    first_word = example.shown[1].partition(" ")[0]
    starts = [i for i, line in enumerate(printed) if line.partition(" ")[0] == first_word]
    return ["…", *printed[starts[0] :]] if starts else printed


def as_text(command: str, lines: Sequence[str]) -> str:
    return "\n".join([f"$ {command}", *lines, ""])


if __name__ == "__main__":
    main()
