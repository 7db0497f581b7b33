"""A chain over two queues, and who hands it on is killed between two steps: the coordinator does the rest, once."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.redis.deaths import be_left_alone, nothing_left
from tests.support.chains import enqueue_jobs, follow_on, given, take_one
from tests.support.clock import ManualClock
from tests.support.seed import completed, new_job, settle, status_of
from tests.support.servers.redis_places import redis_cluster_place, redis_place
from windlass.core.ids import new_id
from windlass.core.moments import to_datetime
from windlass.core.status import Status
from windlass.store.open import open_store
from windlass.store.redis.store import RedisStore

ACTOR = """
import asyncio, sys
from datetime import datetime
from windlass.core.jobs.job import NewJob
from windlass.core.jobs.outcome import Settlement
from windlass.core.status import Status
from windlass.store.clock import ManualClock
from windlass.store.open import open_store

url, now, deed, first, second = sys.argv[1:]
store = open_store(url, clock=ManualClock(datetime.fromisoformat(now)))
if deed == "settle":
    done = Settlement(id=first, queue="default", attempt=1, status=Status.COMPLETED, outcome="completed", result="1")
    asyncio.run(store.jobs.settle([done]))
else:
    parent = NewJob(id=first, type="t", payload="{}")
    given = (("given", first),)
    child = NewJob(id=second, type="t", payload="{}", queue="other", parents=(first,), result_params=given)
    asyncio.run(store.jobs.enqueue([parent, child]))
"""


class Ground:
    """A store, and processes that do something in it and are killed over it."""

    def __init__(self, url: str, clock: ManualClock) -> None:
        store = open_store(url, clock=clock)
        assert isinstance(store, RedisStore)
        self.store, self._url, self._clock = store, url, clock

    def be_killed(self, point: str, *words: str) -> None:
        killed = subprocess.run(
            [sys.executable, "-c", ACTOR, self._url, to_datetime(self._clock.wall()).isoformat(), *words],
            env={**os.environ, "WINDLASS_FAILPOINTS": f"{point}=kill"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert killed.returncode == -signal.SIGKILL, killed.stderr


@pytest.fixture(params=[redis_place, redis_cluster_place], ids=["server", "cluster"])
async def ground(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> AsyncIterator[Ground]:
    place: Callable[[Path], str] = request.param
    made = Ground(place(tmp_path), clock)
    yield made
    await made.store.close()


@pytest.mark.parametrize("point", ["settle.after_commit", "deliver.before_commit", "deliver.after_commit"])
async def test_a_child_is_released_once_though_the_process_that_settled_its_parent_is_killed(
    ground: Ground, clock: ManualClock, point: str
) -> None:
    store = ground.store
    first, second = await enqueue_jobs(store, follow_on([new_job(), new_job(queue="other")]))
    await take_one(store)
    ground.be_killed(point, "settle", first, second)
    assert await status_of(store, first) is Status.COMPLETED
    await be_left_alone(store, clock)
    assert given(await take_one(store, runner="r2", queues=("other",))) == "1"
    await be_left_alone(store, clock)
    assert await status_of(store, second) is Status.RUNNING, "it goes on once"
    assert await nothing_left(store)


@pytest.mark.parametrize("point", ["enqueue.after_commit", "register.before_commit", "register.after_commit"])
async def test_a_child_finds_its_parent_though_their_producer_is_killed(
    ground: Ground, clock: ManualClock, point: str
) -> None:
    store = ground.store
    first, second = new_id(), new_id()
    ground.be_killed(point, "enqueue", first, second)
    await be_left_alone(store, clock)
    await settle(store, completed(await take_one(store)))
    assert given(await take_one(store, runner="r2", queues=("other",))) == "1"
    assert await nothing_left(store)
