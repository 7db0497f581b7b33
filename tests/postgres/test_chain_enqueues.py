"""Chains enqueued: by few statements, in a caller's transaction; and what a parent's end does beside its own."""

import asyncio
from collections import Counter
from typing import Any

import psycopg
import pytest

from tests.postgres.other import Other
from tests.support.chains import after, chain, enqueue_jobs, links, statuses
from tests.support.clock import ManualClock
from tests.support.key_queues import take
from tests.support.seed import completed, dead, new_job, running, settle, status_of
from windlass.core.moments import DAY
from windlass.core.status import Status
from windlass.errors import StoreUnavailable
from windlass.store.contract import Store
from windlass.store.postgres.connection.db import Db
from windlass.store.records import Settled

PENDING, BLOCKED, COMPLETED, CANCELLED = Status.PENDING, Status.BLOCKED, Status.COMPLETED, Status.CANCELLED


async def test_a_thousand_chains_of_ten_are_a_handful_of_statements(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: Counter[str] = Counter()
    for verb in ("rows", "run"):
        plain = getattr(Db, verb)

        async def counted(db: Db, name: str, *values: Any, plain: Any = plain) -> Any:
            said[name] += 1
            return await plain(db, name, *values)

        monkeypatch.setattr(Db, verb, counted)
    await enqueue_jobs(store, [job for _ in range(1000) for job in links(10, fresh="here")])
    assert said.total() < 10, said
    counts = (await store.operator.counts()).queues["default"]
    assert (counts["pending"], counts["blocked"]) == (1000, 9000)


async def test_a_parent_cannot_end_while_a_child_is_added_in_an_open_transaction(store: Store) -> None:
    parent, another = await running(store), await running(store)
    child = after(new_job(), parent.id)
    async with await psycopg.AsyncConnection.connect(store.address) as connection:
        await store.jobs.enqueue_inside(connection, [child], {})
        with pytest.raises(StoreUnavailable, match="no answer within"):
            await store.with_timeout(0.5).jobs.settle([completed(parent)])
        assert await settle(store, completed(another)) is Settled.SETTLED, "no other call is held up"
    # What was not answered in time may be done by the server all the same, as soon as it can.
    assert await settle(store, completed(parent)) in (Settled.SETTLED, Settled.ALREADY)
    assert await status_of(store, child.id) is PENDING


async def test_a_parent_whose_child_was_rolled_back_ends_as_if_nothing_had_been(store: Store) -> None:
    parent = await running(store)
    async with await psycopg.AsyncConnection.connect(store.address) as connection:
        await store.jobs.enqueue_inside(connection, [after(new_job(), parent.id)], {})
        await connection.rollback()
    assert await settle(store, completed(parent)) is Settled.SETTLED
    assert (await store.operator.counts()).totals["blocked"] == 0


async def test_a_listener_learns_at_once_that_the_next_link_may_run(store: Store, connection: Any) -> None:
    await chain(store, 2)
    (job,) = await take(store)
    heard = asyncio.Event()
    await connection.add_listener("windlass.windlass", lambda *_: heard.set())
    await settle(store, completed(job))
    async with asyncio.timeout(30):
        assert await heard.wait()


async def test_a_completion_that_is_not_awaited_wakes_no_process(store: Store, connection: Any) -> None:
    job = await running(store)
    heard = []
    await connection.add_listener("windlass.windlass", lambda *_: heard.append(1))
    await connection.fetch("SELECT pg_notify('windlass.windlass', '')")
    await settle(store, completed(job))
    await connection.fetch("SELECT 1")
    assert heard == [1], "only our own word"


async def test_links_that_go_with_their_partition_leave_no_edges(
    store: Store, clock: ManualClock, other: Other
) -> None:
    ids = await chain(store, 3)
    (job,) = await take(store)
    await settle(store, dead(job))
    assert await statuses(store, ids[1:]) == [CANCELLED, CANCELLED]
    clock.advance(40 * DAY)
    for _ in range(3):
        await store.operator.prune(10)
    assert await store.operator.get(ids[1:]) == [None, None]
    assert await other.does("SELECT * FROM windlass.dependencies") == []
