"""Migrations of the profile: statement by statement, repeatable wherever a process ended."""

import asyncio
from pathlib import Path

import asyncpg
import pytest

from tests.support.seed import claim_ids, enqueue, open_lease
from tests.support.servers.places import postgres_place
from windlass.store.open import open_store
from windlass.store.postgres.connection.db import in_schema
from windlass.store.postgres.connection.profile import YUGABYTEDB
from windlass.store.postgres.connection.session import Session
from windlass.store.postgres.migrate import migrations
from windlass.store.postgres.migrate_stepwise import statements_in

FUNCTION = 'FUNCTION "windlass".bucket_of'
NUMBER = len([text for step in migrations(YUGABYTEDB) for text in statements_in(step.text, 4, cluster=False)])


@pytest.mark.parametrize("last", [0, 1, 2, 10, NUMBER // 2, NUMBER, NUMBER + 1, NUMBER + 2])
async def test_what_an_interrupted_migration_left_is_finished_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: int
) -> None:
    address, script, sent = f"{postgres_place(tmp_path)}?profile=yugabyte&buckets=4", Session.script, 0

    async def broken_off(self: Session, text: str) -> None:
        nonlocal sent
        if sent == last:
            raise asyncpg.ConnectionDoesNotExistError("the process ends here")
        sent += 1
        await script(self, text)

    with monkeypatch.context() as patched:
        patched.setattr(Session, "script", broken_off)
        first = open_store(address)
        with pytest.raises(Exception, match="the process ends here"):
            await first.migrate()
        await first.close()
    store = open_store(address)
    assert await store.migrate() == ["0001_yugabyte"]
    ids = await enqueue(store, 20)
    await open_lease(store)
    assert await claim_ids(store, limit=20) == ids
    await store.close()


async def test_several_processes_may_migrate_at_the_same_moment(tmp_path: Path) -> None:
    address = f"{postgres_place(tmp_path)}?profile=yugabyte&buckets=4"
    stores = [open_store(address) for _ in range(4)]
    applied = await asyncio.gather(*(store.migrate() for store in stores))
    assert ["0001_yugabyte"] in applied
    ids = [(await enqueue(store))[0] for store in stores]
    await open_lease(stores[0])
    assert await claim_ids(stores[0], limit=10) == ids
    for store in stores:
        await store.close()


async def test_a_process_that_ends_after_it_set_more_buckets_leaves_none_that_no_claim_looks_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, met = Session.script, False

    async def met_by_another(self: Session, text: str) -> None:
        """Another process, with 16 buckets, comes as far as the function that puts jobs there, and ends."""
        nonlocal met
        await script(self, text)
        if FUNCTION in text and not met:
            met = True
            statements = statements_in(migrations(YUGABYTEDB)[0].text, 16, cluster=False)
            for statement in (in_schema(each, "windlass") for each in statements):
                await script(self, statement)
                if FUNCTION in statement:
                    break

    monkeypatch.setattr(Session, "script", met_by_another)
    store = open_store(f"{postgres_place(tmp_path)}?profile=yugabyte&buckets=4")
    ids = await enqueue(store, 40)
    await open_lease(store)
    assert met
    assert await claim_ids(store) == ids
    await store.close()
