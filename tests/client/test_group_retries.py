"""Members that are retried, and groups that a second run continues: callbacks wait for them again."""

import pytest

from tests.client.test_groups import Shop
from windlass import App, InvalidOption, Status, group
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


def test_a_retry_of_a_flow_also_revives_on_dead_where_an_earlier_one_was_interrupted(shop: Shop) -> None:
    handle = group([shop.square.job(1)], then=shop.total, on_dead=shop.alert).enqueue()
    shop.app.flows.cancel(handle)
    shop.app.jobs.retry(handle.member(0))
    shop.app.jobs.retry(handle.id)
    shop.app.flows.retry(handle)
    assert shop.status(watcher_id(handle.id, Role.ON_DEAD)) in (Status.SCHEDULED, Status.PENDING)
    run_all(shop.app)
    assert shop.seen == [[1]]


def test_a_run_that_adds_fewer_members_than_an_earlier_one_does_not_seal_the_group(shop: Shop) -> None:
    shop.app.group("import-7", then=shop.total).add_many([shop.square.job(number) for number in range(4)])
    second = shop.app.group("import-7", then=shop.total)
    second.add_many([shop.square.job(number) for number in range(2)])
    with pytest.raises(InvalidOption, match="an earlier run added more: add the same jobs in the same order"):
        second.seal()
    assert not shop.app.flows.get("import-7").sealed
    with shop.app.group("import-7", then=shop.total) as third:
        third.add_many([shop.square.job(number) for number in range(5)])
    run_all(shop.app)
    assert shop.seen == [[0, 1, 4, 9, 16]]
