"""A verb of several steps of which one fails: an error that claims certainty is raised only where nothing changed."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import redis

from tests.redis.faulty_wire import FaultyWire
from tests.support.chains import enqueue_jobs, follow_on, take_one
from tests.support.seed import completed, dead, new_job, open_lease
from tests.support.servers.redis_places import redis_place
from tests.support.timing import add, moment
from windlass.core.flow.queue import QueueSettings
from windlass.core.jobs.change import JobChange
from windlass.core.schedules.firing import firing
from windlass.errors import StoreUnavailable
from windlass.store.open import open_store
from windlass.store.redis.store import RedisStore

REFUSED = redis.exceptions.ResponseError("NOREPLICAS Not enough good replicas to write.")
MAX_STEPS = 60

Verb = Callable[[], Awaitable[Any]]
Prepare = Callable[[RedisStore], Awaitable[Verb]]


async def _settle(store: RedisStore) -> Verb:
    """Two jobs end, and the children of both are in another queue."""
    jobs = [*follow_on([new_job(), new_job(queue="b")]), *follow_on([new_job(queue="c"), new_job(queue="b")])]
    await enqueue_jobs(store, jobs)
    ends = [completed(await take_one(store)), dead(await take_one(store, runner="r2", queues=("c",)))]
    return lambda: store.jobs.settle(ends)


async def _retry(store: RedisStore) -> Verb:
    ids = await enqueue_jobs(store, follow_on([new_job(queue=queue) for queue in "aba"]))
    await store.jobs.settle([dead(await take_one(store, queues=("a",)))])
    return lambda: store.operator.retry(ids)


async def _cancel(store: RedisStore) -> Verb:
    ids = await enqueue_jobs(store, [new_job(queue=queue) for queue in "aba"])
    return lambda: store.operator.cancel(ids, "unwanted")


async def _move(store: RedisStore) -> Verb:
    ids = await enqueue_jobs(store, [new_job(queue=queue, idempotency_key=str(n)) for n, queue in enumerate("ab")])
    return lambda: store.operator.change(ids, JobChange(queue="c"))


async def _delete(store: RedisStore) -> Verb:
    ids = await enqueue_jobs(store, [new_job(queue=queue) for queue in "ab"])
    await store.operator.cancel(ids, "unwanted")
    return lambda: store.operator.delete(ids)


async def _fire(store: RedisStore) -> Verb:
    made = await add(store)
    return lambda: store.schedules.fire([firing(made, moment(made))])


async def _declare(store: RedisStore) -> Verb:
    return lambda: store.queues.declare({name: QueueSettings(max_attempts=3) for name in "ab"})


VERBS: dict[str, Prepare] = {
    "settle": _settle,
    "retry": _retry,
    "cancel": _cancel,
    "move": _move,
    "delete": _delete,
    "fire": _fire,
    "declare": _declare,
}


class Contents:
    """Everything under one prefix."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._client = redis.Redis.from_url(parts._replace(query="").geturl())
        self._prefix = parse_qs(parts.query)["prefix"][0]

    def now(self) -> dict[bytes, bytes]:
        return {key: self._client.dump(key) for key in self._client.scan_iter(f"{self._prefix}:*")}  # type: ignore[misc]

    def close(self) -> None:
        self._client.close()


@pytest.fixture
async def contents(tmp_path: Path) -> AsyncIterator[Callable[[Path], Contents]]:
    opened: list[Contents] = []

    def look(folder: Path) -> Contents:
        opened.append(Contents(redis_place(folder)))
        return opened[-1]

    yield look
    for each in opened:
        each.close()


async def _reported(act: Verb) -> StoreUnavailable | None:
    try:
        await act()
    except StoreUnavailable as error:
        return error
    return None


@pytest.mark.parametrize("verb", VERBS)
async def test_a_call_that_certainly_did_nothing_changed_nothing(
    verb: str, tmp_path: Path, contents: Callable[[Path], Contents]
) -> None:
    step, failed, doubts = 0, True, 0
    while failed:
        step += 1
        assert step < MAX_STEPS
        (folder := tmp_path / str(step)).mkdir()
        store = open_store(redis_place(folder))
        assert isinstance(store, RedisStore)
        await open_lease(store)
        act = await VERBS[verb](store)
        wire = store._server.wire = FaultyWire(store._server.wire)
        all_keys = contents(folder)
        before = all_keys.now()
        wire.fail_at(step, REFUSED, done=False)
        reported = await _reported(act)
        if reported is not None:
            assert reported.maybe_done or all_keys.now() == before, f"step {step}"
            doubts += reported.maybe_done
        failed = wire.recover()
        await act()
        await store.close()
    assert doubts, "no verb is so short"
