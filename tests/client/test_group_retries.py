"""Members of an open group that are retried: callbacks wait for them again."""

import pytest

from tests.client.test_groups import Shop
from windlass import App, Status, group
from windlass.core.groups.ids import Role, watcher_id
from windlass.testing import run_all


@pytest.fixture
def shop(app: App) -> Shop:
    return Shop(app)


def test_always_waits_for_a_dead_member_that_is_retried(shop: Shop) -> None:
    jobs = [shop.fail.using(queue="slow").job(), shop.square.using(delay=3600).job(1)]
    handle = group(jobs, always=shop.clean).enqueue()
    run_all(shop.app)
    shop.app.jobs.run_now(watcher_id(handle.id, Role.ALWAYS))
    run_all(shop.app)
    shop.hopeless = False
    shop.app.queues.pause("slow")
    shop.app.flows.retry(handle.id)
    shop.app.jobs.run_now(handle.member(1))
    run_all(shop.app)
    shop.app.jobs.run_now(watcher_id(handle.id, Role.ALWAYS))
    run_all(shop.app)
    assert (shop.status(handle.member(0).id), shop.seen) == (Status.PENDING, [])
    shop.app.queues.resume("slow")
    run_all(shop.app)
    assert shop.seen == ["clean"]


def test_then_waits_for_a_completed_member_that_is_retried(shop: Shop) -> None:
    jobs = [shop.square.using(queue="slow").job(2), shop.square.using(delay=3600).job(1)]
    handle = group(jobs, then=shop.total).enqueue()
    run_all(shop.app)
    shop.app.jobs.run_now(handle.id)
    run_all(shop.app)
    shop.app.queues.pause("slow")
    shop.app.jobs.retry(handle.member(0))
    shop.app.jobs.run_now(handle.member(1))
    run_all(shop.app)
    shop.app.jobs.run_now(handle.id)
    run_all(shop.app)
    assert (shop.status(handle.member(0).id), shop.seen) == (Status.PENDING, [])
    shop.app.queues.resume("slow")
    run_all(shop.app)
    assert shop.seen == [[4, 1]]
