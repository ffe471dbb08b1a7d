"""The project's pages, and what can be read out of them."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WITH_EXAMPLES = [ROOT / "README.md", ROOT / "docs" / "tutorial.md"]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "conformance").glob("*.md")])

_FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r"\btitle=(\S+)")
_NEEDS_MORE = re.compile(r"berth (serve|run|bench)\b|\.db\b|kubectl")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, the file that it shows (``title=``), and its text."""

    language: str
    title: str | None
    text: str


@dataclass(frozen=True, slots=True)
class Example:
    """A command, and the lines that the page shows for it; ``…`` stands for any lines."""

    command: str
    shown: tuple[str, ...]


def blocks(page: Path) -> list[Block]:
    found = []
    for fence in _FENCE.finditer(page.read_text(encoding="utf-8")):
        info = fence["info"].strip()
        title = _TITLE.search(info)
        found.append(Block(info.partition(" ")[0], title[1] if title else None, fence["text"]))
    return found


def examples(block: Block) -> list[Example]:
    """The commands of a console block that Berth can answer without a server or a store."""
    if block.language != "console":
        return []
    found = []
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, *shown = part.splitlines()
        while command.endswith("\\"):
            command = command[:-1] + shown.pop(0).strip()
        if re.match(r"(\w+=\S* )*berth ", command) and not _NEEDS_MORE.search(command):
            found.append(Example(command, tuple(line.rstrip() for line in shown)))
    return found


def agrees(shown: tuple[str, ...], printed: list[str]) -> bool:
    """Whether what is shown is what was printed, lines left out (``…``) aside."""
    if not shown:
        return not printed
    if shown[0] == "…":
        return any(agrees(shown[1:], printed[i:]) for i in range(len(printed) + 1))
    return bool(printed) and shown[0] == printed[0] and agrees(shown[1:], printed[1:])
