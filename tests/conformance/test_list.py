"""list and select: jobs by filter, page by page."""

from typing import Any

import pytest

from tests.support.seed import enqueue, enqueue_one, put
from windlass.core.ids import JobId
from windlass.core.status import FINISHED, LIVE, Status
from windlass.errors import InvalidName
from windlass.store.contract import Store
from windlass.store.records import JobFilter


async def listed(store: Store, limit: int = 100, **wanted: Any) -> list[JobId]:
    """Every id that matches, over all pages."""
    ids: list[JobId] = []
    cursor = None
    while True:
        page = await store.operator.list(JobFilter(**wanted), limit, cursor)
        assert len(page.items) <= limit
        ids += [job.id for job in page.items]
        cursor = page.next_cursor
        if cursor is None:
            return ids


async def test_an_empty_store_lists_nothing(store: Store) -> None:
    page = await store.operator.list(JobFilter(), 10, None)
    assert (page.items, page.next_cursor) == ((), None)


async def test_the_newest_come_first_whatever_their_status(store: Store) -> None:
    ids = [await put(store, status) for status in Status]
    assert await listed(store) == ids[::-1]


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 8, 9])
async def test_pages_of_any_size_show_everything_once(store: Store, limit: int) -> None:
    ids = [await put(store, status) for status in Status]
    assert await listed(store, limit) == ids[::-1]


async def test_jobs_that_come_while_paging_disturb_nothing(store: Store) -> None:
    ids = await enqueue(store, 4)
    first = await store.operator.list(JobFilter(), 2, None)
    await enqueue(store, 3)
    second = await store.operator.list(JobFilter(), 10, first.next_cursor)
    assert [job.id for job in (*first.items, *second.items)] == ids[::-1]


@pytest.mark.parametrize("more", [{}, {"status": (Status.PENDING,)}, {"status": (Status.DEAD,)}])
async def test_a_filter_may_end_before_an_id(store: Store, more: dict[str, Any]) -> None:
    status = more.get("status", (Status.PENDING,))[0]
    ids = [await put(store, status) for _ in range(7)]
    wanted = JobFilter(id_before=ids[5], **more)
    assert await store.operator.select(wanted, 100, None) == ids[:5]
    assert await store.operator.select(wanted, 100, ids[1]) == ids[2:5]
    assert await store.operator.select(wanted, 2, ids[1]) == ids[2:4]
    assert await store.operator.select(wanted, 100, ids[5]) == []
    assert await listed(store, 2, id_before=ids[5], **more) == ids[:5][::-1]
    page = await store.operator.list(wanted, 10, ids[2])
    assert [job.id for job in page.items] == ids[:2][::-1]


async def test_children_before_an_id(store: Store) -> None:
    parent = await put(store, Status.RUNNING)
    ids = [await enqueue_one(store, parent=parent) for _ in range(5)]
    await store.operator.cancel(ids[1:4], "not needed")
    for status, found in (((), ids[:3]), ((Status.CANCELLED,), ids[1:3]), ((Status.PENDING,), ids[:1])):
        wanted = JobFilter(parent=parent, id_before=ids[3], status=status)
        assert await store.operator.select(wanted, 100, None) == found
        assert await listed(store, 1, parent=parent, id_before=ids[3], status=status) == found[::-1]


@pytest.mark.parametrize("status", list(Status))
async def test_one_status(store: Store, status: Status) -> None:
    ids = {each: await put(store, each) for each in Status}
    assert await listed(store, status=(status,)) == [ids[status]]


async def test_several_statuses(store: Store) -> None:
    ids = {each: await put(store, each) for each in Status}
    for wanted in (FINISHED, LIVE, {Status.DEAD, Status.PENDING}, {Status.COMPLETED, Status.DEAD}):
        assert set(await listed(store, status=tuple(wanted))) == {ids[status] for status in wanted}


@pytest.mark.parametrize("status", [Status.PENDING, Status.COMPLETED, Status.DEAD])
async def test_every_field_given_must_match(store: Store, status: Status) -> None:
    wanted: dict[str, Any] = {"type": "a", "queue": "q", "tenant": "acme", "schedule": "daily"}
    match = await put(store, status, **wanted, tags=("x", "y"))
    for name in wanted:
        await put(store, status, **{**wanted, name: "other"}, tags=("x",))
    await put(store, status, **wanted, tags=("xx",))
    await put(store, status, **wanted)
    assert await listed(store, **wanted, tag="x") == [match]
    assert await listed(store, **wanted, tag="x", status=(status,)) == [match]
    assert len(await listed(store, type="a")) == 6
    assert len(await listed(store, schedule="daily")) == 6
    assert await listed(store, tag="nobody's") == []


@pytest.mark.parametrize("status", [Status.PENDING, Status.COMPLETED, Status.DEAD])
async def test_the_children_of_a_job(store: Store, status: Status) -> None:
    parent, other = await enqueue(store, 2)
    children = [await put(store, each, parent=parent) for each in (Status.PENDING, status)]
    await put(store, status, parent=other)
    assert await listed(store, parent=parent) == children[::-1]
    assert await listed(store, parent=parent, status=(status,), limit=1) == [
        id_ for id_ in children[::-1] if id_ == children[1] or status is Status.PENDING
    ]


async def test_a_forged_cursor_is_refused(store: Store) -> None:
    with pytest.raises(InvalidName):
        await store.operator.list(JobFilter(), 10, "' OR 1=1 --")


async def test_filters_are_values_and_never_text_of_a_statement(store: Store) -> None:
    await enqueue_one(store)
    assert await listed(store, type="' OR 1=1 --", queue="x' UNION SELECT 1", tag="%") == []


async def test_select_gives_ids_oldest_first_after_a_given_one(store: Store) -> None:
    ids = [await put(store, status) for status in Status]
    assert await store.operator.select(JobFilter(), 100, None) == ids
    assert await store.operator.select(JobFilter(), 3, ids[1]) == ids[2:5]
    assert await store.operator.select(JobFilter(), 100, ids[-1]) == []
    assert await store.operator.select(JobFilter(status=(Status.DEAD,)), 100, None) == [ids[6]]


async def test_a_page_of_no_jobs_is_empty(store: Store) -> None:
    await enqueue_one(store)
    assert (await store.operator.list(JobFilter(), 0, None)).items == ()


async def test_jobs_are_found_by_the_end_of_their_id_whatever_their_status(store: Store) -> None:
    ids = [await put(store, status) for status in Status]
    for id_ in ids:
        assert await listed(store, id_end=id_[-12:]) == [id_]
    assert await listed(store, id_end="not-an-end") == []


async def test_only_in_some_queues_and_of_some_types(store: Store) -> None:
    ids = {
        (queue, type_): await enqueue_one(store, queue=queue, type=type_)
        for queue in ("a", "b", "c")
        for type_ in ("mail", "img", "pdf")
    }
    for limit in (1, 100):
        assert await listed(store, limit, queues=("a", "c", "none")) == [
            id_ for (queue, _), id_ in reversed(ids.items()) if queue != "b"
        ]
        assert await listed(store, limit, types=("img", "pdf")) == [
            id_ for (_, type_), id_ in reversed(ids.items()) if type_ != "mail"
        ]
        assert await listed(store, limit, queues=("a",), types=("img",), queue="a") == [ids["a", "img"]]
        assert await listed(store, limit, queues=("a",), types=("none",)) == []
        assert await listed(store, limit, queues=("a",), queue="b") == []
