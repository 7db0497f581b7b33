"""A wait for a standby is cut off: the server says that it has committed, but the standby has nothing."""

import asyncio
from collections.abc import AsyncIterator, Callable

import msgspec
import pytest

from tests.support.processes import until
from tests.support.seed import enqueue_one, new_job
from tests.support.servers.pgbouncer import pgbouncer
from tests.support.servers.postgres import PostgresServer
from windlass.core.jobs.job import NewJob
from windlass.errors import StoreUnavailable
from windlass.store.contract import Store
from windlass.store.open import open_store

CUT_OFF = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


@pytest.fixture
async def store(postgres_server: PostgresServer) -> AsyncIterator[Store]:
    opened = open_store(postgres_server.dsn(), deadline=30)
    await opened.migrate()
    await enqueue_one(opened)
    yield opened
    await opened.close()


def _single() -> list[NewJob]:
    return [new_job(fresh="here")]


def _several() -> list[NewJob]:
    return [new_job(), new_job(queue="other")]


def _lose_standby(server: PostgresServer) -> None:
    server.address.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
    server.address.execute("SELECT pg_reload_conf()")
    setting = "SELECT setting FROM pg_settings WHERE name = 'synchronous_standby_names'"
    until(lambda: server.address.execute(setting) == [("nobody",)], "the setting is known")


async def _is_unknown(store: Store, jobs: list[NewJob]) -> None:
    with pytest.raises(StoreUnavailable, match="standby") as caught:
        await store.jobs.enqueue(jobs)
    assert caught.value.maybe_done


@pytest.mark.parametrize("make", [_single, _several])
async def test_by_an_operator_who_cancels_it(
    store: Store, postgres_server: PostgresServer, make: Callable[[], list[NewJob]]
) -> None:
    _lose_standby(postgres_server)
    call = asyncio.create_task(_is_unknown(store, make()))
    await asyncio.to_thread(until, lambda: any(postgres_server.address.execute(CUT_OFF)), "the commit is cancelled")
    await call


def _keyed() -> list[NewJob]:
    return [new_job(idempotency_key="k")]


@pytest.mark.parametrize("make", [_single, _several, _keyed])
async def test_a_repeat_waits_for_the_standby_too(
    store: Store, postgres_server: PostgresServer, make: Callable[[], list[NewJob]]
) -> None:
    """What is known already is not acknowledged before the standby has it."""
    jobs = [msgspec.structs.replace(job, fresh="") for job in make()]
    _lose_standby(postgres_server)
    for repeat in (jobs, jobs, make() if make is _keyed else jobs):
        with pytest.raises(StoreUnavailable) as caught:
            await store.with_timeout(1).jobs.enqueue(repeat)
        assert caught.value.maybe_done
    postgres_server.address.execute("ALTER SYSTEM RESET synchronous_standby_names")
    postgres_server.address.execute("SELECT pg_reload_conf()")
    assert all(answer.existing for answer in await store.jobs.enqueue(jobs))


async def test_behind_a_pooler(store: Store, postgres_server: PostgresServer) -> None:
    with pgbouncer(postgres_server.address) as bouncer:
        other = open_store(bouncer.address.dsn("postgres"), deadline=30)
        await enqueue_one(other)
        _lose_standby(postgres_server)
        call = asyncio.create_task(_is_unknown(other, _single()))
        await asyncio.to_thread(
            until, lambda: any(postgres_server.address.execute(CUT_OFF)), "the commit is cancelled"
        )
        await call
        await other.close()
