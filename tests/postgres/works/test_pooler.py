"""PgBouncer between Windlass and its server: what works, what is left behind, and what is refused."""

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path

import asyncpg
import psycopg
import pytest

from tests.postgres.works.plant import Plant
from tests.support.seed import claim_ids, enqueue, open_lease, request, settle
from tests.support.seed import completed as completed_by
from tests.support.servers.address import Address
from tests.support.servers.pgbouncer import pgbouncer
from tests.support.stores import postgres_url as migrated_url
from windlass.errors import StoreUnavailable
from windlass.store.open import open_store
from windlass.store.postgres.connection.connect import connect
from windlass.store.postgres.connection.session import SETTINGS
from windlass.store.records import ProcessRole


def through(bouncer: Address, direct: str) -> str:
    return bouncer.dsn(direct.rpartition("/")[2])


def test_a_worker_with_two_runners_drains_behind_it(pooled: Plant) -> None:
    ids = pooled.enqueue("quick", 4_000) + pooled.enqueue("thread", 1_000)
    worker = pooled.start_worker("--processes", "2", "--until-empty")
    assert worker.wait(60) == 0
    pooled.check(ids)


def test_a_worker_behind_it_says_once_that_it_polls(pooled: Plant) -> None:
    worker = pooled.worker()
    pooled.enqueue("quick", 1)
    pooled.until_completed(1)
    pooled.stop([worker])
    assert worker.output.count("no hints wake this worker (there is a pooler") == 1
    assert "LISTEN" not in [row[0] for row in pooled.ask("SELECT query FROM pg_stat_activity")]


@pytest.mark.extended
def test_doctor_and_demo_work_behind_it(pooled: Plant) -> None:
    code, said = pooled.command("doctor", "--store", pooled.url)
    assert code == 0, said
    assert "there is a pooler" in said
    code, said = pooled.command("demo", "--store", pooled.url)
    assert code == 0, said


async def test_nothing_is_left_on_a_connection_that_others_get(postgres: Address, tmp_path: Path) -> None:
    direct = migrated_url(tmp_path)
    # One connection to the server: the next client has the very same.
    with pgbouncer(postgres, pool=1) as bouncer:
        url = through(bouncer.address, direct)
        with psycopg.connect(direct) as fresh:
            before = _state(fresh)
        with psycopg.connect(url, prepare_threshold=None) as theirs:
            (pid,) = theirs.execute("SELECT pg_backend_pid()").fetchone() or (0,)
        store = open_store(url, opener=ProcessRole.SUPERVISOR)
        await open_lease(store)
        await enqueue(store, 10)
        jobs = await store.jobs.claim(request())
        for job in jobs:
            await settle(store, completed_by(job))
        with psycopg.connect(url, prepare_threshold=None) as theirs:
            assert theirs.execute("SELECT pg_backend_pid()").fetchone() == (pid,)
            assert _state(theirs) == before
            assert theirs.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)
            assert theirs.execute("SELECT count(*) FROM pg_listening_channels()").fetchone() == (0,)
            assert theirs.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'").fetchone() == (0,)
        await store.close()


def _state(connection: "psycopg.Connection[tuple[object, ...]]") -> dict[str, object]:
    """Every setting of a session, but for what its driver says of itself, and those of a language that was loaded."""
    found = connection.execute("SELECT name, setting FROM pg_settings").fetchall()
    return {str(name): setting for name, setting in found if not str(name).startswith(("client_", "plpgsql."))}


async def test_twenty_clients_share_five_connections(postgres: Address, tmp_path: Path) -> None:
    """No call holds one while waiting for another, so none waits for ever, and each gets its share."""
    direct = migrated_url(tmp_path)
    with pgbouncer(postgres, pool=5) as bouncer:
        url = through(bouncer.address, direct)
        async with AsyncExitStack() as stack:
            stores = [open_store(url) for _ in range(20)]
            for store in stores:
                stack.push_async_callback(store.close)
            await enqueue(stores[0], 2_000)
            took: Counter[str] = Counter()

            async def serve(number: int) -> None:
                store, runner = stores[number], await open_lease(stores[number], f"r{number}", f"w{number}")
                while jobs := await store.jobs.claim(request(runner, limit=10)):
                    took[runner] += len(jobs)
                    beat = store.leases.renew(f"w{number}", [runner], 30_000_000)
                    await asyncio.gather(store.jobs.settle([completed_by(job) for job in jobs]), beat)

            await asyncio.gather(*(serve(number) for number in range(20)))
            assert took.total() == 2_000
            assert len(took) == 20, "a client got nothing"
            assert (await stores[0].operator.counts()).totals["completed"] == 2_000


async def test_session_mode_is_a_pooler_too(postgres: Address, tmp_path: Path) -> None:
    direct = migrated_url(tmp_path)
    with pgbouncer(postgres, mode="session") as bouncer:
        url = through(bouncer.address, direct)
        session = await connect(url, 10, pooled=None)
        assert session.pooled
        await session.close()
        store = open_store(url)
        await open_lease(store)
        ids = await enqueue(store, 3)
        assert await claim_ids(store) == ids
        await store.close()


async def test_statement_mode_is_refused_with_the_way_out(postgres: Address, tmp_path: Path) -> None:
    direct = migrated_url(tmp_path)
    with pgbouncer(postgres, mode="statement") as bouncer:
        store = open_store(through(bouncer.address, direct))
        with pytest.raises(StoreUnavailable, match=r"statement pooling mode; .*pool_mode = transaction") as reported:
            await store.migrate()
        assert reported.value.lasting
        await store.close()


async def test_a_pooler_that_lets_our_settings_pass_is_known_by_its_number(postgres: Address, tmp_path: Path) -> None:
    direct = migrated_url(tmp_path)
    with pgbouncer(postgres, more=f"ignore_startup_parameters = {','.join(SETTINGS)}") as bouncer:
        session = await connect(through(bouncer.address, direct), 10, pooled=None)
        assert session.pooled
        await session.close()
    session = await connect(direct, 10, pooled=None)
    assert not session.pooled
    assert isinstance(session.connection, asyncpg.Connection)
    await session.close()
