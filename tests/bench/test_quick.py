"""`python -m bench --quick` from end to end: it measures, shows and writes. The figures mean nothing."""

import json
import shutil
import signal
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
from bench.report.results import read
from bench.usage import runners, tree

from tests.bench.command import COMMAND, environment, run_bench
from tests.support.processes import alive, until


def test_a_quick_run_measures_shows_and_writes(tmp_path: Path) -> None:
    ran = run_bench(tmp_path, "--quick", "drain", "enqueue", "latency")
    assert ran.returncode == 0, ran.stderr
    assert "one runner, async" in ran.stdout
    assert "Huey: not run: no --peers given" in " ".join(ran.stdout.split()), ran.stdout
    assert "the numbers mean nothing" in ran.stdout
    out = tmp_path / "bench" / "out"
    results = read(out).results
    assert [each.section.name for each in results] == ["drain", "enqueue", "latency"]
    figures = [row for each in results for row in each.section.rows if row.name != "processor while idle"]
    assert all(value > 0 for row in figures for value in row.rounds)
    charts = sorted(path.name for path in out.glob("*.svg"))
    assert charts == [f"sqlite-{name}.svg" for name in ("drain-1", "enqueue-1", "enqueue-2", "latency-1")]
    for chart in charts:
        ElementTree.parse(out / chart)
        assert f"({chart})" in (out / "README.md").read_text()
    # Nothing else stays: no store, no scratch folder.
    assert sorted(path.name for path in out.iterdir()) == sorted(["README.md", "results.json", *charts])


def test_the_other_measurements_run_too_and_a_program_gets_json_alone(tmp_path: Path) -> None:
    ran = run_bench(tmp_path, "--quick", "flow", "growth", "memory", "profile", "--out", "here", "--json")
    assert ran.returncode == 0, ran.stderr
    results = json.loads(ran.stdout)["results"]
    assert [each["section"]["name"] for each in results] == ["flow", "growth", "memory", "profile"]
    commits = next(row for row in results[3]["section"]["rows"] if row["name"] == "commits")
    assert 0 < commits["rounds"][0] < 1000, "a batch shares a commit"
    assert read(tmp_path / "here").results[0].machine.cores > 0


def test_the_rest_server_is_compared_with_the_client(tmp_path: Path) -> None:
    ran = run_bench(tmp_path, "--quick", "rest", "--json")
    assert ran.returncode == 0, ran.stderr
    (rest,) = (each["section"] for each in json.loads(ran.stdout)["results"])
    rows = {row["name"]: row for row in rest["rows"]}
    assert rows["POST /jobs, one connection"]["base"]["name"] == "the client, one by one"
    assert rows["errors"]["rounds"] == [0]
    assert all(row["rounds"][0] > 0 for name, row in rows.items() if name != "errors")


@pytest.mark.skipif(shutil.which("node") is None, reason="no Node here")
def test_a_worker_in_node_is_compared_with_a_native_runner(tmp_path: Path) -> None:
    ran = run_bench(tmp_path, "--quick", "rest-workers", "--json")
    assert ran.returncode == 0, ran.stderr
    (section,) = (each["section"] for each in json.loads(ran.stdout)["results"])
    rows = {row["name"]: row for row in section["rows"]}
    assert rows["a worker in Node, batches of 100"]["base"]["name"] == "a native runner"
    assert {"processor of the server", "20 waiting claims", "store calls meanwhile"} < set(rows)


def test_chains_and_delays_are_compared_with_jobs_that_wait_for_nothing(tmp_path: Path) -> None:
    ran = run_bench(tmp_path, "--quick", "chains", "delays", "graphs", "--json")
    assert ran.returncode == 0, ran.stderr
    sections = [each["section"] for each in json.loads(ran.stdout)["results"]]
    rows = [row for section in sections for row in section["rows"]]
    compared = {row["name"]: row["base"]["name"] for row in rows if row["base"]}
    assert compared == {
        "chains of 10": "independent jobs",
        "chains of 10, results taken": "independent jobs",
        "one graph": "independent jobs",
        "enqueued for tomorrow": "enqueued, due at once",
        "drain, just due": "drain, pending",
        "claim, 500 wait for later": "claim, no job waits for later",
    }
    assert all(row["rounds"][0] > 0 for row in rows)


def test_groups_are_compared_with_independent_jobs_and_their_memory_is_measured(tmp_path: Path) -> None:
    ran = run_bench(tmp_path, "--quick", "groups", "--json")
    assert ran.returncode == 0, ran.stderr
    (groups,) = (each["section"] for each in json.loads(ran.stdout)["results"])
    rows = {row["name"]: row for row in groups["rows"]}
    bases = [row["base"]["name"] for row in groups["rows"] if row["name"] == "members of one group"]
    assert bases == ["independent jobs", "DBOS"]
    assert any(note.startswith("DBOS: a workflow") for note in groups["notes"])
    assert rows["last end → `then` starts, median"]["rounds"][0] > 0
    assert [row["unit"] for row in rows.values()] == ["jobs/s", "jobs/s", "ms", "ms", "MiB", "MiB"]


def test_a_run_that_is_ended_early_leaves_no_worker_and_no_store_behind(tmp_path: Path) -> None:
    command = [*COMMAND, "--quick", "memory", "--rounds", "50"]
    with subprocess.Popen(command, cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True) as bench:
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
    ran = run_bench(tmp_path, *words)
    assert ran.returncode == 2
    assert problem in ran.stderr
    assert "Traceback" not in ran.stderr
