"""A worker on two queues of a cluster, one on a server that is away: the jobs of the other run, delayed ones too."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.redis.test_shard_away import SHORT, Losing, cluster, lose
from tests.support.processes import Processes, until
from tests.support.seed import enqueue_one, status_of
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.open import open_store

__all__ = ["cluster", "lose"]  # fixtures

APP = """
from windlass import App

app = App()


@app.task(type="t")
async def handle() -> None:
    pass
"""


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    (tmp_path / "shop.py").write_text(APP)
    started = Processes(tmp_path)
    yield started
    started.end()


@pytest.mark.parametrize("lose", ["frozen"], indirect=True)
async def test_jobs_of_the_other_queue_run(processes: Processes, lose: Losing) -> None:
    near, far = lose.queues("worker")
    url = f"{lose.cluster.url}?prefix=worker"
    store = open_store(url, deadline=5)
    first = [await enqueue_one(store, queue=queue) for queue in (far, near)]
    arguments = ("-m", "windlass", "worker", "shop:app", "--lease", "4s", "--queues", f"{far},{near}")
    worker = processes.start("worker", *arguments, environment={"WINDLASS_STORE": url})
    for id_ in first:
        await _until_completed(store, id_)
    lose(far)
    later = [await enqueue_one(store, queue=near, fresh="here", delay=delay) for delay in (0, SHORT, 8 * SHORT)]
    for id_ in later:
        await _until_completed(store, id_)
    assert len(worker.runners()) == 1
    # Said once for each thing that cannot be done, not with every try.
    assert worker.output.count("does not answer") < 20
    lose.bring_back()
    await _until_completed(store, await enqueue_one(store, queue=far))
    await store.close()
    assert until(worker.runners, "its runner lives")


async def _until_completed(store: Store, id_: str) -> None:
    async with asyncio.timeout(60):
        while await status_of(store, id_) is not Status.COMPLETED:  # noqa: ASYNC110 - another process does it
            await asyncio.sleep(0.05)
