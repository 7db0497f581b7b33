"""Moving to another queue in steps: whatever dies meanwhile, the job is in one queue in the end, and never in two."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.clock import ManualClock
from tests.support.seed import (
    claim_ids,
    enqueue,
    enqueue_one,
    look,
    new_job,
    open_lease,
    running,
    settle,
    snoozed,
)
from windlass.core.ids import JobId
from windlass.core.jobs.change import JobChange
from windlass.core.jobs.job import Enqueued, LogLine
from windlass.core.moments import SECOND, to_datetime
from windlass.core.status import Status
from windlass.errors import StoreUnavailable
from windlass.store.records import JobFilter, Note, Transition
from windlass.store.redis.connection.access import Access
from windlass.store.redis.operator import move
from windlass.store.redis.operator.read_records import read_records
from windlass.store.redis.store import RedisStore

THERE = JobChange(queue="there")
STEPS = [("reserve_keys", False), ("move_out", False), ("move_out", True), ("move_in", True), ("move_done", True)]
"""At which script the mover dies, and whether it was done."""


def broken_off(name: str, done: bool) -> Callable[[Access, str, Mapping[str, Any]], Any]:
    """Calls of scripts, as long as it is not this one."""
    original = Access.call_queues

    async def calls(self: Access, wanted: str, requests: Mapping[str, Any]) -> Any:
        if wanted == name and not done:
            raise StoreUnavailable("the mover is dead")
        reply = await original(self, wanted, requests)
        if wanted == name:
            raise StoreUnavailable("the mover is dead")
        return reply

    return calls


async def move_and_die(store: RedisStore, id_: JobId, step: tuple[str, bool]) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Access, "call_queues", broken_off(*step))
        with pytest.raises(StoreUnavailable):
            await store.operator.change([id_], THERE)


@contextmanager
def acting_before_calls(store: RedisStore, acts: Mapping[int, Callable[[], Awaitable[object]]]) -> Iterator[None]:
    """Others act before some calls of reserve_keys, numbered from 1."""
    original, number, acting = Access.call_queues, 0, False

    async def calls(self: Access, wanted: str, requests: Mapping[str, Any]) -> Any:
        nonlocal number, acting
        if wanted == "reserve_keys" and not acting:
            number, acting = number + 1, True
            await acts.get(number, store.operator.counts)()
            acting = False
        return await original(self, wanted, requests)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Access, "call_queues", calls)
        yield


async def whereabouts(store: RedisStore) -> list[tuple[JobId, str]]:
    """Every job that is in a list."""
    return [(job.id, job.queue) for job in (await store.operator.list(JobFilter(), 100, None)).items]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: f"{step[0]} {'done' if step[1] else 'not done'}")
async def test_a_job_is_in_one_queue_wherever_its_mover_dies(store: RedisStore, step: tuple[str, bool]) -> None:
    id_ = await enqueue_one(store, idempotency_key="k", payload='{"n": 1}', tags=("a",))
    await move_and_die(store, id_, step)
    found = await look(store, id_)
    gone = step[1]
    assert found.queue == ("there" if gone else "default")
    assert (found.status, found.payload, found.tags) == (Status.PENDING, {"n": 1}, ("a",))
    assert await whereabouts(store) == [(id_, found.queue)]
    assert (await store.operator.counts()).totals["pending"] == 1
    again = await store.operator.change([id_], THERE)
    assert again == [Transition(id_, Status.PENDING, done=True)]
    assert await whereabouts(store) == [(id_, "there")]
    await open_lease(store)
    assert await claim_ids(store, queues=("default", "there")) == [id_]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: f"{step[0]} {'done' if step[1] else 'not done'}")
async def test_its_key_is_where_the_job_is(store: RedisStore, clock: ManualClock, step: tuple[str, bool]) -> None:
    id_ = await enqueue_one(store, idempotency_key="k")
    await move_and_die(store, id_, step)
    clock.advance(move.RESERVED_FOR)
    await store.tidy()
    place = (await look(store, id_)).queue
    other = "default" if place == "there" else "there"
    new = new_job(queue=other, idempotency_key="k")
    assert await store.jobs.enqueue([new_job(queue=place, idempotency_key="k"), new]) == [
        Enqueued(id_, existing=True),
        Enqueued(new.id),
    ]


async def test_a_mover_that_comes_late_leaves_the_job_its_key(store: RedisStore, clock: ManualClock) -> None:
    id_ = await enqueue_one(store, idempotency_key="k")
    with acting_before_calls(store, {1: lambda: store.operator.change([id_], THERE)}):
        await store.operator.change([id_], THERE)
    assert await whereabouts(store) == [(id_, "there")]
    clock.advance(move.RESERVED_FOR)
    await store.tidy()
    await store.operator.prune(10)
    again = new_job(queue="there", idempotency_key="k")
    assert await store.jobs.enqueue([again]) == [Enqueued(id_, existing=True)]


async def test_a_mover_whose_job_stays_does_not_end_the_reservation_of_another(
    store: RedisStore, clock: ManualClock
) -> None:
    id_ = await enqueue_one(store, idempotency_key="k")
    access = store._access
    stale = (await read_records(access, {"default": [id_]})).jobs[id_].record
    await store.operator.change([id_], JobChange(priority=1))

    async def reserve_and_die() -> None:
        clock.advance(1)
        await move_and_die(store, id_, ("reserve_keys", True))

    with acting_before_calls(store, {2: reserve_and_die}):
        await move.move_all(access, "there", {"default": [(stale, stale)]})
    new = new_job(queue="there", idempotency_key="k")
    assert await store.jobs.enqueue([new]) == [Enqueued(id_, existing=True)]


async def test_a_move_that_is_under_way_is_left_to_its_mover_and_finished_when_that_is_dead(
    store: RedisStore, clock: ManualClock
) -> None:
    id_ = await enqueue_one(store)
    await move_and_die(store, id_, ("move_out", True))
    clock.advance(move.OVERDUE - 1)
    await store.tidy()
    assert await whereabouts(store) == []
    clock.advance(1)
    await store.tidy()
    assert await whereabouts(store) == [(id_, "there")]


async def test_a_child_is_found_by_its_parent_while_its_move_is_unfinished(store: RedisStore) -> None:
    """A group whose look misses a live member would end too early."""
    child = await enqueue_one(store, parent="p" * 36)
    await move_and_die(store, child, ("move_out", True))
    live = JobFilter(parent="p" * 36, status=(Status.PENDING,))
    assert await store.operator.select(live, 1, None) == [child]
    await move_and_die(store, await enqueue_one(store, parent="p" * 36), ("move_out", True))
    assert len(await store.operator.list(JobFilter(parent="p" * 36), 10, None)) == 2


async def test_all_that_a_job_has_goes_along(store: RedisStore) -> None:
    job = await running(store, parent="p" * 36)
    line = LogLine(to_datetime(0), 1, "so far")
    await store.jobs.note([Note(id=job.id, queue=job.queue, attempt=1, lines=(line,))])
    await settle(store, snoozed(job))
    before = await look(store, job.id)
    await store.operator.change([job.id], THERE)
    after = await look(store, job.id)
    assert (after.attempts, after.logs, after.snoozes) == (before.attempts, (line,), 1)
    assert [each.id for each in (await store.operator.list(JobFilter(parent="p" * 36), 10, None)).items] == [job.id]


async def test_a_mover_that_comes_late_brings_no_second_job(
    store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process has finished the move, and the job has gone on to a third queue since."""
    carried: list[tuple[Any, ...]] = []
    original = move.move_in

    async def move_in(*arguments: Any) -> dict[JobId, int]:
        carried.append(arguments)
        return await original(*arguments)

    monkeypatch.setattr(move, "move_in", move_in)
    id_ = await enqueue_one(store)
    await store.operator.change([id_], THERE)
    await store.operator.change([id_], JobChange(queue="third"))
    await original(*carried[0])
    assert await whereabouts(store) == [(id_, "third")]
    assert (await store.operator.counts()).totals["pending"] == 1


