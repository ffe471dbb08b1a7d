"""Where compiled code is kept from one run to the next: in the user's folder for caches."""

from collections.abc import Mapping
from pathlib import Path

from berth.scheduling import compiled


def keep_kernels(environment: Mapping[str, str]) -> None:
    """Keep compiled code under ``XDG_CACHE_HOME``, by default ``~/.cache``; big batches and streams then run compiled."""
    try:
        folder = Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "berth" / "kernels"
    except RuntimeError:
        return  # Nobody's home.
    compiled.keep_in(str(folder))
