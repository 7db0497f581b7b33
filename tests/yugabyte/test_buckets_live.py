"""The number of buckets is raised by its command while real workers run and jobs are enqueued, in both orders."""

from pathlib import Path

import pytest

from tests.support.ended import until_ended
from tests.support.processes import PATIENCE, Processes, let_pass, until
from tests.support.servers.address import Address
from tests.support.servers.places import postgres_place
from tests.support.stores import yugabyte_url
from windlass import App
from windlass.core.status import Status

TASKS = """
import os
from windlass import App

app = App(os.environ["WINDLASS_STORE"])


@app.task
async def count(number: int) -> int:
    return number
"""
PART = 40


@pytest.mark.parametrize("order", ["strict", pytest.param("loose", marks=pytest.mark.extended)])
def test_buckets_are_raised_under_running_workers_and_every_job_runs_once(tmp_path: Path, order: str) -> None:
    url = f"{yugabyte_url(tmp_path)}&order={order}"
    (tmp_path / "tasks.py").write_text(TASKS)
    processes = Processes(tmp_path, {"WINDLASS_STORE": url})
    app = App(url, deadline=PATIENCE)
    count = app.task(type="count")(_count)
    ids: list[str] = []

    def enqueue() -> None:
        ids.extend(handle.id for handle in app.enqueue_many(count.job(number) for number in range(PART)))

    try:
        processes.start("worker", "-m", "windlass", "worker", "tasks:app", "--processes", "2")
        enqueue()
        until(lambda: app.stats.counts().totals[Status.COMPLETED], "a worker works")
        raising = processes.start("migrate", "-m", "windlass", "migrate", "--buckets", "16")
        while not raising.ended:
            enqueue()
            let_pass(0.1)
        assert raising.wait() == 0, raising.output
        assert "16 buckets, 4 before" in raising.output
        enqueue()
        until_ended(app, PATIENCE)
    finally:
        processes.end()
        app.close()
    done = Address(postgres_place(tmp_path)).execute("SELECT id::text, attempt, bucket FROM windlass.history")
    assert sorted(id_ for id_, _, _ in done) == sorted(ids)
    assert {attempt for _, attempt, _ in done} == {1}
    assert max(bucket for _, _, bucket in done) > 3


async def _count(number: int) -> int:
    return number
