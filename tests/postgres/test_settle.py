"""Settling on PostgreSQL: completions are committed before the others of their batch are looked at."""

from collections.abc import Sequence

import pytest

from tests.support.seed import completed, failed, new_job, open_lease, request
from windlass.core.jobs.outcome import Settlement
from windlass.core.status import Status
from windlass.errors import StoreUnavailable
from windlass.store.contract import Store
from windlass.store.postgres.connection.db import Db
from windlass.store.postgres.verbs import settle as settling
from windlass.store.records import Settled


async def test_what_fails_after_completions_does_not_say_that_nothing_is_done(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await open_lease(store)
    await store.jobs.enqueue([new_job(), new_job()])
    first, second = await store.jobs.claim(request(limit=2))

    async def cut_short(db: Db, settlements: Sequence[Settlement]) -> list[Settled]:
        raise StoreUnavailable("canceling statement due to statement timeout")

    with monkeypatch.context() as patch:
        patch.setattr(settling, "_settle_others", cut_short)
        with pytest.raises(StoreUnavailable) as caught:
            await store.jobs.settle([completed(first), failed(second)])
        assert caught.value.maybe_done
        with pytest.raises(StoreUnavailable) as caught:
            await store.jobs.settle([failed(second)])
        assert not caught.value.maybe_done
    found = await store.operator.get([first.id, second.id])
    assert [job and job.status for job in found] == [Status.COMPLETED, Status.RUNNING]
    answers = await store.jobs.settle([completed(first), failed(second)])
    assert answers == [Settled.ALREADY, Settled.SETTLED]
