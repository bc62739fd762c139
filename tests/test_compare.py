"""What a comparison leaves behind when it is killed: its rows, and no process."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROGRAM = """
import multiprocessing, os, time
from capsroute.compare import _leave_with_the_parent

if __name__ == "__main__":
    pool = multiprocessing.get_context("spawn").Pool(1, initializer=_leave_with_the_parent)
    print(pool.apply(os.getpid), flush=True)
    time.sleep(60)
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")
def test_a_run_ends_with_the_comparison_that_started_it(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    with subprocess.Popen(
        [sys.executable, program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as started:
        assert started.stdout is not None
        run = int(started.stdout.readline())
        assert alive(run)
        os.kill(started.pid, signal.SIGKILL)
    deadline = time.monotonic() + 20
    while alive(run) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(run)


def alive(process: int) -> bool:
    """Whether it is there and more than an entry that nobody has collected."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
