"""Large enqueues: nothing or everything, whichever process dies when."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest
import redis

from tests.support.clock import ManualClock
from tests.support.processes import Processes
from tests.support.seed import claim_ids, enqueue_one, new_job, open_lease, status_of
from tests.support.servers.redis_places import redis_place
from tests.support.stores import STORES
from windlass.core.jobs.idempotency import OnConflict
from windlass.core.jobs.job import Enqueued, NewJob
from windlass.core.moments import SECOND
from windlass.core.status import Status
from windlass.errors import KeyConflict, QueueClosed, StoreUnavailable
from windlass.store.contract import Store
from windlass.store.drive import drive
from windlass.store.redis.connection.access import Access
from windlass.store.redis.duties.tidy import ABANDONED, IDLE
from windlass.store.redis.verbs.large_batch import MAX_TEXT, MAX_WEIGHT, portions, weight_of

MANY = 3 * MAX_WEIGHT + 7
PRODUCER = Path(__file__).parent / "dying_producer.py"


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    started = Processes(tmp_path)
    yield started
    started.end()


def is_staged(folder: Path, queue: str = "default") -> bool:
    """Whether anything of a large enqueue is stored there."""
    parts = urlsplit(redis_place(folder))
    (prefix,) = parse_qs(parts.query)["prefix"]
    with redis.Redis.from_url(parts._replace(query="").geturl()) as client:
        return bool(client.exists(f"{prefix}:{{{queue}}}:staged", f"{prefix}:{{{queue}}}:batches"))


async def pending(store: Store) -> int:
    return (await store.operator.counts()).totals.get("pending", 0)


async def test_a_hundred_thousand_jobs_come_all_of_them_and_in_their_order(store: Store, tmp_path: Path) -> None:
    jobs = [new_job(payload=str(n)) for n in range(100_000)]
    assert await store.jobs.enqueue(jobs) == [Enqueued(job.id) for job in jobs]
    assert await pending(store) == 100_000
    await open_lease(store)
    assert await claim_ids(store, limit=100) == [job.id for job in jobs[:100]]
    found = await store.operator.get([jobs[0].id, jobs[77_777].id, jobs[-1].id])
    assert [each and each.payload for each in found] == [0, 77_777, 99_999]
    assert not is_staged(tmp_path)


@pytest.mark.parametrize(
    ("script", "number", "side"),
    [
        ("stage_batch", 1, "before"),
        ("stage_batch", 1, "after"),
        ("stage_batch", 3, "after"),
        ("commit_batch", 1, "before"),
    ],
)
async def test_a_producer_that_dies_before_the_flip_has_enqueued_nothing(
    store: Store, clock: ManualClock, tmp_path: Path, processes: Processes, script: str, number: int, side: str
) -> None:
    dying = processes.start("producer", str(PRODUCER), redis_place(tmp_path), str(MANY), script, str(number), side)
    assert dying.wait() == -signal.SIGKILL, dying.output
    assert await pending(store) == 0
    assert is_staged(tmp_path) is (side == "after" or script == "commit_batch")
    clock.advance(ABANDONED - 1)
    await store.tidy()
    assert is_staged(tmp_path) is (side == "after" or script == "commit_batch"), "it might live still"
    clock.advance(1)
    await store.tidy()
    assert not is_staged(tmp_path)
    assert await pending(store) == 0


@pytest.mark.parametrize(
    ("script", "number", "side", "unfolded"),
    [
        ("commit_batch", 1, "after", 0),
        ("store_batch", 1, "after", MAX_WEIGHT),
        ("store_batch", 3, "after", 3 * MAX_WEIGHT),
    ],
)
async def test_a_producer_that_dies_after_the_flip_has_enqueued_everything(
    store: Store,
    clock: ManualClock,
    tmp_path: Path,
    processes: Processes,
    script: str,
    number: int,
    side: str,
    unfolded: int,
) -> None:
    dying = processes.start("producer", str(PRODUCER), redis_place(tmp_path), str(MANY), script, str(number), side)
    assert dying.wait() == -signal.SIGKILL, dying.output
    await store.tidy()
    assert await pending(store) == unfolded, "it might live still"
    clock.advance(IDLE)
    await store.tidy()
    assert await pending(store) == MANY
    assert not is_staged(tmp_path)


async def test_a_large_enqueue_that_is_repeated_is_one(store: Store, tmp_path: Path) -> None:
    jobs = [new_job() for _ in range(MANY)]
    await store.jobs.enqueue(jobs)
    assert await store.jobs.enqueue(jobs) == [Enqueued(job.id, existing=True) for job in jobs]
    await store.queues.close("default")
    assert await store.jobs.enqueue(jobs) == [Enqueued(job.id, existing=True) for job in jobs]
    assert await pending(store) == MANY
    assert not is_staged(tmp_path)


async def test_a_job_twice_in_two_portions_is_one(store: Store) -> None:
    jobs = [new_job() for _ in range(MANY)]
    answers = await store.jobs.enqueue([*jobs, jobs[0]])
    assert answers == [*(Enqueued(job.id) for job in jobs), Enqueued(jobs[0].id, existing=True)]
    assert await pending(store) == MANY


async def test_keys_meet_over_portions_in_their_order(store: Store) -> None:
    held = await enqueue_one(store, idempotency_key="held")
    jobs = [new_job(idempotency_key=f"k{n}") for n in range(MANY)]
    again, other = new_job(idempotency_key="k0"), new_job(idempotency_key="held")
    replacing = new_job(idempotency_key="k1", on_conflict=OnConflict.REPLACE)
    answers = await store.jobs.enqueue([*jobs, again, other, replacing])
    assert answers[-3:] == [
        Enqueued(jobs[0].id, existing=True),
        Enqueued(held, existing=True),
        Enqueued(replacing.id),
    ]
    assert await status_of(store, jobs[1].id) is Status.CANCELLED


@pytest.mark.parametrize("other", ["an existing job", "another portion"])
async def test_a_conflict_in_the_last_portion_refuses_all_of_it(store: Store, tmp_path: Path, other: str) -> None:
    jobs = [new_job(idempotency_key=f"k{n}") for n in range(MANY)]
    holder = jobs[0].id
    key = "k0"
    if other == "an existing job":
        key, holder = "held", await enqueue_one(store, idempotency_key="held", delay=SECOND)
    with pytest.raises(KeyConflict, match=holder):
        await store.jobs.enqueue([*jobs, new_job(idempotency_key=key, on_conflict=OnConflict.RAISE)])
    assert await pending(store) == 0
    assert not is_staged(tmp_path)
    assert await store.jobs.enqueue(jobs) == [Enqueued(job.id) for job in jobs], "no key was left behind"


async def test_a_closed_queue_among_several_refuses_all_of_them(store: Store, tmp_path: Path) -> None:
    await store.queues.close("closed")
    jobs = [*(new_job() for _ in range(MANY)), new_job(queue="closed")]
    with pytest.raises(QueueClosed):
        await store.jobs.enqueue(jobs)
    assert await pending(store) == 0
    assert not is_staged(tmp_path)


async def test_large_hand_ins_into_several_queues_are_answered_in_their_order(store: Store) -> None:
    jobs = [new_job(queue=("a", "b", "c")[n % 3]) for n in range(3 * MANY)]
    assert await store.jobs.enqueue(jobs) == [Enqueued(job.id) for job in jobs]
    assert await pending(store) == 3 * MANY


async def test_a_queue_that_is_closed_while_jobs_are_staged_takes_none_of_them(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def close_first(access: Access, name: str, queue: str, request: Any, *blobs: bytes) -> Any:
        if name == "commit_batch":
            await store.queues.close("default")
        return await call(access, name, queue, request, *blobs)

    call = Access.call
    monkeypatch.setattr(Access, "call", close_first)
    with pytest.raises(QueueClosed):
        await store.jobs.enqueue([new_job() for _ in range(MANY)])
    assert await pending(store) == 0
    assert not is_staged(tmp_path)


async def test_a_queue_that_is_closed_after_another_was_committed_takes_none_and_the_other_all(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def close_second(access: Access, name: str, queue: str, request: Any, *blobs: bytes) -> Any:
        if name == "commit_batch" and queue == "b":
            await store.queues.close("b")
        return await call(access, name, queue, request, *blobs)

    call = Access.call
    monkeypatch.setattr(Access, "call", close_second)
    with pytest.raises(
        StoreUnavailable, match=r"only a part is stored, in the queues 'a': queue 'b' is closed"
    ) as caught:
        await store.jobs.enqueue([new_job(queue="abc"[n % 3]) for n in range(3 * MANY)])
    assert caught.value.maybe_done
    counts = (await store.operator.counts()).queues
    assert {queue: jobs["pending"] for queue, jobs in counts.items() if jobs["pending"]} == {"a": MANY}
    assert not any(is_staged(tmp_path, queue) for queue in "abc")


async def test_an_outage_after_one_of_several_was_committed_is_said_to_have_maybe_done_something(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse_second(access: Access, name: str, queue: str, request: Any, *blobs: bytes) -> Any:
        if name == "commit_batch" and queue == "b":
            raise StoreUnavailable("refused")
        return await call(access, name, queue, request, *blobs)

    call = Access.call
    monkeypatch.setattr(Access, "call", refuse_second)
    with pytest.raises(StoreUnavailable) as caught:
        await store.jobs.enqueue([new_job(queue="ab"[n % 2]) for n in range(2 * MANY)])
    assert caught.value.maybe_done


async def test_a_slow_producer_is_helped_and_gets_the_same_answer(
    store: Store, tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever unfolds them, the jobs are there once, and their producer learns which of them existed before."""
    known = new_job()
    await store.jobs.enqueue([known])
    coordinator = STORES["redis"].open(tmp_path, clock)

    async def be_slow(access: Access, name: str, queue: str, request: Any, *blobs: bytes) -> Any:
        reply = await call(access, name, queue, request, *blobs)
        if name == "commit_batch":
            clock.advance(IDLE)
            await coordinator.tidy()
        return reply

    call = Access.call
    monkeypatch.setattr(Access, "call", be_slow)
    jobs = [new_job() for _ in range(MANY)]
    answers = await store.jobs.enqueue([*jobs, known])
    assert answers == [*(Enqueued(job.id) for job in jobs), Enqueued(known.id, existing=True)]
    assert await pending(store) == MANY + 1
    await coordinator.close()


async def test_what_comes_after_the_flip_does_not_overtake(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    later: list[NewJob] = []

    async def come_between(access: Access, name: str, queue: str, request: Any, *blobs: bytes) -> Any:
        reply = await call(access, name, queue, request, *blobs)
        if name == "commit_batch":
            clock.advance(1)
            later.append(new_job())
            await store.jobs.enqueue(later)
        return reply

    call = Access.call
    monkeypatch.setattr(Access, "call", come_between)
    jobs = [new_job() for _ in range(MANY)]
    await store.jobs.enqueue(jobs)
    await open_lease(store)
    taken: list[str] = []
    while some := await claim_ids(store, limit=500):
        taken += some
    assert taken == [job.id for job in [*jobs, *later]]


async def test_a_key_that_is_taken_after_the_flip_answers_with_its_job(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is committed cannot be refused any more, whatever it wanted."""
    jobs = [new_job(idempotency_key=f"k{n}", on_conflict=OnConflict.RAISE) for n in range(MANY)]
    quicker = new_job(idempotency_key="k7")

    async def come_between(access: Access, name: str, queue: str, request: Any, *blobs: bytes) -> Any:
        reply = await call(access, name, queue, request, *blobs)
        if name == "commit_batch":
            await store.jobs.enqueue([quicker])
        return reply

    call = Access.call
    monkeypatch.setattr(Access, "call", come_between)
    answers = await store.jobs.enqueue(jobs)
    assert answers[7] == Enqueued(quicker.id, existing=True)
    assert [answer.id for answer in answers[8:]] == [job.id for job in jobs[8:]]


def test_a_large_enqueue_needs_no_event_loop(tmp_path: Path) -> None:
    store = STORES["redis"].open(tmp_path, ManualClock())
    jobs = [new_job() for _ in range(MANY)]
    assert drive(store.jobs.enqueue(jobs)) == [Enqueued(job.id) for job in jobs]
    drive(store.close())


def test_portions_are_all_the_jobs_in_their_order_and_none_is_too_large() -> None:
    small, large = new_job(), new_job(payload="x" * (MAX_TEXT // 3))
    keyed = msgspec.structs.replace(small, idempotency_key="k")
    jobs = [
        *[small] * MAX_WEIGHT,
        *[large] * 10,
        *[keyed] * MAX_WEIGHT,
        new_job(payload="y" * 2 * MAX_TEXT),
        small,
    ]
    found = list(portions(jobs))
    assert [job for portion in found for job in portion] == jobs
    assert all(sum(len(job.payload) for job in portion) <= MAX_TEXT or len(portion) == 1 for portion in found)
    assert all(sum(map(weight_of, portion)) <= MAX_WEIGHT for portion in found)
