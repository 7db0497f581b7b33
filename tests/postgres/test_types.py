"""A new connection knows the types of our statements: the driver asks the server for none."""

import asyncpg
import pytest

from tests.support.seed import claim_one, completed, requeued, running, settle, status_of
from windlass.core.status import Status
from windlass.store.contract import Store


async def test_the_driver_looks_up_no_type(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    async def look_up(_: object, types: object, *__: object) -> None:
        pytest.fail(f"the types {types} were looked up")

    monkeypatch.setattr(asyncpg.Connection, "_introspect_types", look_up)
    await settle(store, requeued(await running(store)))
    job = await claim_one(store)
    await settle(store, completed(job))
    assert await status_of(store, job.id) is Status.COMPLETED
