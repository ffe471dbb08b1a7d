"""What a process and its children have taken of the machine. Reads Linux's ``/proc``, of processes that run."""

import os
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
# Of what follows the command's name in ``stat``: utime, stime, and those of children that have ended.
_TIMES = slice(11, 15)


@dataclass(frozen=True, slots=True)
class Usage:
    """Of a process and its descendants. [seconds of the processors; MB of 2^20 bytes, each process at its peak]"""

    cpu_s: float
    peak_rss_mb: float


def usage_of(pid: int) -> Usage:
    """Return what a process has taken since it began.

    Raises
    ------
    OSError
        There is no such process, or it has ended.
    """
    folder = Path("/proc") / str(pid)
    times = (folder / "stat").read_text().rpartition(")")[2].split()[_TIMES]
    cpu_s, peak_rss_mb = sum(int(ticks) for ticks in times) / _TICKS, _peak_rss_mb(folder)
    for thread in (folder / "task").iterdir():
        for child in (thread / "children").read_text().split():
            of_child = usage_of(int(child))
            cpu_s, peak_rss_mb = cpu_s + of_child.cpu_s, peak_rss_mb + of_child.peak_rss_mb
    return Usage(cpu_s, peak_rss_mb)


def _peak_rss_mb(folder: Path) -> float:
    for line in (folder / "status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 2**10
    raise ProcessLookupError(f"{folder.name} has ended")