async def test_a_mover_that_comes_late_does_not_end_a_later_move(
    store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process has finished the move, the job came back, and left again with another process that died."""
    carried: list[tuple[Any, ...]] = []
    original = move.move_in

    async def move_in(*arguments: Any) -> dict[JobId, int]:
        carried.append(arguments)
        return await original(*arguments)

    monkeypatch.setattr(move, "move_in", move_in)
    id_ = await enqueue_one(store)
    await store.operator.change([id_], THERE)
    await store.operator.change([id_], JobChange(queue="default"))
    await move_and_die(store, id_, ("move_out", True))
    await original(*carried[0])
    assert (await look(store, id_)).queue == "there"
    assert await whereabouts(store) == [(id_, "there")]


async def test_there_and_back_again(store: RedisStore) -> None:
    id_ = await enqueue_one(store)
    for queue in ("there", "default", "there", "default"):
        assert await store.operator.change([id_], JobChange(queue=queue)) == [
            Transition(id_, Status.PENDING, done=True)
        ]
        assert await whereabouts(store) == [(id_, queue)]


async def test_a_moved_job_enqueued_again_is_known(store: RedisStore) -> None:
    job = new_job()
    await store.jobs.enqueue([job])
    await store.operator.change([job.id], THERE)
    assert await store.jobs.enqueue([job]) == [Enqueued(job.id, existing=True)]
    assert await whereabouts(store) == [(job.id, "there")]


async def test_a_key_that_was_reserved_for_a_job_that_could_not_leave_is_free_again(store: RedisStore) -> None:
    id_ = await enqueue_one(store, idempotency_key="k")
    access = store._access
    stale = (await read_records(access, {"default": [id_]})).jobs[id_].record
    await store.operator.change([id_], JobChange(priority=1))
    moved = await move.move_all(access, "there", {"default": [(stale, stale)]})
    assert (moved[id_].status, moved[id_].holder) == (None, None)
    new = new_job(queue="there", idempotency_key="k")
    assert await store.jobs.enqueue([new]) == [Enqueued(new.id)]


async def test_a_job_that_waits_for_its_key_and_moves_frees_one_queue_and_runs_in_the_other(
    store: RedisStore,
) -> None:
    first, second = await enqueue(store, 2, concurrency_key="k")
    assert await store.operator.change([first], THERE) == [Transition(first, Status.PENDING, done=True)]
    assert (await look(store, second)).status is Status.PENDING
    assert await store.operator.change([second], THERE) == [Transition(second, Status.BLOCKED, done=True)]


async def test_very_many_are_moved_at_once(store: RedisStore, clock: ManualClock) -> None:
    ids = await enqueue(store, 400) + await enqueue(store, 200, queue="second", delay=SECOND)
    moved = await store.operator.change(ids, JobChange(queue="there", priority=2))
    assert all(each is not None and each.done for each in moved)
    queues = (await store.operator.counts()).queues
    assert (queues["there"]["pending"], queues["there"]["scheduled"]) == (400, 200)
    assert sum(queues["default"].values()) + sum(queues["second"].values()) == 0
