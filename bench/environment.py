"""The environment of processes that run modules of the bench."""

import os
from pathlib import Path

ROOT = Path(__file__).parents[1]
MAX_SECONDS = 600.0
"""The longest time of one process of a run."""


def bench_environment() -> dict[str, str]:
    """With the repository on the import path, whatever folder the process runs in."""
    return {"PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))}
