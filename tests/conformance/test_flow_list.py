"""Flows are listed by the time of their enqueue, whether they have a name or not."""

from typing import Any

import pytest

from tests.support.clock import ManualClock
from tests.support.seed import enqueue_one
from windlass.client.verbs import flow_list
from windlass.client.verbs.flow_list import list_flows
from windlass.core.groups.ids import GROUP_TYPE, Role, named_group_id, new_group_id, watcher_id
from windlass.core.ids import JobId
from windlass.core.moments import SECOND
from windlass.errors import InvalidInput
from windlass.store.contract import Store
from windlass.store.records import JobFilter, JobPage


async def made(store: Store, clock: ManualClock, *names: str | None, queue: str = "default") -> list[JobId]:
    """A flow for each name, one second after the other; None: without a name."""
    found = []
    for name in names:
        clock.advance(SECOND)
        digits = f"{clock.wall() // 1000:012x}"
        id_ = named_group_id(name) if name else f"{digits[:8]}-{digits[8:]}{new_group_id()[13:]}"
        for each in (id_, watcher_id(id_, Role.ALWAYS)):
            await enqueue_one(store, id=each, type=GROUP_TYPE, queue=queue, delay=3600 * SECOND)
        await enqueue_one(store)
        found.append(id_)
    return found[::-1]


async def pages(store: Store, limit: int, queues: tuple[str, ...] = ()) -> list[JobId]:
    """All pages of a list."""
    found: list[JobId] = []
    cursor = None
    for _ in range(200):
        page = await list_flows(store.operator, limit, cursor, queues)
        assert len(page.items) <= limit
        found += [job.id for job in page.items]
        if (cursor := page.next_cursor) is None:
            return found
    raise AssertionError("the list does not end")


NAMES = ("a", None, "b", "c", None, None, "d", None, "e", "f", "g", None)


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 12, 50])
async def test_the_newest_flow_comes_first_named_or_not(store: Store, clock: ManualClock, limit: int) -> None:
    assert await pages(store, limit) == []
    expected = await made(store, clock, *NAMES)
    assert await pages(store, limit) == expected


@pytest.mark.parametrize("name", ["a", None])
async def test_flows_that_all_have_names_or_none_are_listed(
    store: Store, clock: ManualClock, name: str | None
) -> None:
    expected = await made(store, clock, *(name and f"{name}{n}" for n in range(7)))
    for limit in (2, 7, 8):
        assert await pages(store, limit) == expected


async def test_only_flows_of_some_queues_are_listed(store: Store, clock: ManualClock) -> None:
    expected = await made(store, clock, *NAMES[:5], queue="mail")
    await made(store, clock, *(f"other {name}" for name in NAMES[5:]))
    assert await pages(store, 2, ("mail",)) == expected


@pytest.mark.parametrize("limit", [1, 4, 50])
async def test_more_named_flows_than_are_merged_come_last_and_each_once(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(flow_list, "MAX_NAMED", 3)
    monkeypatch.setattr(flow_list, "BATCH", 2)
    expected = await made(store, clock, *NAMES)
    found = await pages(store, limit)
    assert sorted(found) == sorted(expected)
    merged = [id_ for id_ in expected if id_ in found[:8]]
    assert found[:8] == merged, "five without a name, and the three that are merged"


async def test_a_flow_that_is_made_while_pages_are_read_moves_none(store: Store, clock: ManualClock) -> None:
    expected = await made(store, clock, *NAMES)
    first = await list_flows(store.operator, 4, None)
    await made(store, clock, "new", None)
    second = await list_flows(store.operator, 50, first.next_cursor)
    assert [job.id for job in (*first.items, *second.items)] == expected


@pytest.mark.parametrize("cursor", ["nothing", "end_x_y", "end_12_", "rest__x"])
async def test_a_cursor_of_something_else_is_refused(store: Store, cursor: str) -> None:
    with pytest.raises(InvalidInput):
        await list_flows(store.operator, 1, cursor)


async def test_named_flows_wait_for_others_that_were_not_reached_yet(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Among many other jobs a store finds few flows in one call."""
    monkeypatch.setattr(flow_list, "MAX_CALLS", 2)
    expected = await made(store, clock, *NAMES)

    class Scanning:
        """Verbs of a store of which one call finds at most one flow without a name."""

        async def list(self, wanted: JobFilter, limit: int, cursor: str | None) -> JobPage:
            return await store.operator.list(wanted, limit if cursor is None else 1, cursor)

    scanning: Any = Scanning()
    found: list[JobId] = []
    cursor = None
    for _ in range(50):
        page = await list_flows(scanning, 8, cursor)
        found += [job.id for job in page.items]
        if (cursor := page.next_cursor) is None:
            break
    assert found == expected
