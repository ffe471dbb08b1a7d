"""What processes take, as Linux tells it."""

import os
import subprocess
import sys

import pytest

from berth.live.bench.usage import usage_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

PARENT = """\
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", CHILD], stdout=subprocess.PIPE)
child.stdout.read(1)
print("ready", flush=True)
sys.stdin.read()
child.kill()
"""
CHILD = """\
import time
held = b"x" * (64 << 20)
end = time.process_time() + 0.3
while time.process_time() < end:
    pass
print(1, flush=True)
time.sleep(60)
"""


def test_children_are_counted() -> None:
    program = PARENT.replace("CHILD", repr(CHILD))
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        usage = usage_of(process.pid)
        process.communicate(b"")
    assert usage.cpu_s >= 0.3
    assert usage.peak_rss_mb > 64


def test_a_process_that_has_ended() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # its exit code is still to be asked for
    with pytest.raises(ProcessLookupError):
        usage_of(process.pid)
    process.wait()
    with pytest.raises(FileNotFoundError):
        usage_of(process.pid)
