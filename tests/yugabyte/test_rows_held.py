"""Another transaction holds a pending job: claims pass over it and take the others; or see what became of it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import psycopg
import pytest

from tests.support.seed import claim_ids, completed, enqueue, failed, new_job, open_lease, request
from tests.support.servers.places import postgres_place
from tests.support.stores import yugabyte_url
from windlass.core.flow.queue import QueueSettings, settings
from windlass.core.ids import JobId
from windlass.core.jobs.job import Claimed, Progress
from windlass.core.jobs.outcome import Settlement
from windlass.errors import StoreUnavailable
from windlass.store.contract import Store
from windlass.store.open import open_store
from windlass.store.postgres.connection import access, session
from windlass.store.postgres.connection.access import Access, Work
from windlass.store.postgres.limits import bucket_turns
from windlass.store.postgres.store import PostgresStore
from windlass.store.records import Note, RowsHeld, RunnerEnd, Settled

Caller = psycopg.AsyncConnection[tuple[object, ...]]


@pytest.fixture
async def caller(store: Store, tmp_path: Path) -> AsyncIterator[Caller]:
    """A connection of a program's own, whose transactions end when it says so."""
    async with await psycopg.AsyncConnection.connect(postgres_place(tmp_path)) as connection:
        yield connection
        await connection.rollback()


async def claimed_soon(store: Store) -> list[JobId]:
    """What a claim takes: on a slow machine the next ones may not look below the cursor yet."""
    async with asyncio.timeout(15):
        while not (found := await claim_ids(store)):  # noqa: ASYNC110 - only another claim tells
            await asyncio.sleep(0.05)
    return found


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The profile sets no lock_timeout, which YugabyteDB ignores: the client ends waits for rows."""
    monkeypatch.setattr(access, "LOCK_SECONDS", 1.0)


LIMITS = [settings(), settings(max_concurrency=100)]


@pytest.mark.parametrize(
    ("order", "limits"),
    [("strict", settings()), ("loose", settings()), ("strict", settings(max_concurrency=100))],
    ids=["strict", "loose", "limited"],
)
async def test_a_job_that_a_callers_transaction_holds_stops_no_other_job_of_its_queue(
    store: Store, caller: Caller, tmp_path: Path, order: str, limits: QueueSettings
) -> None:
    worker = open_store(f"{yugabyte_url(tmp_path)}&order={order}", deadline=10.0)
    await worker.queues.declare({"default": limits})
    await open_lease(worker)
    held, *others = await enqueue(worker, 5)
    await worker.jobs.enqueue_inside(caller, [new_job(parents=(held,))], {})
    assert sorted(await claim_ids(worker)) == sorted(others)
    await caller.rollback()
    assert await claimed_soon(worker) == [held]
    await worker.close()


async def test_many_held_jobs_in_front_stop_none_behind_them(store: Store, caller: Caller) -> None:
    await open_lease(store)
    *held, last = await enqueue(store, 11)
    await store.jobs.enqueue_inside(caller, [new_job(parents=tuple(held))], {})
    assert [job.id for job in await store.with_timeout(10.0).jobs.claim(request(limit=5))] == [last]


async def commit_once_waited_for(caller: Caller, tmp_path: Path, waiting: "asyncio.Task[object]") -> None:
    """Commit when another session waits for a row of this transaction, or has passed over it."""
    async with await psycopg.AsyncConnection.connect(postgres_place(tmp_path), autocommit=True) as look:
        locks = "SELECT FROM pg_locks WHERE NOT granted AND %s = ANY(pg_blocking_pids(pid))"
        while not waiting.done():
            if await (await look.execute(locks, (caller.info.backend_pid,))).fetchall():
                break
    await caller.commit()


@pytest.mark.parametrize("limits", LIMITS, ids=["unlimited", "limited"])
async def test_a_job_that_moves_to_another_queue_meanwhile_is_not_claimed_from_the_old_one(
    store: Store, caller: Caller, tmp_path: Path, limits: QueueSettings
) -> None:
    await store.queues.declare({"default": limits})
    await open_lease(store)
    moved, *others = await enqueue(store, 5)
    await caller.execute("UPDATE windlass.jobs SET queue = 'other' WHERE id = %s", (moved,))
    claiming = asyncio.create_task(claim_ids(store, limit=5))
    await commit_once_waited_for(caller, tmp_path, claiming)
    assert await claiming == others


@pytest.mark.parametrize("outcome", [completed, failed], ids=["completed", "failed"])
async def test_outcomes_that_are_written_with_one_of_a_held_job_can_be_written_apart(
    store: Store, caller: Caller, outcome: Callable[[Claimed], Settlement]
) -> None:
    await open_lease(store)
    await enqueue(store, 2)
    held, other = await store.jobs.claim(request(limit=2))
    await caller.execute("SELECT FROM windlass.jobs WHERE id = %s FOR UPDATE", (held.id,))
    with pytest.raises(RowsHeld) as raised:
        await store.jobs.settle([outcome(held), outcome(other)])
    assert not raised.value.maybe_done
    assert await store.jobs.settle([outcome(other)]) == [Settled.SETTLED]


async def test_a_runner_ends_although_a_transaction_holds_one_of_its_jobs(store: Store, caller: Caller) -> None:
    await open_lease(store)
    await enqueue(store, 2)
    held, other = await store.jobs.claim(request(limit=2))
    await caller.execute("SELECT FROM windlass.jobs WHERE id = %s FOR UPDATE", (held.id,))
    rescued = await store.leases.end(RunnerEnd(runner="r1", started=frozenset(), crashed=True))
    assert [each.id for each in rescued] == [other.id]


async def test_notes_do_not_wait_for_a_held_job_until_their_deadline(store: Store, caller: Caller) -> None:
    """Outcomes wait for the last notes of their attempts."""
    await open_lease(store)
    await enqueue(store, 1)
    (held,) = await store.jobs.claim(request(limit=1))
    await caller.execute("SELECT FROM windlass.jobs WHERE id = %s FOR UPDATE", (held.id,))
    async with asyncio.timeout(10):
        with pytest.raises(RowsHeld):
            await store.jobs.note([Note(id=held.id, queue=held.queue, attempt=1, progress=Progress(1))])


async def test_where_no_cancel_request_arrives_the_next_claim_passes_over_a_held_job(
    store: Store, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cancel request is a connection of its own: behind a load balancer it may reach another node."""

    async def lost(*_: object) -> None: ...

    monkeypatch.setattr(session, "request_cancel", lost)
    monkeypatch.setattr(session, "CANCEL_SECONDS", 0.2)
    await open_lease(store)
    held, *others = await enqueue(store, 5)
    await store.jobs.enqueue_inside(caller, [new_job(parents=(held,))], {})
    with pytest.raises(StoreUnavailable):
        await claim_ids(store)
    assert sorted(await claim_ids(store)) == sorted(others)


