"""The worker in Rust, built once for all tests of a run."""

import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "examples" / "workers" / "rust"


def rust_worker() -> str:
    """The path of the program; skips the test where there is no cargo."""
    if shutil.which("cargo") is None:
        pytest.skip("no cargo here: the worker in Rust is not built")
    return _built()


@cache
def _built() -> str:
    target = Path(tempfile.gettempdir()) / f"windlass-rust-worker-{os.getuid()}"
    command = ["cargo", "build", "--offline", "--quiet", "--manifest-path", str(SOURCE / "Cargo.toml")]
    done = subprocess.run(
        command, env={**os.environ, "CARGO_TARGET_DIR": str(target)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return str(target / "debug" / "worker")
