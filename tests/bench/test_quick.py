"""`windlass bench --quick` from end to end: it measures, shows and writes. The figures mean nothing."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.support.processes import alive, until
from windlass.bench.process import runners, tree
from windlass.bench.report import read


def _bench(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "windlass", "bench", *words]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WINDLASS_")}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_a_quick_run_measures_shows_and_writes(tmp_path: Path) -> None:
    ran = _bench(tmp_path, "--quick", "drain", "enqueue", "latency")
    assert ran.returncode == 0, ran.stderr
    assert "one runner, async" in ran.stdout
    assert "Huey: not run: no --peers given" in " ".join(ran.stdout.split()), ran.stdout
    assert "the numbers mean nothing" in ran.stdout
    out = tmp_path / "bench" / "out"
    taken = read(out).taken
    assert [each.section.name for each in taken] == ["drain", "enqueue", "latency"]
    figures = [row for each in taken for row in each.section.rows if row.name != "processor while idle"]
    assert all(value > 0 for row in figures for value in row.rounds)
    charts = sorted(path.name for path in out.glob("*.svg"))
    assert charts == [f"sqlite-{name}.svg" for name in ("drain-1", "enqueue-1", "enqueue-2", "latency-1")]
    for chart in charts:
        ElementTree.parse(out / chart)
        assert f"({chart})" in (out / "README.md").read_text()
    # Nothing else stays: no store, no scratch folder.
    assert sorted(path.name for path in out.iterdir()) == sorted(["README.md", "results.json", *charts])


def test_the_other_measurements_run_too_and_a_program_gets_json_alone(tmp_path: Path) -> None:
    ran = _bench(tmp_path, "--quick", "flow", "growth", "memory", "profile", "--out", "here", "--json")
    assert ran.returncode == 0, ran.stderr
    taken = json.loads(ran.stdout)["taken"]
    assert [each["section"]["name"] for each in taken] == ["flow", "growth", "memory", "profile"]
    commits = next(row for row in taken[3]["section"]["rows"] if row["name"] == "commits")
    assert 0 < commits["rounds"][0] < 1000, "a batch shares a commit"
    assert read(tmp_path / "here").taken[0].machine.cores > 0


def test_chains_and_delays_are_compared_with_jobs_that_wait_for_nothing(tmp_path: Path) -> None:
    ran = _bench(tmp_path, "--quick", "chains", "delays", "--json")
    assert ran.returncode == 0, ran.stderr
    chains, delays = (each["section"] for each in json.loads(ran.stdout)["taken"])
    compared = {row["name"]: row["base"]["name"] for row in chains["rows"] + delays["rows"] if row["base"]}
    assert compared == {
        "chains of 10": "independent jobs",
        "chains of 10, results taken": "independent jobs",
        "handed in for tomorrow": "handed in, due at once",
        "drain, just due": "drain, pending",
        "claim, 2,000 wait for later": "claim, nobody waits for later",
    }
    assert all(row["rounds"][0] > 0 for row in chains["rows"] + delays["rows"])


def test_whoever_ends_it_early_leaves_no_worker_and_no_store_behind(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "windlass", "bench", "--quick", "memory", "--rounds", "50"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as bench:
        assert bench.stderr is not None
        until(lambda: runners(bench.pid), "a worker is being measured")
        members = tree(bench.pid)
        bench.send_signal(signal.SIGTERM)
        assert bench.wait(60) == 128 + signal.SIGTERM
    until(lambda: not any(map(alive, members)), "all of them are gone")
    assert list((tmp_path / "bench" / "out").iterdir()) == []


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--quick", "--publish"), "--quick figures mean nothing"),
        (("speed",), "'speed' is not one of"),
        (("--rounds", "0"), "--rounds"),
        (("--quick", "--store", "sqlite:///fixed.db"), "write {run}"),
    ],
)
def test_a_call_that_makes_no_sense_is_refused(tmp_path: Path, words: tuple[str, ...], problem: str) -> None:
    ran = _bench(tmp_path, *words)
    assert ran.returncode == 2
    assert problem in ran.stderr
    assert "Traceback" not in ran.stderr