async def test_a_claim_that_waits_for_no_job_has_the_whole_time_of_its_call(
    store: Store, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A careful claim locks each job, which may take longer than a wait for rows may."""
    once, given = Access.once, list[tuple[float, bool]]()

    async def noted(self: Access, work: Work[object]) -> object:
        given.append((self.seconds, self._ends_waits))
        return await once(self, work)

    await open_lease(store)
    held, other = await enqueue(store, 2)
    await store.jobs.enqueue_inside(caller, [new_job(parents=(held,))], {})
    monkeypatch.setattr(Access, "once", noted)
    assert [job.id for job in await store.with_timeout(10.0).jobs.claim(request())] == [other]
    assert given[:2] == [(10.0, True), (10.0, False)]


async def test_a_wait_for_a_held_job_is_counted_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim that waited for a job and then for its turn: what it waited is taken off its duration."""
    assert isinstance(store, PostgresStore)
    boot = iter(range(0, 1000, 10))
    monkeypatch.setattr(bucket_turns, "since_boot", lambda: next(boot))
    turns = bucket_turns.BucketTurns(store._server)
    head = {"id": None, "leased": True, "again": False, "buckets": 16}
    answers: list[object] = [RowsHeld("held"), [{**head, "contended": True}], [{**head, "contended": False}]]

    async def claim(_: object) -> list[object]:
        if isinstance(answer := answers.pop(0), RowsHeld):
            raise answer
        return answer  # type: ignore[return-value]

    await turns.take(claim, {"limit": 1})
    assert turns.waited == 30, "the whole first turn"


async def test_a_claim_does_not_wait_for_its_turn_where_all_jobs_are_held(store: Store, caller: Caller) -> None:
    assert isinstance(store, PostgresStore)
    await open_lease(store)
    held = await enqueue(store, 2)
    await store.jobs.enqueue_inside(caller, [new_job(parents=tuple(held))], {})
    assert await claim_ids(store) == []
    assert store._server.conflicts.lock_waits == 0, "no other claim was in its way"


async def test_a_wait_for_a_connection_is_no_wait_for_rows(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = open_store(f"{yugabyte_url(tmp_path)}&connections=1")
    assert isinstance(busy, PostgresStore)
    await open_lease(busy)
    await enqueue(busy, 1)
    (job,) = await busy.jobs.claim(request(limit=1))
    monkeypatch.setattr(access, "LOCK_SECONDS", 0.5)
    pool = busy._server.pool()
    taken = await pool.take()
    settling = asyncio.create_task(busy.jobs.settle([completed(job)]))
    await asyncio.sleep(1.0)
    pool.give(taken)
    assert await settling == [Settled.SETTLED]
    await busy.close()
