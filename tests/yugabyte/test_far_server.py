"""A server far away, where every statement takes long: what is throttled by its duration is not throttled by that."""

from typing import Any

import pytest

from tests.support.seed import claim_ids, enqueue, open_lease
from windlass.core.flow.queue import settings
from windlass.core.moments import SECOND
from windlass.store.contract import Store
from windlass.store.postgres.connection.session import Session
from windlass.store.postgres.limits import limited_attempt, throttle

AWAY = SECOND // 30


async def test_a_new_tenant_of_a_fair_queue_has_its_turn_in_the_next_claim(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, now = Session.rows, SECOND

    async def from_afar(self: Session, *arguments: Any) -> Any:
        nonlocal now
        now += AWAY
        return await rows(self, *arguments)

    await store.queues.declare({"default": settings(fair=True)})
    await open_lease(store)
    await enqueue(store, 40, tenant="small")
    monkeypatch.setattr(Session, "rows", from_afar)
    for module in (limited_attempt, throttle):
        monkeypatch.setattr(module, "since_boot", lambda: now)
    for _ in range(4):
        assert len(await claim_ids(store, limit=4)) == 4
    big = await enqueue(store, 10, tenant="big")
    assert len(set(big) & set(await claim_ids(store, limit=8))) == 4
