"""A commit that the server refuses: the session goes on, and knows where it stands."""

import asyncio
from typing import Any

import pytest

from tests.postgres.other import Other
from tests.support.seed import enqueue, new_job
from windlass.errors import StoreUnavailable
from windlass.store.contract import Store
from windlass.store.open import open_store
from windlass.store.records import ProcessRole

_REFUSE = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not now'; END $$;
CREATE CONSTRAINT TRIGGER refusing AFTER UPDATE ON windlass.queues DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION refuse();
"""


async def test_after_a_refused_commit_a_statement_that_is_cut_off_may_have_been_done(
    store: Store, other: Other, connection: Any
) -> None:
    await enqueue(store)
    await connection.execute(_REFUSE)
    single = open_store(store.address, opener=ProcessRole.SUPERVISOR)
    with pytest.raises(StoreUnavailable, match="not now") as refused:
        await single.queues.pause("default", None)
    assert not refused.value.maybe_done
    await other.does("LOCK TABLE windlass.jobs")
    enqueueing = asyncio.create_task(single.jobs.enqueue([new_job(fresh="here")]))
    await other.is_waited_for()
    await connection.execute("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE NOT granted")
    with pytest.raises(StoreUnavailable) as cut_off:
        await enqueueing
    assert cut_off.value.maybe_done
    await other.commits()
    await single.close()
