"""`python -m bench --quick` on a Redis of its own: it measures, and leaves nothing. No speed is judged."""

from pathlib import Path

import pytest
from bench.report.results import read

from tests.bench.command import run_bench
from tests.support.parts import extended


@pytest.mark.parametrize(
    "wanted",
    [("capacity",), *extended([("drain",), ("cluster",), ("delays",), ("growth", "held", "pooler"), ("schedules",)])],
    ids=" ".join,
)
def test_a_quick_run_measures_on_its_own_server_and_leaves_nothing(tmp_path: Path, wanted: tuple[str, ...]) -> None:
    ran = run_bench(tmp_path, "--quick", "--store", "redis", *wanted, "--out", ".")

    assert ran.returncode == 0, ran.stderr
    results = read(tmp_path).results
    assert tuple(each.section.name for each in results) == wanted
    assert {each.machine.store["store"] for each in results} == {"Redis"}
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []
