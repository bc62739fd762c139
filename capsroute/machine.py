"""What a measured row is worth: the code, the library and the machine it was made with.

>>> sorted(provenance())
['capsroute', 'commit', 'cores', 'processor', 'threads', 'torch']
"""

import os
import platform
import subprocess
from pathlib import Path
from typing import Any

from capsroute._version import __version__


def provenance() -> dict[str, Any]:
    """Versions, commit, processor, its cores and how many threads are used of them: for rows of results."""
    import torch

    return {
        "capsroute": __version__,
        "commit": commit(),
        "torch": torch.__version__,
        "processor": processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
    }


def commit() -> str | None:
    """The commit of the code, where it runs from a checkout; with a plus where files differ from it."""
    try:
        return _git("rev-parse", "--short", "HEAD") + ("+" if _git("status", "--porcelain", "-uno") else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def processor() -> str:
    """The name of the processor, as far as the system tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass  # not Linux
    return platform.processor() or platform.machine()


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(Path(__file__).parent), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
