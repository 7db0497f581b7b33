"""using(connection=...) on PostgreSQL, with every kind of connection: the job is part of the caller's transaction."""

from typing import Any

import msgspec
import psycopg
import pytest

from tests.postgres.transactions.callers import Caller
from windlass import App, EnqueueFailed, KeyConflict, chain
from windlass.errors import WindlassError
from windlass.store.open import open_store
from windlass.store.records import ProcessRole

TEXT = """'ä' "€" %s %(x)s :now $1 {a,NULL} \\ \U0001f980"""
ORDER = "INSERT INTO orders VALUES (1)"


async def total(app: App) -> int:
    return sum((await app.stats.acounts()).totals.values())


async def test_the_job_is_there_when_the_caller_commits_and_not_before(app: App, work: Any, caller: Caller) -> None:
    await caller.execute(ORDER)
    handle = await caller.enqueue(work, 1)
    assert (handle.existing, await total(app)) == (False, 0)
    await caller.commit()
    job = await app.jobs.aget(handle.id)
    assert (job.status, job.payload["number"]) == ("pending", 1)
    assert job.max_attempts == 7, "what the code declares holds, though it had not been written"


async def test_nothing_is_left_when_the_caller_rolls_back(app: App, work: Any, caller: Caller) -> None:
    await caller.enqueue(work.using(idempotency_key="k"), 1)
    await caller.rollback()
    assert await total(app) == 0
    assert not (await work.using(idempotency_key="k").aenqueue(1)).existing, "the key is free"


async def test_a_savepoint_of_the_callers_takes_the_job_back(app: App, work: Any, caller: Caller) -> None:
    kept = await caller.enqueue(work, 1)
    await caller.execute("SAVEPOINT mine")
    await caller.enqueue(work, 2)
    await caller.execute("ROLLBACK TO SAVEPOINT mine")
    await caller.commit()
    assert await total(app) == 1
    assert (await app.jobs.aget(kept.id)).status == "pending"


async def test_many_jobs_of_many_kinds_in_one_transaction(app: App, work: Any, caller: Caller) -> None:
    jobs = [work.using(priority=n % 2, tags=["a", "b"] if n % 3 else []).job(n, text=TEXT) for n in range(30)]
    jobs += [work.using(meta={"text": TEXT}, idempotency_key=f"{n} {TEXT}", delay=60).job(n) for n in range(10)]
    handles = await caller.enqueue_many(app, jobs)
    assert [handle.id for handle in handles] == [job.id for job in jobs]
    assert await caller.enqueue_many(app, []) == []
    await caller.commit()
    totals = (await app.stats.acounts()).totals
    assert (totals["pending"], totals["scheduled"]) == (30, 10)
    assert (await app.jobs.aget(handles[0].id)).payload == {"number": 0, "text": TEXT}
    assert (await app.jobs.aget(handles[-1].id)).idempotency_key == f"9 {TEXT}"


