"""`windlass bench --quick` on a PostgreSQL of its own: it measures, and leaves nothing. No speed is judged."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from windlass.bench.report import read


@pytest.fixture
def folder() -> Iterator[Path]:
    # Not pytest's own: as root the server runs as nobody, who may not enter it.
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.parametrize(
    "wanted",
    [("drain", "enqueue", "latency"), ("delays",), ("flow", "growth", "held", "history", "pooler", "profile")],
)
def test_a_quick_run_measures_on_its_own_server_and_leaves_nothing(folder: Path, wanted: tuple[str, ...]) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WINDLASS_")}
    command = [sys.executable, "-m", "windlass", "bench", "--quick", "--store", "postgres", *wanted]
    ran = subprocess.run(
        [*command, "--out", str(folder)], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert ran.returncode == 0, ran.stderr
    taken = read(folder).taken
    assert tuple(each.section.name for each in taken) == wanted
    assert {each.machine.store["store"] for each in taken} == {"PostgreSQL"}
    assert [path.name for path in folder.iterdir() if path.is_dir()] == []
