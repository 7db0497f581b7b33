"""Members that are retried, and groups that a second run continues: callbacks wait for them again."""

from typing import Any

import pytest

from tests.client.test_groups import Shop
from windlass import App, Dead, InvalidOption, Status, group
from windlass.core.groups.ids import Role, watcher_id
from windlass.testing import arun_all, run_all


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


async def test_a_retry_of_a_flow_runs_no_node_again_that_completes_meanwhile(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The retry of a node restores those below it; they may complete before the flow's retry comes to them."""
    ran: list[str] = []
    broken = True

    @app.task
    async def step(name: str) -> None:
        ran.append(name)
        if name == "first" and broken:
            raise Dead("broken")

    async with app.flow("order") as flow:
        flow.add(step.job("first"), name="first")
        flow.add(step.job("second"), name="second", after=["first"])
        flow.add(group([step.job("member")], then=step.job("then")), name="group", after=["second"])
        flow.add(step.job("last"), name="last", after=["group"])
    await arun_all(app)
    broken = False
    operator = (await app._ready()).operator
    retry = operator.retry

    async def retry_and_run(*given: Any) -> Any:
        moved = await retry(*given)
        await arun_all(app)
        return moved

    monkeypatch.setattr(operator, "retry", retry_and_run)
    await app.flows.aretry("order")
    assert ran == ["first", "first", "second", "member", "then", "last"]
    assert (await app.flows.aget("order")).status is Status.COMPLETED