async def test_jobs_of_a_generator_are_all_stored_and_none_if_it_raises(app: App, work: Any, caller: Caller) -> None:
    await caller.execute(ORDER)
    with pytest.raises(ZeroDivisionError):
        await caller.enqueue_many(app, (work.job(1 // number) for number in (2, 1, 0)))
    assert len(await caller.enqueue_many(app, map(work.job, range(3)))) == 3
    await caller.commit()
    assert await total(app) == 3


async def test_a_key_answers_with_the_existing_job(app: App, work: Any, caller: Caller) -> None:
    keyed = work.using(idempotency_key="k")
    existing_job = await keyed.aenqueue(1)
    found = await caller.enqueue(keyed, 2)
    assert (found.id, found.existing) == (existing_job.id, True)
    first = await caller.enqueue(work.using(idempotency_key="new"), 3)
    second = await caller.enqueue(work.using(idempotency_key="new"), 4)
    assert (second.id, second.existing) == (first.id, True)
    await caller.commit()
    assert await total(app) == 2


async def test_a_key_conflict_leaves_the_transaction_as_it_was(app: App, work: Any, caller: Caller) -> None:
    existing_job = await work.using(idempotency_key="k").aenqueue(1)
    await caller.execute(ORDER)
    with pytest.raises(KeyConflict) as conflict:
        await caller.enqueue(work.using(idempotency_key="k", on_conflict="raise"), 2)
    assert str(existing_job.id) in str(conflict.value)
    await caller.enqueue(work, 3)
    await caller.commit()
    assert await total(app) == 2


async def test_replacing_is_undone_with_the_rest(app: App, work: Any, caller: Caller) -> None:
    replacing = work.using(idempotency_key="k", on_conflict="replace")
    existing_job = await replacing.aenqueue(1)
    await caller.enqueue(replacing, 2)
    await caller.rollback()
    assert (await app.jobs.aget(existing_job.id)).status == "pending"
    new = await caller.enqueue(replacing, 3)
    await caller.commit()
    assert (await app.jobs.aget(existing_job.id)).status == "cancelled"
    assert (await app.jobs.aget(new.id)).payload["number"] == 3


async def test_an_error_in_mid_enqueue_leaves_the_callers_own_rows_alone(
    app: App, work: Any, caller: Caller, url: str
) -> None:
    await total(app)
    await caller.execute("ALTER TABLE windlass.jobs ADD CONSTRAINT today CHECK (type <> 'work') NOT VALID")
    await caller.commit()
    await caller.execute(ORDER)
    with pytest.raises(EnqueueFailed, match=r"nothing was stored: .*violates check constraint"):
        await caller.enqueue(work.using(queue="other"), 1)
    await caller.commit()
    assert "other" not in [queue.name for queue in await app.queues.alist()], "not even its queue"
    await caller.execute("DO $$ BEGIN ASSERT (SELECT count(*) FROM orders) = 1; END $$")


async def test_a_waiting_claim_is_woken_by_the_commit(app: App, work: Any, caller: Caller, url: str) -> None:
    store = open_store(url, opener=ProcessRole.SUPERVISOR)
    assert await store.signals.has_work(["mail"], None) is False
    mark = store.signals.cursor()
    await caller.enqueue(work, 1)
    assert store.signals.cursor() == mark
    await caller.commit()
    assert await store.signals.wait(mark, 20) is True
    assert await store.signals.has_work(["mail"], None) is True
    await store.close()


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
async def test_under_a_stricter_isolation_the_same_holds(app: App, work: Any, caller: Caller, level: str) -> None:
    await work.aenqueue(0)
    await caller.execute(f"SET TRANSACTION ISOLATION LEVEL {level}")
    await caller.execute(ORDER)
    await others_change_what_every_enqueue_reads(app)
    keyed = await caller.enqueue(work.using(idempotency_key="k"), 1)
    assert (await caller.enqueue(work.using(idempotency_key="k"), 1)).id == keyed.id
    await caller.enqueue(work, 2)
    await caller.commit()
    assert await total(app) == 3


async def others_change_what_every_enqueue_reads(app: App) -> None:
    await app.queues.apause("mail")
    with psycopg.connect(app.store) as connection:
        connection.execute("UPDATE windlass.watermarks SET rank = rank + 1")


async def test_a_serialization_failure_is_the_very_error_that_the_callers_code_repeats_on(
    app: App, work: Any, caller: Caller
) -> None:
    keyed = work.using(idempotency_key="k")
    await caller.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    await caller.execute("SELECT * FROM orders")
    existing_job = await keyed.aenqueue(1)
    with pytest.raises(caller.retried, match="could not serialize"):
        await caller.enqueue(keyed, 2)
    await caller.rollback()
    found = await caller.enqueue(keyed, 2)
    assert (found.id, found.existing) == (existing_job.id, True)


RESTART = """
CREATE FUNCTION windlass.restart() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'Restart read required at: { read: 1 }' USING ERRCODE = 'XX000'; END $$;
CREATE TRIGGER restart BEFORE INSERT ON windlass.jobs FOR EACH STATEMENT EXECUTE FUNCTION windlass.restart();
"""
"""What YugabyteDB raises if a row was written at a time that may be before or after the statement's."""


async def test_a_restart_of_yugabytedb_is_raised_unchanged_too(app: App, work: Any, caller: Caller) -> None:
    await work.aenqueue(0)
    with psycopg.connect(app.store) as connection:
        connection.execute(RESTART)
    with pytest.raises(Exception, match="Restart read required") as raised:
        await caller.enqueue(work, 1)
    assert not isinstance(raised.value, WindlassError)


async def test_a_chain_is_there_as_a_whole_or_not_at_all(app: App, work: Any, caller: Caller) -> None:
    parent = await work.aenqueue(1)
    await caller.enqueue_many(app, list(chain(work.job(2), work.using(delay=60).job(3)).jobs))
    await caller.rollback()
    assert await total(app) == 1
    links = chain(work.job(4, text=TEXT), work.job(5), work.using(concurrency_key=TEXT).job(6)).jobs
    child = msgspec.structs.replace(work.job(7), parents=(parent.id, links[0].id))
    await caller.enqueue_many(app, [*links, child])
    await caller.commit()
    totals = (await app.stats.acounts()).totals
    assert (totals["pending"], totals["blocked"]) == (2, 3)
    assert (await app.jobs.aget(child.id)).parents == (parent.id, links[0].id)
