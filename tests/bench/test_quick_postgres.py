"""`python -m bench --quick` on a PostgreSQL of its own: it measures, and leaves nothing. No speed is judged."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.report.results import read

from tests.bench.command import run_bench
from tests.support.parts import extended


@pytest.fixture
def folder() -> Iterator[Path]:
    # Not pytest's own: as root the server runs as nobody, which may not enter it.
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.parametrize(
    "wanted",
    [
        ("drain",),
        *extended(
            [
                ("enqueue", "latency"),
                ("delays",),
                ("round-trips",),
                ("many-buckets",),
                ("flow", "growth", "held", "history", "pooler", "profile"),
            ]
        ),
    ],
)
def test_a_quick_run_measures_on_its_own_server_and_leaves_nothing(folder: Path, wanted: tuple[str, ...]) -> None:
    ran = run_bench(folder, "--quick", "--store", "postgres", *wanted, "--out", ".")
    assert ran.returncode == 0, ran.stderr
    results = read(folder).results
    assert tuple(each.section.name for each in results) == wanted
    assert {each.machine.store["store"] for each in results} == {"PostgreSQL"}
    assert [path.name for path in folder.iterdir() if path.is_dir()] == []
