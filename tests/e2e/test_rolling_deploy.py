"""A rolling deploy: old and new workers and producers at work together on one store, and back again.

The new version of Windlass is a copy of this one with an additive step, or a breaking one; the new version of the app
has a new task and new parameters.
"""

import json
import os
import shutil
import signal

import pytest

from tests.e2e.stage import SHOP, Stage
from tests.support.addresses import ADDRESSES, on_every_store
from tests.support.parts import in_part
from tests.support.processes import Process, until
from tests.support.releases import STEP, make_release

SOME = 10
"""Jobs of a kind that show that it goes on."""


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment in which Python finds the next version of Windlass, whose step is additive."""
    return {"PYTHONPATH": str(make_release(tmp_path_factory.mktemp("next")))}


@pytest.fixture(scope="module")
def breaking_release(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The same of a version whose step is breaking."""
    return {"PYTHONPATH": str(make_release(tmp_path_factory.mktemp("breaking"), breaking=True))}


@pytest.fixture
def shop(stage: Stage) -> Stage:
    """A stage with both versions of the app."""
    for name in ("before.py", "after.py", "produce.py"):
        shutil.copy(SHOP.with_name(name), stage.folder / name)
    return stage


def until_traced(stage: Stage, *lines: str) -> None:
    """Until handlers have left some more lines that begin so: `end refund`, say."""
    effects = stage.folder / "effects"

    def count() -> dict[str, int]:
        text = effects.read_text() if effects.exists() else ""
        return {line: text.count(f"\n{line} ") for line in lines}

    before = count()
    until(lambda: all(now >= before[line] + SOME for line, now in count().items()), f"more of {', '.join(lines)}")


def complaints(stage: Stage, environment: dict[str, str] | None = None) -> list[str]:
    """The problems that a version's doctor finds."""
    output = stage.command("doctor", "--json", "--store", stage.url, environment=environment)
    return [each["says"] for each in json.loads(output)["findings"] if each["level"] == "problem"]


def stop(worker: Process) -> None:
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0


def acknowledged(stage: Stage) -> list[str]:
    """The ids that producers have noted."""
    return [id_ for path in stage.folder.glob("enqueued-*") for id_ in path.read_text().split()]


@on_every_store
def test_old_and_new_work_together_and_every_job_runs_once(shop: Stage, release: dict[str, str]) -> None:
    first = shop.start_worker(app="before:app")
    shop.processes.start("producer", "produce.py", "before")
    until_traced(shop, "end greet", "end bill")

    assert f"applied {STEP}" in shop.command("migrate", "--store", shop.url, environment=release)
    second = shop.start_worker(app="before:app")  # starts on a schema that is newer than it
    shop.start_worker(app="after:app", environment=release)
    shop.processes.start("producer", "produce.py", "after", environment=release)
    until_traced(shop, "end greet", "end bill", "end bill.2", "end refund")
    shop.until_ready(second)
    assert complaints(shop) == []

    for old in (first, second):
        stop(old)
        until_traced(shop, "end greet", "end bill", "end refund")
    shop.open("no-more-before")
    shop.open("no-old-worker")
    until_traced(shop, "here greet")  # the parameter is used
    shop.open("no-more-after")
    until(lambda: all(each.ended for each in shop.processes.started if each.name == "producer"), "producers end")
    shop.until_finished()

    shop.ids = acknowledged(shop)
    shop.check()
    jobs = shop.all_jobs()
    assert all(job.failures == job.crashes == job.rescues == 0 for job in jobs)
    assert all(job.attempt - job.requeues == 1 for job in jobs)
    assert {job.result.split()[0] for job in jobs if job.type == "greet"} == {"hello", "en", "fr"}, (
        "both versions ran"
    )
    assert complaints(shop, release) == []
    shop.close_down()


@on_every_store
def test_after_a_rollback_jobs_of_the_new_task_wait_for_the_new_version(shop: Stage) -> None:
    old = shop.worker(app="before:app")
    waiting = shop.enqueue_one("refund", order=2)
    greeting = shop.enqueue_one("greet", user=1)
    misfit = shop.enqueue_one("greet", user=1, lang="fr")
    shop.until_status(waiting, "blocked")
    assert [reason.code for reason in shop.app.jobs.why(waiting).reasons] == ["parked"]
    assert shop.until_status(greeting, "completed").result == "hello 1"
    dead = shop.until_status(misfit, "dead")
    assert dead.error is not None
    assert dead.error.message == "lang: is not a parameter of greet, which takes user"

    stop(old)
    shop.worker(app="after:app")
    shop.app.jobs.retry(misfit)
    shop.until_finished()
    assert [shop.job(id_).result for id_ in (waiting, misfit)] == ["refunded 2", "fr 1"]
    assert (shop.job(waiting).attempt, shop.job(waiting).failures) == (1, 0)
    shop.check()
    shop.close_down()


@pytest.mark.parametrize("address", in_part(sorted(ADDRESSES), ["sqlite"]), indirect=True)
def test_an_old_worker_leaves_jobs_to_a_live_one_that_knows_their_arguments(shop: Stage) -> None:
    shop.worker(app="before:app")
    new = shop.worker(app="after:app").runner()
    os.kill(new, signal.SIGSTOP)  # so that the old one gets them
    try:
        ids = shop.enqueue("greet", 3, user=1, lang="fr")
        until(lambda: all(shop.job(id_).requeues for id_ in ids), "the old worker puts them back")
    finally:
        os.kill(new, signal.SIGCONT)
    shop.until_finished()
    jobs = [shop.job(id_) for id_ in ids]
    assert {(job.status, job.result, job.failures, job.crashes) for job in jobs} == {("completed", "fr 1", 0, 0)}
    shop.check()
    shop.close_down()


@on_every_store
def test_a_breaking_step_stops_old_workers_and_loses_nothing(shop: Stage, breaking_release: dict[str, str]) -> None:
    old = shop.worker("--drain", "20s")
    held = shop.enqueue_one("ablock", gate="gate")
    shop.until_started([held])
    shop.command("migrate", "--store", shop.url, environment=breaking_release)
    until(lambda: "stopping:" in old.output, "the old worker stops")
    assert not old.ended, "its handler may come to its end"
    shop.open("gate")
    assert old.wait() == 1
    last = old.output.splitlines()[-1]
    assert last.startswith("error: ")
    assert "upgrade" in last

    # On a store that no longer took the outcome, the job runs again when the old lease is over.
    assert shop.start_worker("--until-empty", environment=breaking_release).wait() == 0
    shown = shop.command("jobs", "show", held, "--store", shop.url, environment=breaking_release)
    assert shown.startswith("ablock completed")
    shop.history.check()
