"""Every verb of a store once: what must still work beside a newer version."""

import secrets

from tests.support.seed import claim_one, completed, enqueue, enqueue_one, failed, open_lease, settle
from tests.support.timing import moment, said
from windlass import Status
from windlass.core.schedules.firing import firing
from windlass.core.schedules.schedule import ScheduleSettings, settings
from windlass.store.contract import Store
from windlass.store.records import JobFilter


async def every_verb(store: Store) -> None:
    """A life in short: each way in, each way out, and each way back."""
    runner = await open_lease(store, f"r{secrets.token_hex(2)}")
    await enqueue(store, 3, queue="mail", idempotency_key=None)
    keyed = await enqueue_one(store, queue="mail", idempotency_key=secrets.token_hex(4), priority=9)
    late = await enqueue_one(store, queue="mail", delay=3_600_000_000)
    first = await claim_one(store, runner, queues=("mail",))
    assert first.id == keyed
    assert await settle(store, completed(first, "1"))
    second = await claim_one(store, runner, queues=("mail",))
    assert await settle(store, failed(second))
    assert [moved and moved.done for moved in await store.operator.run_now([late])] == [True]
    assert [moved and moved.done for moved in await store.operator.cancel([late], "enough")] == [True]
    assert [moved and moved.done for moved in await store.operator.retry([late])] == [True]
    assert [moved and moved.done for moved in await store.operator.delete([keyed])] == [True]
    await every_verb_of_schedules(store)
    await store.jobs.admit(10)
    await store.jobs.expire(10)
    await store.leases.renew("w1", [runner], 30_000_000)
    await store.leases.rescue(10)
    await store.operator.prune(10)
    found = await store.operator.list(JobFilter(queue="mail"), 100, None)
    assert {job.status for job in found.items} == {Status.PENDING, Status.FAILED}
    for job in found.items:
        await store.operator.cancel([job.id], "enough")
    await store.operator.delete([job.id for job in found.items])
    assert sum((await store.operator.counts()).queues.get("mail", {}).values()) == 0


async def every_verb_of_schedules(store: Store) -> None:
    """Made, changed, and fired before its time, so that its job waits."""
    await store.schedules.declare({"s": said({"queue": "late"}, every=3600)})
    await store.schedules.change("s", settings(jitter=5), ScheduleSettings())
    for verb in (store.schedules.pause, store.schedules.resume):
        assert await verb("s") is not None
    assert (await store.schedules.due(10)).schedules == ()
    (found,) = await store.schedules.list()
    (fired,) = await store.schedules.fire([firing(found, moment(found))])
    assert [moved and moved.done for moved in await store.operator.cancel(fired.jobs, "enough")] == [True]
    assert await store.schedules.remove("s")
