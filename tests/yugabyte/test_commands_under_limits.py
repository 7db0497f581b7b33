"""What commands do beside the store's calls, where one statement of ten and one commit of ten fails."""

from pathlib import Path

import asyncpg
import pytest

from tests.support.seed import enqueue_one
from tests.support.servers.address import Address
from tests.support.servers.places import postgres_place
from tests.support.stores import yugabyte_limits_url, yugabyte_url
from windlass.store.doctor import Level
from windlass.store.open import apart, discard, examine, open_store, raise_buckets
from windlass.store.postgres.store import PostgresStore

TIMES = 20
"""So many calls would hardly all succeed without a repetition."""


async def test_buckets_are_raised_although_statements_fail(tmp_path: Path) -> None:
    url = yugabyte_limits_url(tmp_path)
    before = [await raise_buckets(url, buckets) for buckets in range(5, 5 + TIMES)]
    assert before == list(range(4, 4 + TIMES))


async def test_separate_tables_are_removed_although_statements_fail(tmp_path: Path) -> None:
    """Without DDL in a transaction, which the proxy refuses."""
    url = apart(yugabyte_limits_url(tmp_path), "beside")
    assert url is not None
    store = open_store(url)
    await enqueue_one(store)
    await store.close()
    for _ in range(TIMES):
        await discard(url)
    assert Address(postgres_place(tmp_path)).execute("SELECT FROM pg_namespace WHERE nspname = 'beside'") == []


async def test_doctor_says_that_a_server_refuses_the_hints_that_its_address_wants(tmp_path: Path) -> None:
    found = await examine(f"{yugabyte_limits_url(tmp_path)}&notify=on")
    (said,) = [each for each in found.findings if each.check == "wake-up"]
    assert (said.level, said.says) == (
        Level.WARNING,
        "the server refuses LISTEN or NOTIFY: idle workers poll",
    )


async def test_a_conflict_while_hints_are_tried_does_not_turn_them_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetchval, failures = asyncpg.Connection.fetchval, 1

    async def failing_once(self: asyncpg.Connection, query: str, *arguments: object) -> object:
        nonlocal failures
        if "pg_notify" in query and failures:
            failures -= 1
            raise asyncpg.SerializationError("could not serialize access due to concurrent update")
        return await fetchval(self, query, *arguments)

    monkeypatch.setattr(asyncpg.Connection, "fetchval", failing_once)
    store = open_store(f"{yugabyte_url(tmp_path)}&notify=on")
    await enqueue_one(store)
    assert isinstance(store, PostgresStore)
    assert (failures, store._server.notifies) == (0, True)
    await store.close()
