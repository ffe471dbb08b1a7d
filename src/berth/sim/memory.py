"""How much memory a workload will take, and how much there is: told before anything is made."""

import os
import sys
from pathlib import Path

from berth.errors import BerthError
from berth.sim.workload_files import Size

_PROCESS = 160 << 20  # the interpreter, its packages, and the evaluations that are kept
_A_NODE = 2048
_AN_EXISTING_POD = 640
_A_PLACED_POD = 1024
_MB = 1 << 20


class TooLargeError(BerthError):
    """A cluster that does not fit into memory."""


def estimate(size: Size) -> int:
    """Estimate the peak of memory. [bytes]

    Measured on clusters of 10 to 100,000 nodes and up to a million pods, and rounded up.
    """
    return _PROCESS + size.nodes * _A_NODE + size.existing * _AN_EXISTING_POD + size.pods * _A_PLACED_POD


def available() -> int | None:
    """Tell how much memory a new process can have, of the machine or of the control group; None if nobody says. [bytes]"""
    left = [amount for amount in (_of_machine(), _of_group()) if amount is not None]
    return min(left) if left else None


def check(name: str, size: Size) -> None:
    """Compare the two.

    Raises
    ------
    TooLargeError
        It does not fit.
    """
    needed, left = estimate(size), available()
    if left is not None and needed > left:
        raise TooLargeError(
            f"{name}: {size.nodes:,} nodes, {size.existing:,} pods there and {size.pods:,} to come need about "
            f"{_megabytes(needed)}, but {_megabytes(left)} are free"
        )


def _megabytes(amount: int) -> str:
    return f"{-(-amount // _MB):,} MB"


def _of_machine() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text("ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    if sys.platform == "darwin":
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return None


def _of_group() -> int | None:
    """Of control groups version 2, then version 1, as a container sees them."""
    folder = Path("/sys/fs/cgroup")
    for limit, used in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        try:
            return max(0, int((folder / limit).read_text("ascii")) - int((folder / used).read_text("ascii")))
        except (OSError, ValueError):
            continue  # there is no such file, or no limit ("max")
    return None
