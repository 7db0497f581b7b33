"""Large payloads and results, with real workers: fetched, offloaded, collected, in every kind of handler."""

import json
import os
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from tests.blobs.files import MEGABYTE, blobs, folders, grow_old
from tests.e2e.stage import SHOP, Stage
from tests.support.addresses import on_every_store
from tests.support.processes import until
from windlass import App
from windlass.coordinator.duties import OLD_SECONDS
from windlass.core.ids import new_id

KINDS = ["on.the.loop", "in.a.thread", "in.a.process", "async.in.a.process"]
CARGO = "ü7" * (MEGABYTE // 3)


@pytest.fixture
def depot(stage: Stage) -> Stage:
    """A stage whose app keeps large things in a folder."""
    shutil.copy(SHOP.with_name("warehouse.py"), stage.folder / "warehouse.py")
    stage.app.close()
    stage.app = App(stage.url, deadline=30, blobs=str(stage.folder / "blobs"))
    return stage


def root(depot: Stage) -> Path:
    return depot.folder / "blobs"


@on_every_store
def test_a_megabyte_goes_there_and_back_in_every_kind_of_handler(depot: Stage) -> None:
    ids = {kind: depot.enqueue_one(kind, cargo=CARGO + kind) for kind in KINDS}
    small = depot.enqueue_one("on.the.loop", cargo="small")
    depot.worker("--until-empty", app="warehouse:app").wait()
    for kind, id_ in ids.items():
        job = depot.job(id_)
        assert job.status == "completed", job.error
        assert job.result["digest"] == sha256((CARGO + kind).encode()).hexdigest(), kind
        assert job.result["back"] == CARGO + kind
        assert job.payload == {"cargo": CARGO + kind}
    assert depot.job(small).result["back"] == "small"
    kept = [path.name.partition(".")[0] for folder in folders(root(depot)) for path in sorted(folder.iterdir())]
    assert kept == ["payload", "result"] * len(KINDS)
    depot.close_down()


def test_a_payload_that_comes_late_is_waited_for_with_the_pauses_of_any_failure(depot: Stage) -> None:
    id_ = depot.enqueue_one("in.a.thread", {"max_attempts": 1000}, cargo=CARGO)
    root(depot).rename(depot.folder / "not mounted yet")
    depot.worker(app="warehouse:app")
    until(lambda: depot.job(id_).failures >= 2, "it fails")
    error = depot.job(id_).error
    assert error is not None
    assert "is it mounted?" in error.message
    assert id_ in error.message
    (depot.folder / "not mounted yet").rename(root(depot))
    assert depot.until_status(id_, "completed").result["back"] == CARGO
    depot.close_down()


@on_every_store
def test_the_worker_of_an_app_collects_what_its_jobs_leave(depot: Stage) -> None:
    depot.app.queues.set("default", retention={"completed": 0})
    dropped = depot.enqueue_one("in.a.thread", cargo=CARGO)
    depot.worker("--until-empty", app="warehouse:app").wait()
    assert depot.all_jobs() == []
    assert [folder.name for folder in folders(root(depot))] == [dropped]
    grow_old(root(depot), OLD_SECONDS + 60)
    waiting = depot.enqueue_one("nobody.knows", cargo=CARGO)
    worker = depot.worker(app="warehouse:app")
    until(lambda: [folder.name for folder in folders(root(depot))] == [waiting], "the sweep comes")
    until(lambda: "2 blobs removed that no job refers to" in worker.output, "it is logged")
    depot.close_down()


def test_a_coordinator_of_its_own_is_given_the_folder_of_blobs(depot: Stage) -> None:
    offload = depot.app.offload()
    assert offload is not None
    offload.keep(new_id(), "payload", CARGO)
    grow_old(root(depot), OLD_SECONDS + 60)
    process = depot.processes.start("coordinator", "-m", "windlass", "coordinator", "--blobs", "./blobs")
    until(lambda: not blobs(root(depot)), "the sweep comes")
    assert not process.ended


def test_commands_show_size_and_digest_and_not_the_megabytes(depot: Stage) -> None:
    id_ = depot.enqueue_one("in.a.thread", cargo=CARGO)
    depot.worker("--until-empty", app="warehouse:app").wait()
    for words in (["jobs", "show", id_], ["jobs", "list"]):
        shown = depot.command(*words, "--json")
        assert len(shown) < 10_000
        job = json.loads(shown)
        payload = (job[0] if isinstance(job, list) else job)["payload"]
        assert payload["blob"]["size"] > MEGABYTE // 2
        assert len(depot.command(*words)) < 10_000
    (depot.folder / "windlass.toml").write_text(f'store = "{depot.url}"\nblobs = "./blobs"\n')
    depot.command("jobs", "delete", id_)
    assert blobs(root(depot)) == []


@on_every_store
def test_an_edited_reference_reads_nothing_else_and_hurts_only_its_job(depot: Stage) -> None:
    secret = depot.enqueue_one("in.a.thread", cargo="secret" * 20_000)
    id_ = depot.enqueue_one("in.a.thread", {"max_attempts": 1}, cargo=CARGO)
    depot.inside.edit(id_, "payload", depot.inside.payload(secret))
    worker = depot.worker("--until-empty", app="warehouse:app")
    assert worker.wait() == 0
    assert depot.job(secret).status == "completed"
    job = depot.job(id_)
    assert job.status == "dead"
    assert job.error is not None
    assert "is missing" in job.error.message
    assert "Traceback" not in worker.output


FULL = """
import os, resource, sys
from windlass import App, EnqueueFailed

app = App("sqlite:///jobs.db", blobs="./blobs")

@app.task(type="t")
def task(text: str) -> None: ...

task.enqueue("small")
resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, resource.RLIM_INFINITY))
try:
    task.enqueue("x" * 1_000_000)
except EnqueueFailed as error:
    print(error)
task.enqueue("x" * 100_000)
print(sum(app.stats.counts().totals.values()))
"""


def test_a_full_disk_is_reported_for_certain_and_leaves_nothing(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", FULL], cwd=tmp_path, env=os.environ, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    problem, jobs = ran.stdout.splitlines()
    assert problem.startswith("nothing was stored: job ")
    assert "its payload of 1,000,011 bytes cannot be kept" in problem
    assert problem.endswith("/blobs cannot be written: File too large")
    assert jobs == "2"
    (path,) = blobs(tmp_path / "blobs")
    assert path.stat().st_size == 100_011
    assert len(folders(tmp_path / "blobs")) == 1
