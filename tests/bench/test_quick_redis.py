"""`python -m bench --quick` on a Redis of its own: it measures, and leaves nothing. No speed is judged."""

from pathlib import Path

from bench.report.results import read

from tests.bench.command import run_bench

WANTED = ("drain", "delays", "growth", "held", "pooler", "space")


def test_a_quick_run_measures_on_its_own_server_and_leaves_nothing(tmp_path: Path) -> None:
    ran = run_bench(tmp_path, "--quick", "--store", "redis", *WANTED, "--out", ".")

    assert ran.returncode == 0, ran.stderr
    results = read(tmp_path).results
    assert tuple(each.section.name for each in results) == WANTED
    assert {each.machine.store["store"] for each in results} == {"Redis"}
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []
