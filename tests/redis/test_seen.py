"""Where jobs were seen: a hint that is bounded, and never more than a hint."""

from tests.support.seed import enqueue_one
from windlass.core.ids import new_id
from windlass.core.jobs.change import JobChange
from windlass.store.contract import Store
from windlass.store.redis.connection.server import MAX_AT_ONCE, MAX_REMEMBERED, JobLocations


def test_what_was_seen_is_found_by_queue() -> None:
    seen = JobLocations()
    first, second, third, unknown = (new_id() for _ in range(4))
    seen.note("a", (first, second))
    seen.note("b", (third,))
    assert seen.by_queue((third, unknown, first)) == {"b": [third], "a": [first]}


def test_the_oldest_are_forgotten_first() -> None:
    seen = JobLocations()
    first = new_id()
    seen.note("a", (first,))
    for _ in range(MAX_REMEMBERED // MAX_AT_ONCE):
        assert seen.by_queue((first,))
        seen.note("b", [new_id() for _ in range(MAX_AT_ONCE)])
    assert seen.by_queue((first,)) == {}


def test_a_large_enqueue_displaces_no_other() -> None:
    seen = JobLocations()
    first = new_id()
    seen.note("a", (first,))
    seen.note("b", [new_id() for _ in range(MAX_REMEMBERED + 1)])
    assert seen.by_queue((first,)) == {"a": [first]}


async def test_a_job_that_has_moved_is_found_where_it_is_now(store: Store) -> None:
    id_ = await enqueue_one(store, queue="a")
    await store.operator.get([id_])
    await store.operator.change([id_], JobChange(queue="b"))
    (job,) = await store.operator.get([id_])
    assert job is not None
    assert job.queue == "b"
