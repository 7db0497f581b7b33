"""Documents: small JSON records by kind and id."""

import asyncio

from tests.support.clock import ManualClock
from windlass.core.moments import SECOND
from windlass.store.contract import Store

KEEP = 10 * SECOND


async def test_a_document_is_added_once_and_found_by_kind_and_id(store: Store, clock: ManualClock) -> None:
    created_at = clock.wall()
    assert await store.documents.add("token", "a", '{"n": "ä"}') is None
    clock.advance(SECOND)
    existing = await store.documents.add("token", "a", '{"n": 2}')
    assert existing is not None
    assert (existing.id, existing.data, existing.version, existing.created_at) == ("a", '{"n": "ä"}', 1, created_at)
    assert await store.documents.get("token", ["b", "a"]) == [None, existing]
    assert await store.documents.get("audit", ["a"]) == [None]


async def test_a_document_is_replaced_only_at_its_version(store: Store) -> None:
    await store.documents.add("action", "a", "1")
    assert await store.documents.replace("action", "a", "2", 1)
    assert not await store.documents.replace("action", "a", "3", 1)
    assert not await store.documents.replace("action", "unknown", "3", 1)
    (found,) = await store.documents.get("action", ["a"])
    assert found is not None
    assert (found.data, found.version) == ("2", 2)


async def test_the_time_of_a_document_begins_anew_if_a_replacement_says_so(store: Store, clock: ManualClock) -> None:
    await store.documents.add("request", "a", "1", KEEP)
    clock.advance(KEEP - 1)
    assert await store.documents.replace("request", "a", "2", 1, KEEP)
    clock.advance(KEEP - 1)
    await store.operator.prune(10)
    assert [each and each.data for each in await store.documents.get("request", ["a"])] == ["2"]
    clock.advance(1)
    assert await store.documents.get("request", ["a"]) == [None]


async def test_of_concurrent_replacements_of_one_version_one_succeeds(store: Store) -> None:
    await store.documents.add("action", "a", "0")
    done = await asyncio.gather(*[store.documents.replace("action", "a", str(n), 1) for n in range(8)])
    assert done.count(True) == 1


async def test_of_concurrent_additions_of_one_id_one_succeeds(store: Store) -> None:
    added = await asyncio.gather(*[store.documents.add("request", "a", str(n)) for n in range(8)])
    assert added.count(None) == 1
    assert len({each.data for each in added if each is not None}) == 1


async def test_documents_are_listed_by_descending_id_page_by_page(store: Store) -> None:
    for number in range(600):
        await store.documents.add("audit", f"{number:04}", str(number))
    await store.documents.add("audis", "9999", "of a kind before")
    await store.documents.add("audit2", "0000", "of a kind after")
    first = await store.documents.list("audit", 400)
    rest = await store.documents.list("audit", 400, first[-1].id)
    assert [each.id for each in first + rest] == [f"{number:04}" for number in reversed(range(600))]
    assert await store.documents.list("audit", 10, "0000") == []


async def test_an_expired_document_does_not_exist_and_its_id_is_free(store: Store, clock: ManualClock) -> None:
    await store.documents.add("request", "a", "1", KEEP)
    await store.documents.add("request", "b", "kept")
    clock.advance(KEEP - 1)
    assert await store.documents.replace("request", "a", "2", 1)
    clock.advance(1)
    assert not await store.documents.replace("request", "a", "3", 2)
    assert await store.documents.get("request", ["a"]) == [None]
    assert [each.id for each in await store.documents.list("request", 10)] == ["b"]
    assert await store.documents.delete("request", ["a"]) == 0
    assert await store.documents.add("request", "a", "new") is None
    (found,) = await store.documents.get("request", ["a"])
    assert found is not None
    assert (found.data, found.version) == ("new", 1)
    clock.advance(2 * KEEP)
    assert (await store.documents.get("request", ["a"]))[0] is not None


async def test_prune_drops_expired_documents_and_no_others(store: Store, clock: ManualClock) -> None:
    for number in range(20):
        await store.documents.add("request", f"{number:02}", "x", KEEP if number % 2 else None)
    clock.advance(KEEP)
    await store.operator.prune(100)
    clock.jump_wall(-KEEP)
    left = await store.documents.list("request", 100)
    assert [each.id for each in reversed(left)] == [f"{number:02}" for number in range(0, 20, 2)]


async def test_deleted_documents_are_gone_and_counted(store: Store) -> None:
    for id_ in ("a", "b", "c"):
        await store.documents.add("token", id_, id_)
    assert await store.documents.delete("token", ["a", "c", "unknown"]) == 2
    assert await store.documents.delete("token", []) == 0
    assert [each.id for each in await store.documents.list("token", 10)] == ["b"]


async def test_a_page_of_large_documents_is_complete(store: Store) -> None:
    text = "x" * 100_000
    for number in range(12):
        await store.documents.add("action", str(number), text)
    found = await store.documents.list("action", 12)
    assert sorted(int(each.id) for each in found) == list(range(12))
    assert all(await store.documents.get("action", [str(number) for number in range(12)]))


async def test_trim_deletes_the_lowest_ids_beyond_a_number(store: Store) -> None:
    for number in range(30):
        await store.documents.add("audit", f"{number:02}", "x")
    await store.documents.add("token", "00", "of another kind")
    assert await store.documents.trim("audit", 20, 4) == 4
    assert await store.documents.trim("audit", 20, 100) == 6
    assert await store.documents.trim("audit", 20, 100) == 0
    assert await store.documents.trim("unknown", 20, 100) == 0
    assert [each.id for each in await store.documents.list("audit", 100)] == [
        f"{n:02}" for n in reversed(range(10, 30))
    ]
    assert len(await store.documents.list("token", 100)) == 1
