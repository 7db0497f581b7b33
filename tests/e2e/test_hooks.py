"""Hooks, middleware, aliases, task sets and the context, in every place where handlers run."""

import shutil
import signal

import pytest

from tests.e2e.stage import SHOP, Stage
from tests.support.addresses import on_every_store
from tests.support.processes import Process, until
from windlass import Job

PLACES = ("async", "thread", "process", "aprocess")


class Hooked(Stage):
    """A stage for the app with hooks."""

    def reported(self, *words: str) -> list[str]:
        """What hooks said that begins with these words, without who said it."""
        said = [line.partition(" ")[2] for line in self.lines()]
        return [line for line in said if line.startswith(" ".join(words))]

    def lines(self) -> list[str]:
        path = self.folder / "hooks"
        return path.read_text().splitlines() if path.exists() else []

    def by_process(self) -> dict[str, list[str]]:
        """What the hooks of each process said about its beginning and its end."""
        found: dict[str, list[str]] = {}
        for line in self.lines():
            pid, _, said = line.partition(" ")
            if said.startswith(("start", "stop")):
                found.setdefault(pid, []).append(said)
        return found

    def work(self, *options: str) -> Process:
        return self.worker(*options, app="hooked:app")


@pytest.fixture
def hooked(stage: Stage) -> Hooked:
    stage.__class__ = Hooked
    for name in ("hooked.py", "errands.py"):
        shutil.copy(SHOP.with_name(name), stage.folder / name)
    assert isinstance(stage, Hooked)
    return stage


def result(job: Job) -> dict[str, object]:
    """What the handler returned; the middleware put it into another."""
    assert job.status == "completed", (job.reason, job.error)
    found = job.result["round"]
    assert isinstance(found, dict)
    return found


def test_every_process_begins_and_ends_with_the_hooks(hooked: Hooked) -> None:
    ids = [hooked.enqueue_one(place) for place in PLACES]
    worker = hooked.work("--concurrency", "4")
    hooked.until_finished()
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0
    found = [result(hooked.job(id_)) for id_ in ids]
    assert [each["pool"] for each in found] == [f"pool of {each['pid']}" for each in found]
    assert [each["client"] for each in found] == [f"client beside {each['pool']}" for each in found]
    lives = hooked.by_process()
    assert {str(each["pid"]) for each in found} <= lives.keys()
    assert found[0]["pid"] == found[1]["pid"] not in (found[2]["pid"], found[3]["pid"])
    for pid, said in lives.items():
        client = f"stop client client beside pool of {pid}"
        assert said == ["start pool", "start client", client, "stop pool"]
    assert worker.output.count("it would not close") == len(lives)
    assert "on_stop hook close_client" in worker.output


@on_every_store
def test_the_job_is_known_everywhere_and_children_know_their_parent(hooked: Hooked) -> None:
    ids = [hooked.enqueue_one(place) for place in PLACES]
    hooked.work()
    hooked.until_finished()
    for id_, place in zip(ids, PLACES, strict=True):
        job = hooked.job(id_)
        found = result(job)
        assert (found["id"], found["type"]) == (id_, place)
        child = hooked.job(str(found["child"]))
        assert (child.parent, child.type, child.status) == (id_, "end", "completed")
        assert hooked.reported("saw", id_) == [f"saw {id_}"]
        assert f"INFO [{id_}] looking {place}" in (hooked.folder / "app.log").read_text()
        assert [line.text for line in job.logs] == [f"INFO hooked: looking {place}"]
    hooked.close_down()


def test_jobs_stored_under_an_old_type_are_run(hooked: Hooked) -> None:
    ids = [hooked.enqueue_one(f"old.{place}") for place in PLACES]
    hooked.work()
    hooked.until_finished()
    assert [result(hooked.job(id_))["type"] for id_ in ids] == [f"old.{place}" for place in PLACES]
    assert "old.async" in hooked.app.workers.list()[0].types
    hooked.close_down()


def test_a_task_set_works_as_part_of_the_app(hooked: Hooked) -> None:
    id_ = hooked.enqueue_one("errand.send_for", what="milk")
    hooked.work()
    hooked.until_finished()
    assert hooked.job(hooked.job(id_).result).result == "milk fetched"
    hooked.close_down()


def test_a_start_hook_that_fails_is_a_readable_refusal(hooked: Hooked) -> None:
    hooked.open("no-pool")
    worker = hooked.start_worker(app="hooked:app")
    assert worker.wait() == 2
    assert "the on_start hook open_pool" in worker.output
    assert "ConnectionError: the pool is out of reach" in worker.output
    assert "lifespan.py" not in worker.output
    assert hooked.reported("start") == []


def test_a_process_whose_start_hook_fails_is_a_failure_that_says_why(hooked: Hooked) -> None:
    hooked.work()
    hooked.open("no-pool")
    job = hooked.until_status(hooked.enqueue_one("process", {"max_attempts": 1}), "dead")
    assert job.error is not None
    assert "the pool is out of reach" in job.error.message
    hooked.close_down()


def test_a_stop_hook_that_hangs_blocks_nothing(hooked: Hooked) -> None:
    hooked.open("hang")
    worker = hooked.work("--drain", "1s")
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0
    assert "took too long" in worker.output
    assert [said[:11] for said in hooked.reported("stop")] == ["stop client", "stop pool"]


@on_every_store
def test_dead_jobs_are_passed_once_and_what_the_hook_does_changes_nothing(hooked: Hooked) -> None:
    ids = {place: hooked.enqueue_one(f"dead.{place}") for place in ("async", "thread", "process")}
    worker = hooked.work()
    hooked.until_counts("dead", 3)
    until(lambda: len(hooked.reported("dead")) == 3, "the hook is called")
    pool = f"pool of {worker.runner()}"
    assert sorted(hooked.reported("dead")) == [
        f"dead dead.async on the loop {pool}",
        f"dead dead.process in a process {pool}",
        f"dead dead.thread in a thread {pool}",
    ]
    hooked.close_down()
    assert {hooked.job(id_).attempt for id_ in ids.values()} == {1}
    assert len(hooked.reported("dead")) == len(hooked.reported("saw dead")) == 3
    assert worker.output.count("nobody to alert") == 3


@on_every_store
def test_a_cancelled_job_wakes_up_and_is_cancelled(hooked: Hooked) -> None:
    ids = [hooked.enqueue_one(f"sleep.{place}") for place in PLACES]
    worker = hooked.work()
    until(lambda: len(hooked.reported("asleep")) == len(PLACES), "all sleep")
    runner = worker.runner()
    for id_ in ids:
        hooked.app.jobs.cancel(id_)
    for id_ in ids:
        assert hooked.until_status(id_, "cancelled").attempt == 1
    assert worker.runner() == runner, "no runner had to be ended for that"
    hooked.close_down()
