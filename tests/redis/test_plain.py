"""Plain jobs are taken in by a script of their own: it leaves what the one for all jobs would have left."""

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
import redis

from tests.support.clock import ManualClock
from tests.support.parts import extended
from tests.support.seed import new_job, open_lease, request
from tests.support.stores import STORES
from windlass.core.flow.queue import QueueSettings
from windlass.core.jobs.job import NewJob
from windlass.core.moments import SECOND
from windlass.errors import QueueClosed
from windlass.store.contract import Store
from windlass.store.redis.connection.access import Access
from windlass.store.redis.records.keys import QUEUE_KEYS
from windlass.store.redis.store import RedisStore
from windlass.store.redis.verbs.batch import to_batch
from windlass.store.redis.verbs.enqueue import OTHER, enqueue

STEPS = 150
MARK = b"store"
"""In the settings of a queue: by which the two stores differ, and by nothing else."""

UNUSUAL: list[dict[str, Any]] = [
    {"delay": SECOND},
    {"expires": SECOND},
    {"idempotency_key": "k"},
    {"concurrency_key": "c"},
]


@pytest.fixture
async def pair(tmp_path: Path, clock: ManualClock) -> AsyncIterator[list[RedisStore]]:
    """Two stores that are told the same."""
    opened = [STORES["redis"].open(tmp_path / name, clock) for name in ("one", "other")]
    yield [each for each in opened if isinstance(each, RedisStore)]
    for store in opened:
        await store.close()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often plain jobs were taken as such, and how often not."""
    counted: Counter[str] = Counter()

    async def count(access: Access, name: str, queue: str, request: Any, *blobs: bytes) -> Any:
        reply = await call(access, name, queue, request, *blobs)
        if name == "enqueue_plain":
            counted["refused" if reply == OTHER else "taken"] += 1
        return reply

    call = Access.call
    monkeypatch.setattr(Access, "call", count)
    return counted


def kept(store: RedisStore) -> dict[str, Any]:
    """All that is in the queue."""
    server = store._access.server
    found: dict[str, Any] = {}
    with redis.Redis.from_url(server.address.dsn) as client:
        for name, key in zip(QUEUE_KEYS, server.keys.of_queue("default", tuple(QUEUE_KEYS)), strict=True):
            match client.type(key):
                case b"hash":
                    found[name] = {field: value for field, value in client.hgetall(key).items() if field != MARK}
                case b"zset":
                    found[name] = client.zrange(key, 0, -1, withscores=True)
                case b"set":
                    found[name] = client.smembers(key)
    return found


class Twins:
    """What is done to one store is done to the other; one of them has no script for plain jobs."""

    def __init__(self, pair: list[RedisStore], clock: ManualClock, seed: int) -> None:
        self.pair = pair
        self.clock = clock
        self.random = Random(seed)
        self.before: list[NewJob] = []

    def some_jobs(self) -> list[NewJob]:
        chosen = self.random.choice
        alike = {
            "type": chosen(["t", "t", "u"]),
            "priority": chosen([0, 0, 0, -32768, 5, 32767]),
            "tenant": chosen([None, "x"]),
            "max_attempts": chosen([None, 7]),
            "timeout": chosen([None, 0, 9 * SECOND]),
            "rate_cost": chosen([None, 2]),
            "tags": chosen([(), ("a",)]),
            "meta": chosen([None, '{"a":1}']),
        }
        alike |= chosen([{}, {}, {}, *UNUSUAL])
        jobs = [new_job(**alike, payload=chosen(["{}", '{"a":"ё"}'])) for _ in range(chosen([1, 1, 1, 3, 40]))]
        if self.before and self.random.random() < 0.1:
            jobs[0] = chosen(self.before)
        self.before = jobs
        return jobs

    async def enqueue(self) -> None:
        jobs = self.some_jobs()
        batch = to_batch(jobs)
        by_one: object
        by_other: object
        try:
            by_one = await enqueue(self.pair[0]._access, jobs)
        except QueueClosed as error:
            by_one = str(error)
        try:
            reply = await self.pair[1]._access.call("enqueue", "default", batch.request, *batch.blobs)
            by_other = batch.answers(reply)
        except QueueClosed as error:
            by_other = str(error)
        assert by_one == by_other

    async def rule(self) -> None:
        changes: list[dict[str, Any]] = [
            {"fair": True},
            *[{"fair": False}] * 4,
            {"max_attempts": 5},
            {"timeout": 7 * SECOND},
        ]
        changed = QueueSettings(**self.random.choice(changes))
        for store in self.pair:
            await store.queues.change("default", changed)

    async def close_and_open(self) -> None:
        for store in self.pair:
            await store.queues.close("default")
        await self.enqueue()
        for store in self.pair:
            await store.queues.open("default")

    async def take_out(self) -> None:
        asked = request(types=("t", "u"), limit=self.random.choice([1, 50]))
        claimed = [await store.jobs.claim(asked) for store in self.pair]
        assert claimed[0] == claimed[1]

    async def delete(self) -> None:
        ids = [job.id for job in self.before[:1]]
        for store in self.pair:
            await store.operator.delete(ids)

    async def step(self) -> None:
        self.clock.jump_wall(self.random.choice([0, 1, *[SECOND] * 10, -5]))
        verbs = [self.enqueue] * 12 + [self.rule, self.close_and_open, self.take_out, self.take_out, self.delete]
        await self.random.choice(verbs)()
        assert kept(self.pair[0]) == kept(self.pair[1])


@pytest.mark.parametrize("seed", [0, *extended(range(1, 4))])
async def test_whatever_is_enqueued_plain_jobs_leave_what_others_would(
    pair: list[RedisStore], clock: ManualClock, asked: Counter[str], seed: int
) -> None:
    for store in pair:
        await open_lease(store, length=10**12)
    twins = Twins(pair, clock, seed)
    for _ in range(STEPS):
        await twins.step()
    assert asked["taken"] > 10
    assert asked["refused"] > 5


async def test_a_plain_enqueue_is_one_trip(store: Store, asked: Counter[str]) -> None:
    await store.jobs.enqueue([new_job()])  # the type is new here: that is the other script's
    await store.jobs.enqueue([new_job() for _ in range(3)])
    assert asked == {"refused": 1, "taken": 1}
