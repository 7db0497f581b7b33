"""using(connection=...) in a test app, with connections to a PostgreSQL database: their commit decides."""

from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest

from tests.postgres.transactions.callers import Caller
from tests.postgres.transactions.conftest import CALLERS, DRIVERS
from tests.support.parts import in_part
from windlass import App, InvalidOption, KeyConflict, chain
from windlass.testing import arun_all, assert_enqueued, assert_not_enqueued, enqueued


@pytest.fixture
def work(app: App) -> Any:
    """A task of a queue with settings of its own."""
    app.queue("mail", max_attempts=7)

    @app.task(queue="mail")
    def work(number: int) -> None: ...

    return work


@pytest.fixture(params=in_part(CALLERS, DRIVERS))
async def caller(request: pytest.FixtureRequest, postgres_url: str) -> AsyncIterator[Caller]:
    """A caller of each kind, with a connection to a database in which Windlass has no tables."""
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE orders (number integer PRIMARY KEY DEFERRABLE INITIALLY DEFERRED)")
    made = CALLERS[request.param]()
    await made.open(postgres_url)
    yield made
    await made.close()


async def test_the_commit_of_the_caller_decides(app: App, work: Any, caller: Caller) -> None:
    await caller.execute("INSERT INTO orders VALUES (1)")
    handle = await caller.enqueue(work, 1)
    assert_not_enqueued(app, work)
    await caller.commit()
    (job,) = assert_enqueued(app, work, 1, count=1)
    assert (job.id, job.max_attempts, handle.existing) == (handle.id, 7, False)
    await caller.enqueue(work, 2)
    await caller.rollback()
    assert len((await arun_all(app)).completed) == 1
    assert enqueued(app) == []


async def test_a_commit_that_fails_enqueues_nothing(app: App, work: Any, caller: Caller) -> None:
    await caller.execute("INSERT INTO orders VALUES (1), (1)")
    await caller.enqueue(work, 1)
    with pytest.raises(Exception, match="duplicate key"):
        await caller.commit()
    assert enqueued(app) == []


async def test_keys_conflicts_and_chains_are_as_in_a_real_transaction(app: App, work: Any, caller: Caller) -> None:
    keyed = work.using(idempotency_key="k")
    first = await caller.enqueue(keyed, 1)
    again = await caller.enqueue(keyed, 2)
    assert (again.id, again.existing) == (first.id, True)
    with pytest.raises(KeyConflict):
        await caller.enqueue(work.using(idempotency_key="k", on_conflict="raise"), 3)
    await caller.enqueue_many(app, list(chain(work.job(4), work.job(5)).jobs))
    await caller.commit()
    assert [job.payload["number"] for job in enqueued(app)] == [1, 4, 5]


@pytest.mark.parametrize("kind", in_part(CALLERS, DRIVERS))
async def test_a_connection_that_is_closed_has_committed_or_not(
    app: App, work: Any, kind: str, postgres_url: str
) -> None:
    caller = CALLERS[kind]()
    await caller.open(postgres_url)
    await caller.enqueue(work, 1)
    await caller.commit()
    await caller.enqueue(work, 2)
    await caller.close()
    assert [job.payload["number"] for job in enqueued(app)] == [1]


@pytest.fixture
def alone(caller: Caller, request: pytest.FixtureRequest) -> Caller:
    """A caller whose driver knows savepoints only as statements."""
    if "alchemy" in request.node.callspec.params["caller"]:
        pytest.skip("SQLAlchemy has savepoints of its own")
    return caller


async def test_a_savepoint_takes_the_job_back(app: App, work: Any, alone: Caller) -> None:
    await alone.enqueue(work, 1)
    await alone.execute("SAVEPOINT mine")
    await alone.enqueue(work, 2)
    await alone.execute("ROLLBACK TO SAVEPOINT mine")
    await alone.execute("SAVEPOINT other")
    await alone.enqueue(work, 3)
    await alone.execute("RELEASE SAVEPOINT other")
    assert enqueued(app) == []
    await alone.commit()
    assert [job.payload["number"] for job in enqueued(app)] == [1, 3]


@pytest.mark.parametrize("kind", in_part(CALLERS, DRIVERS))
async def test_a_connection_in_no_transaction_is_refused(app: App, work: Any, kind: str, postgres_url: str) -> None:
    caller = CALLERS[kind]()
    await caller.open(postgres_url, autocommit=True)
    with pytest.raises(InvalidOption, match="connection: is in no transaction"):
        await caller.enqueue(work, 1)
    await caller.close()
    assert enqueued(app) == []


async def test_a_user_without_rights_may_enqueue_and_a_failed_transaction_may_not(
    app: App, work: Any, postgres_url: str
) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("DROP ROLE IF EXISTS plain")
        connection.execute("CREATE ROLE plain LOGIN PASSWORD 'plain'")
    async with await psycopg.AsyncConnection.connect(postgres_url, user="plain", password="plain") as connection:
        await work.using(connection=connection).aenqueue(1)
        await connection.commit()
        assert_enqueued(app, work, 1)
        with pytest.raises(psycopg.errors.SyntaxError):
            await connection.execute("nonsense")
        with pytest.raises(InvalidOption, match="has failed"):
            await work.using(connection=connection).aenqueue(2)
        await connection.rollback()
    with psycopg.connect(postgres_url) as connection_:
        connection_.execute("DROP ROLE plain")
