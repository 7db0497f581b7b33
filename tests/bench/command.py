"""The bench as its own program."""

import os
import subprocess
import sys
from pathlib import Path

from bench.environment import bench_environment

COMMAND = (sys.executable, "-m", "bench")


def environment() -> dict[str, str]:
    """Ours without settings, with the bench on the import path."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WINDLASS_")}
    return {**kept, **bench_environment()}


def run_bench(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """`python -m bench` in a folder."""
    command = [*COMMAND, *words]
    return subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=300, check=False
    )
