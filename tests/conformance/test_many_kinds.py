"""A bulk of many kinds of jobs: each is stored as if it were enqueued alone."""

from typing import Any

import msgspec
import pytest

from tests.support.clock import ManualClock
from tests.support.seed import claim_ids, completed, dead, enqueue, new_job, open_lease, request, status_of
from windlass.core.flow.queue import settings
from windlass.core.ids import new_id
from windlass.core.jobs.job import Enqueued, NewJob
from windlass.core.moments import DAY, SECOND, Micros
from windlass.core.status import Status
from windlass.errors import QueueClosed
from windlass.store.contract import Store
from windlass.store.records import Settled

TEXT = """'ä' "€" %s :now $1 {a,NULL} \\ \\u0000 \U0001f980"""


def kinds_of(now: Micros) -> list[dict[str, Any]]:
    """Fields of which each makes a kind of its own."""
    return [
        {"payload": msgspec.json.encode(TEXT).decode()},
        {"priority": 7},
        {"queue": "other", "type": "u"},
        {"run_at": now + DAY},
        {"run_at": now - DAY},
        {"delay": DAY},
        {"delay": DAY, "concurrency_key": TEXT},
        {"max_attempts": 9, "timeout": 3 * SECOND},
        {"idempotency_key": TEXT, "idempotency_window": DAY},
        {"concurrency_key": "k", "key_limit": 3, "key_strict": True, "rate_cost": 4},
        {"tenant": "t", "flow": new_id()},
        {"parent": new_id()},
        {"expires": DAY},
        {"expires_at": now + DAY},
        {"tags": ("a", TEXT)},
        {"meta": msgspec.json.encode({"text": TEXT}).decode()},
        {"schedule": "daily", "tick": now},
    ]


def bulk(now: Micros, fresh: str, outside: str) -> list[NewJob]:
    """A job of each kind, and two jobs that wait for it."""
    jobs = list[NewJob]()
    for fields in kinds_of(now):
        first = new_job(**{"fresh": fresh, **fields})
        rest = {**fields, "parent": first.id, "flow": None, "idempotency_key": None, "schedule": None, "tick": None}
        second = new_job(**{**rest, "parents": (first.id,), "fresh": fresh})
        third = {"parents": (first.id, second.id, outside), "result_params": (("x", second.id),)}
        jobs += [first, second, new_job(**{**rest, **third, "fresh": fresh})]
    return jobs


async def stored(store: Store, jobs: list[NewJob]) -> list[dict[str, Any]]:
    """What the store has, with places in the bulk instead of ids."""
    places = {job.id: str(place) for place, job in enumerate(jobs)}
    found = [msgspec.to_builtins(each) for each in await store.operator.get([job.id for job in jobs])]
    for each in found:
        each["id"] = places[each["id"]]
        each["parent"] = places.get(each["parent"], each["parent"])
        each["parents"] = [places.get(parent, parent) for parent in each["parents"] or ()]
        each["version"] = each["idempotency_key"] = None
    return found


@pytest.mark.parametrize("fresh", ["", "here"])
async def test_each_job_of_a_bulk_of_many_kinds_is_as_if_it_were_enqueued_alone(
    store: Store, clock: ManualClock, fresh: str
) -> None:
    await store.queues.declare({"other": settings(fair=True), "default": settings(max_concurrency=5)})
    (outside,) = await enqueue(store)
    together = bulk(clock.wall(), fresh, outside)
    ids = {job.id: new_id() for job in together}
    alone = [
        msgspec.structs.replace(
            job,
            id=ids[job.id],
            parent=ids.get(job.parent or "", job.parent),
            parents=tuple(ids.get(parent, parent) for parent in job.parents),
            result_params=tuple((name, ids.get(parent, parent)) for name, parent in job.result_params),
            idempotency_key=job.idempotency_key and f"{job.idempotency_key} again",
        )
        for job in together
    ]
    assert await store.jobs.enqueue(together) == [Enqueued(job.id) for job in together]
    for job in alone:
        assert await store.jobs.enqueue([job]) == [Enqueued(job.id)]
    assert await stored(store, together) == await stored(store, alone)


async def test_a_bulk_of_many_kinds_is_stored_once(store: Store, clock: ManualClock) -> None:
    (outside,) = await enqueue(store)
    jobs = bulk(clock.wall(), "", outside)
    known = [jobs[0], jobs[3], jobs[6]]
    await store.jobs.enqueue(known)
    answers = await store.jobs.enqueue(jobs)
    assert [each.id for each in answers if each.existing] == [job.id for job in known]
    assert all(each.existing for each in await store.jobs.enqueue(jobs))
    assert sum((await store.operator.counts()).totals.values()) == 1 + len(jobs)


async def test_a_closed_queue_refuses_a_bulk_of_many_kinds(store: Store) -> None:
    await store.queues.close("shut")
    jobs = [new_job(priority=n, queue="shut") for n in range(20)]
    with pytest.raises(QueueClosed):
        await store.jobs.enqueue(jobs)
    assert sum((await store.operator.counts()).totals.values()) == 0


@pytest.mark.parametrize("keyed", [False, True])
async def test_the_best_of_a_bulk_of_many_kinds_is_claimed_first(store: Store, keyed: bool) -> None:
    jobs = [new_job(priority=n, concurrency_key=f"k{n}" if keyed else None) for n in range(20)]
    await store.jobs.enqueue(jobs)
    await open_lease(store)
    assert await claim_ids(store, limit=20) == [job.id for job in reversed(jobs)]


async def test_a_dependent_in_a_bulk_of_many_kinds_waits_for_the_job_that_has_its_parents_key(store: Store) -> None:
    jobs = [new_job(priority=n) for n in range(20)]
    keyed = [new_job(idempotency_key="k", tags=(name,)) for name in ("first", "second")]
    child = new_job(parents=(keyed[1].id,))
    await store.jobs.enqueue([*jobs, *keyed, child])
    await store.operator.cancel([keyed[0].id], "enough")
    (cancelled,) = await store.operator.get([child.id])
    assert cancelled is not None
    assert (cancelled.parents, cancelled.status) == ((keyed[0].id,), Status.CANCELLED)


async def test_dependents_in_a_bulk_of_many_kinds_run_when_they_are_due(store: Store) -> None:
    jobs = [new_job(priority=n, queue="other") for n in range(20)]
    jobs += [new_job(parents=(job.id,), priority=job.priority, queue="other") for job in jobs]
    parents = [new_job(tags=("good",)), new_job(tags=("bad",))]
    later = new_job(parents=(parents[0].id,), delay=DAY, priority=1)
    soon = new_job(parents=(parents[0].id,), priority=2)
    after_all = new_job(parents=(parents[1].id,), when_ended=True, priority=3)
    never = new_job(parents=(parents[1].id,), priority=4)
    await store.jobs.enqueue([*jobs, *parents, later, soon, after_all, never])
    await open_lease(store)
    good, bad = await store.jobs.claim(request())
    assert await store.jobs.settle([completed(good), dead(bad)]) == [Settled.SETTLED] * 2
    found = [await status_of(store, job.id) for job in (later, soon, after_all, never)]
    assert found == [Status.SCHEDULED, Status.PENDING, Status.PENDING, Status.CANCELLED]
