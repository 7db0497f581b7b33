"""windlass bench: it measures on a store that is in use, and leaves it as it was."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.parts import in_part
from tests.support.processes import alive, children, until
from tests.support.servers.redis_places import redis_place
from tests.support.stores import postgres_url
from windlass.bench.measurement import QUEUE
from windlass.bench.tasks import noop
from windlass.client.app import App

QUICK = ("--jobs", "100", "--rounds", "1")
ADDRESSES = {
    "sqlite": lambda folder: f"sqlite:///{folder}/jobs.db",
    "postgres": postgres_url,
    "redis": redis_place,
}


@pytest.fixture(params=in_part(ADDRESSES, ["sqlite"]))
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """One of each kind, with a job of another program in it."""
    address: str = ADDRESSES[request.param](tmp_path)
    app = App(address)
    app.enqueue_many([noop.job(1, "not the bench's")])
    app.close()
    return address


def _command(*words: str) -> list[str]:
    return [sys.executable, "-m", "windlass", "bench", *words]


def _environment(address: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WINDLASS_")}
    return {**kept, "WINDLASS_STORE": address}


def _run(address: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        _command(*words), env=_environment(address), capture_output=True, text=True, timeout=120, check=False
    )


def _jobs(address: str) -> list[tuple[str, str, str]]:
    app = App(address)
    try:
        return [(job.queue, job.status, job.payload["s"]) for job in app.jobs.list(limit=1000).items]
    finally:
        app.close()


OTHERS = [("default", "pending", "not the bench's")]


def test_all_is_measured_and_the_store_is_left_as_it_was(store: str) -> None:
    ran = _run(store, *QUICK, "--json")
    assert ran.returncode == 0, ran.stderr
    reported = json.loads(ran.stdout)
    names = ["enqueue, one by one", "enqueue, in bulk", "drain", "latency, median", "latency, p99"]
    assert [figure["name"] for figure in reported["figures"]] == names
    assert all(figure["rounds"] == [figure["median"]] and figure["median"] > 0 for figure in reported["figures"])
    assert _jobs(store) == OTHERS


def test_people_get_a_table_and_progress_beside_it(tmp_path: Path) -> None:
    ran = _run(f"sqlite:///{tmp_path}/new.db", "enqueue", "--jobs", "100", "--rounds", "2")
    assert ran.returncode == 0, ran.stderr
    head, *rows = ran.stdout.splitlines()
    assert head.split() == ["measured", "median", "lowest", "highest"]
    assert [(row[:20].strip(), row.count("jobs/s")) for row in rows] == [
        ("enqueue, one by one", 3),
        ("enqueue, in bulk", 3),
    ]
    assert "enqueue: round 2 of 2" in ran.stderr


def test_what_a_killed_bench_has_left_is_deleted(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/jobs.db"
    app = App(address)
    app.enqueue_many([noop.using(queue=QUEUE).job(1, "left") for _ in range(3)])
    app.close()
    ran = _run(address, "enqueue", *QUICK)
    assert ran.returncode == 0, ran.stderr
    assert _jobs(address) == []


def test_a_bench_that_is_ended_early_leaves_no_worker_and_no_job(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/jobs.db"
    command = _command("latency", "--jobs", "100000")
    with subprocess.Popen(command, env=_environment(address), stderr=subprocess.PIPE, text=True) as bench:
        until(lambda: children(bench.pid), "its worker runs")
        workers = children(bench.pid)
        bench.send_signal(signal.SIGTERM)
        assert bench.wait(60) == 128 + signal.SIGTERM
    until(lambda: not any(map(alive, workers)), "its worker is gone")
    assert _jobs(address) == []


@pytest.mark.parametrize(
    ("words", "problem"), [(("speed",), "'speed' is not one of"), (("--jobs", "1"), "--jobs"), ((), "no store")]
)
def test_a_wrong_call_is_refused(tmp_path: Path, words: tuple[str, ...], problem: str) -> None:
    environment = _environment("")
    del environment["WINDLASS_STORE"]
    ran = subprocess.run(
        _command(*words), cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 2
    assert problem in ran.stderr
    assert "Traceback" not in ran.stderr
