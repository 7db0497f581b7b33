"""A call that times out leaves no backend on the server, and nothing that contradicts what it said."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tests.postgres.strangers import Census, unread_results, until_no_session_waits
from tests.support.processes import until
from tests.support.seed import enqueue_one, new_job, request
from tests.support.servers.address import Address
from tests.support.servers.pgbouncer import PgBouncer
from tests.support.servers.postgres import PostgresServer
from windlass import App, EnqueueFailed, EnqueueUnknown, StoreUnavailable
from windlass.store.open import open_store
from windlass.store.postgres.store import CONNECTION_ROLES
from windlass.store.records import ProcessRole

HASTE = 0.3
ROUNDS = 6


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("opener", [ProcessRole.CLIENT, ProcessRole.RUNNER, ProcessRole.SUPERVISOR])
async def test_calls_that_time_out_again_and_again_need_no_more_connections(url: str, opener: ProcessRole) -> None:
    store = open_store(url, opener=opener, deadline=HASTE)
    await store.with_timeout(20).migrate()
    verbs: list[Callable[[], Awaitable[object]]] = [
        lambda: store.jobs.enqueue([new_job()]),
        lambda: store.jobs.claim(request("r1")),
        lambda: store.operator.counts(),
        lambda: store.jobs.admit(10),
    ]
    try:
        with unread_results(url), Census(url) as census:
            for _ in range(ROUNDS):
                ends = await asyncio.gather(*(verb() for verb in verbs), return_exceptions=True)
                assert {type(end) for end in ends} == {StoreUnavailable}
        assert set(census.most.values()) == {CONNECTION_ROLES[opener].connections}
    finally:
        await store.close()


@pytest.mark.usefixtures("unchecked")
async def test_what_was_reported_as_failed_is_never_stored_afterwards(url: str, server: Address) -> None:
    store = open_store(url, deadline=HASTE)
    await store.with_timeout(20).migrate()
    reported: dict[str, StoreUnavailable] = {}

    async def produce(n: int) -> None:
        # Alike and not alike: one statement, and a transaction.
        jobs = [new_job(fresh=True, type=f"t{n}"), *([new_job(queue="other")] if n % 2 else [])]
        try:
            await store.jobs.enqueue(jobs)
        except StoreUnavailable as error:
            reported.update({job.id: error for job in jobs})

    with unread_results(url):
        for _ in range(ROUNDS):
            await asyncio.gather(*(produce(n) for n in range(4)))
    await asyncio.to_thread(until_no_session_waits, server)
    certain = [id_ for id_, error in reported.items() if not error.maybe_done]
    assert certain, "the server has confirmed that it cancelled them"
    assert not [job for job in await store.with_timeout(20).operator.get(certain) if job is not None]
    await store.close()


@pytest.mark.usefixtures("unchecked")
def test_blocking_calls_of_many_threads_need_no_more_connections(url: str) -> None:
    app = App(url, deadline=1)

    @app.task
    def work(number: int) -> None: ...

    work.enqueue(0)

    def produce(number: int) -> str:
        try:
            return work.enqueue(number).id
        except (EnqueueFailed, EnqueueUnknown) as error:
            return error.code

    with unread_results(url), Census(url) as census, ThreadPoolExecutor(8) as threads:
        assert set(threads.map(produce, range(8))) <= {"enqueue_failed", "enqueue_unknown"}
    assert set(census.most.values()) <= {1, 2}
    work.enqueue(1)
    assert app.stats.counts().totals["pending"] == 2
    app.close()


@pytest.mark.usefixtures("unchecked")
async def test_a_cancelled_statement_is_certain_and_says_how_long_was_waited(url: str) -> None:
    app = App(url, deadline=1)

    @app.task
    async def work() -> None: ...

    await work.aenqueue()
    with unread_results(url), pytest.raises(EnqueueFailed, match=r"nothing was stored: .*no answer within 1 s"):
        await work.aenqueue()
    assert (await app.stats.acounts()).totals["pending"] == 1
    await app.aclose()


async def test_a_commit_that_waits_for_a_standby_is_not_reported_as_done(postgres_server: PostgresServer) -> None:
    """To cancel such a wait makes the server say that it has committed: the standby has nothing of it."""
    store = open_store(postgres_server.dsn(), deadline=2)
    await store.with_timeout(20).migrate()
    await enqueue_one(store.with_timeout(20))
    postgres_server.address.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
    postgres_server.address.execute("SELECT pg_reload_conf()")
    setting = "SELECT setting FROM pg_settings WHERE name = 'synchronous_standby_names'"
    until(lambda: postgres_server.address.execute(setting) == [("nobody",)], "the setting is known")
    for jobs in ([new_job(fresh=True)], [new_job(), new_job(queue="other")]):
        with pytest.raises(StoreUnavailable, match="no answer within") as caught:
            await store.jobs.enqueue(jobs)
        assert caught.value.maybe_done, repr(caught.value.__cause__)
    await store.close()


@pytest.mark.usefixtures("unchecked")
async def test_opening_a_connection_that_times_out_leaves_none_behind(url: str, server: Address) -> None:
    store = open_store(url, deadline=HASTE)
    with psycopg.connect(url, application_name="a stranger") as other, Census(url) as census:
        other.execute("LOCK TABLE windlass.schema, windlass.identity IN ACCESS EXCLUSIVE MODE")
        for _ in range(ROUNDS):
            with pytest.raises(StoreUnavailable, match="no answer within"):
                await store.operator.counts()
        await asyncio.to_thread(until_no_session_waits, server)
    assert max(census.most.values()) <= CONNECTION_ROLES[ProcessRole.CLIENT].connections
    assert (await store.with_timeout(20).operator.counts()).totals["pending"] == 0
    await store.close()


async def test_behind_a_pooler_the_statement_is_cancelled_too(
    url: str, server: Address, postgres_pgbouncer: PgBouncer
) -> None:
    store = open_store(postgres_pgbouncer.address.dsn(url.rpartition("/")[2]), deadline=HASTE)
    await store.with_timeout(20).migrate()
    busy = (
        "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' "
        "AND application_name <> 'a stranger'"
    )
    with unread_results(url):
        for _ in range(3):
            with pytest.raises(StoreUnavailable, match="no answer within") as caught:
                await store.jobs.enqueue([new_job()])
            assert not caught.value.maybe_done
        await asyncio.to_thread(until, lambda: not server.execute(busy), "no session waits for the lock")
    await enqueue_one(store.with_timeout(20))
    assert (await store.with_timeout(20).operator.counts()).totals["pending"] == 1
    await store.close()
