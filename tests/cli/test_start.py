"""What is loaded before a command runs: nothing that only another one needs."""

import subprocess
import sys

import pytest

LATER = {
    "windlass": {"apsw", "rich", "typer", "uvloop", "windlass.cli", "windlass.worker"},
    "windlass.cli.main": {
        "apsw",
        "rich",
        "uvloop",
        "windlass.bench.measure",
        "windlass.cli.enqueue",
        "windlass.cli.jobs",
        "windlass.cli.run",
        "windlass.demo",
        "windlass.worker.supervisor.supervisor",
    },
}


@pytest.mark.parametrize("module", LATER)
def test_an_import_loads_only_what_is_needed_at_once(module: str) -> None:
    code = f"import sys, {module}; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    assert module in loaded
    assert loaded & LATER[module] == set()
