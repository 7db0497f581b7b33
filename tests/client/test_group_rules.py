"""need, rest, within, max_running: how many members a group can lose, how long it may take, how many run at once."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.client.test_groups import Shop
from windlass import App, Context, InvalidInput, Status, chain, group
from windlass.client.groups import watch
from windlass.core.groups.ids import member_id
from windlass.testing import arun_all, run_all


@pytest.fixture
def shop(app: App) -> Shop:
    return Shop(app)


@pytest.mark.parametrize("need", [0, 2, "66%", "40%", "0%"])
def test_then_runs_with_the_completed_members_if_as_many_as_needed_completed(shop: Shop, need: int | str) -> None:
    jobs = [shop.square.job(2), shop.fail.job(), shop.square.job(3)]
    handle = group(jobs, then=shop.total, on_dead=shop.alert, always=shop.clean, need=need).enqueue()
    run_all(shop.app)
    assert handle.result(timeout=5) == 13
    assert sorted(shop.seen, key=str) == [[4, 9], "clean"]
    flow = shop.app.flows.get(handle)
    assert (flow.completed, flow.dead, flow.need) == (2, 1, need)


@pytest.mark.parametrize("need", ["all", 3, "67%", "100%"])
def test_on_dead_runs_as_soon_as_what_is_needed_is_out_of_reach(shop: Shop, need: int | str) -> None:
    jobs = [shop.square.using(delay=3600).job(2), shop.fail.job(), shop.square.job(3)]
    handle = group(jobs, then=shop.total, on_dead=shop.alert, always=shop.clean, need=need).enqueue()
    run_all(shop.app)
    assert shop.seen == [("alert", [(1, Status.DEAD)])]
    assert shop.find(handle.then).status is Status.CANCELLED
    assert shop.status(handle.member(0).id) is Status.SCHEDULED, "the rest finishes"


def test_a_loss_that_is_allowed_is_waited_out(shop: Shop) -> None:
    jobs = [shop.fail.job(), shop.square.using(delay=3600).job(2), shop.fail.job(), shop.square.job(3)]
    handle = group(jobs, then=shop.total, on_dead=shop.alert, need=2).enqueue()
    run_all(shop.app)
    shop.app.jobs.run_now(handle.id)
    run_all(shop.app)
    assert (shop.seen, shop.status(handle.id)) == ([], Status.SCHEDULED)
    shop.app.jobs.run_now(handle.member(1))
    run_all(shop.app)
    assert shop.seen == [[4, 9]]


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group of any size goes on behind the members that it counted before."""
    monkeypatch.setattr(watch, "PAGE", 0)


@pytest.mark.usefixtures("counted")
def test_a_lost_member_that_was_counted_and_retried_counts_as_it_ends_now(shop: Shop) -> None:
    jobs = [shop.fail.job(), shop.square.using(delay=3600).job(2), shop.stop.using(delay=3600).job()]
    handle = group(jobs, then=shop.total, on_dead=shop.alert, need=2).enqueue()
    run_all(shop.app)
    shop.app.jobs.run_now(handle.id)
    run_all(shop.app)
    shop.hopeless = False
    shop.app.jobs.retry(handle.member(0))
    run_all(shop.app)
    for index in (1, 2):
        shop.app.jobs.run_now(handle.member(index))
        run_all(shop.app)
    assert shop.seen == [[0, 4]]


@pytest.mark.usefixtures("counted")
def test_a_completed_member_that_was_counted_and_dies_in_a_retry_is_lost(shop: Shop) -> None:
    shop.hopeless = False
    handle = group([shop.fail.job(), shop.square.using(delay=3600).job(2)], then=shop.total).enqueue()
    run_all(shop.app)
    shop.app.jobs.run_now(handle.id)
    run_all(shop.app)
    shop.hopeless = True
    shop.app.jobs.retry(handle.member(0))
    shop.app.jobs.run_now(handle.member(1))
    run_all(shop.app)
    assert shop.seen == []
    assert shop.find(handle).reason == f"its member {member_id(handle.id, 0)} is dead (index 0)"


def test_rest_cancel_cancels_members_that_have_not_started(shop: Shop) -> None:
    jobs = [shop.square.job(1), shop.fail.job(), *(shop.square.using(delay=3600).job(n) for n in range(4))]
    handle = group(jobs, then=shop.total, on_dead=shop.alert, always=shop.clean, rest="cancel").enqueue()
    run_all(shop.app)
    flow = shop.app.flows.get(handle)
    assert (flow.completed, flow.dead, flow.cancelled) == (1, 1, 4)
    assert "is dead (index 1)" in (shop.find(handle.member(5)).reason or "")
    assert "clean" in shop.seen


def test_when_its_time_is_over_live_members_are_cancelled_and_the_group_is_lost(shop: Shop) -> None:
    jobs = [shop.square.job(1), shop.square.using(delay=3600).job(2)]
    handle = group(jobs, then=shop.total, on_dead=shop.alert, always=shop.clean, within=0.001, id="slow").enqueue()
    shop.app.jobs.run_now(handle.id)
    run_all(shop.app)
    assert shop.find(handle).reason == "it was not over within 1ms"
    assert shop.find(handle.member(1)).reason == "it was not over within 1ms"
    assert sorted(shop.seen, key=str)[1:] == ["clean"]
    assert shop.seen[0][0] == "alert"


def test_when_its_time_is_over_and_enough_have_completed_then_runs(shop: Shop) -> None:
    jobs = [shop.square.job(2), shop.square.using(delay=3600).job(3)]
    handle = group(jobs, then=shop.total, on_dead=shop.alert, need=1, within=0.001).enqueue()
    run_all(shop.app)
    shop.app.jobs.run_now(handle.id)
    run_all(shop.app)
    shop.app.jobs.run_now(handle.id)
    run_all(shop.app)
    assert shop.seen == [[4]]
    assert shop.status(handle.member(1).id) is Status.CANCELLED


def test_a_group_looks_when_its_time_is_over_however_rarely_it_looks() -> None:
    shop = Shop(App.testing())
    jobs = [shop.square.using(delay=3600).job(3)]
    handle = group(jobs, then=shop.total, on_dead=shop.alert, within=1000).enqueue()
    run_all(shop.app, until=999)
    assert shop.status(handle.id) is Status.SCHEDULED
    run_all(shop.app, until=1)
    assert shop.seen == [("alert", [(0, Status.CANCELLED)])]


def test_a_group_looks_soon_after_a_member_expires_however_rarely_it_looks() -> None:
    app = App.testing()
    shop = Shop(app)
    handle = group([shop.square.using(queue="away", expires=310).job(1)], then=shop.total).enqueue()
    run_all(app, until=309, queues=["default"])
    job = app.jobs.get(handle.id)
    assert (job.run_at - job.created_at).total_seconds() <= 312


def test_a_retry_gives_a_group_its_time_again() -> None:
    shop = Shop(App.testing())
    handle = group([shop.square.using(delay=3600).job(3)], then=shop.total, within=1000).enqueue()
    run_all(shop.app, until=1001)
    shop.app.flows.retry(handle)
    run_all(shop.app)
    assert shop.seen == [[9]]


def test_at_most_max_running_members_run_at_once(app: App) -> None:
    running, most = 0, 0

    @app.task
    async def count(number: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1
        return number

    @app.task
    def total(parts: list[int]) -> int:
        return sum(parts)

    async def work() -> int:
        async with app.worker(concurrency=8):
            handle = await group([count.job(n) for n in range(12)], then=total, max_running=3).aenqueue()
            return await handle.aresult(timeout=30)

    assert asyncio.run(work()) == sum(range(12))
    assert most <= 3


def wrong_options(shop: Shop) -> dict[str, Callable[[], Any]]:
    jobs = [shop.square.job(1)]
    keyed = [shop.square.using(concurrency_key="k").job(1)]
    queues = [shop.square.job(1), shop.square.using(queue="other").job(1)]
    links = [chain(shop.square.using(concurrency_key="k").job(1), shop.square)]
    away = [chain(shop.square.using(queue="other").job(1), shop.square)]
    return {
        r"need: is 2, and the group has 1 members": lambda: group(jobs, need=2),
        r'need: must be "all", a number of members or a share such as "95%", not -1': lambda: group(jobs, need=-1),
        r"need: .* not '101%'": lambda: group(jobs, need="101%"),
        r"need: .* not True": lambda: group(jobs, need=True),
        r"need: .* not 0.5": lambda: group(jobs, need=0.5),  # type: ignore[call-overload]
        r'rest: must be "finish" or "cancel", not \'stop\'': lambda: group(jobs, rest="stop"),  # type: ignore[call-overload]
        r"within: must be more than 0 s and at most 30 days, not 31d": lambda: group(jobs, within="31d"),
        r"within: must be more than 0 s": lambda: group(jobs, within=0),
        r"max_running: must be 1 to 10,000, not 0": lambda: group(jobs, max_running=0),
        r"jobs\[0\].concurrency_key: cannot be given together with max_running": lambda: group(keyed, max_running=1),
        r"jobs\[1\].queue: must be 'default', as of the first member": lambda: group(queues, max_running=1),
        r"jobs\[0\].concurrency_key: cannot be given together": lambda: group(links, max_running=1),
        r"jobs\[0\].queue: must be 'other', as of the first member": lambda: group(away, max_running=1),
        r"parallel: is not an option of a group": lambda: group(jobs, parallel=1),  # type: ignore[call-overload]
        r"than: .* did you mean then\? there are": lambda: group(jobs, than=None),  # type: ignore[call-overload]
    }


def test_options_that_cannot_work_are_refused_with_the_field(shop: Shop) -> None:
    for reported, make in wrong_options(shop).items():
        with pytest.raises(InvalidInput, match=reported):
            make()
    assert sum(shop.app.stats.counts().totals.values()) == 0


def test_a_group_that_is_cancelled_while_it_cancels_its_rest_goes_on_after_a_crash(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Crash(Exception):
        pass

    async def crash(*args: object) -> None:
        raise Crash

    jobs = [shop.fail.job(), *(shop.square.using(delay=3600).job(n) for n in range(3))]
    handle = group(jobs, on_dead=shop.alert, rest="cancel").enqueue()
    with monkeypatch.context() as patch:
        patch.setattr(watch, "cancel_members", crash)
        run_all(shop.app)
    assert shop.status(handle.id) is Status.FAILED
    shop.app.jobs.run_now(handle.id)
    run_all(shop.app)
    assert shop.app.flows.get(handle).cancelled == 3
    assert shop.seen[0][0] == "alert"


async def test_then_does_not_run_if_the_group_is_cancelled_while_it_completes(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_results = watch.Watch._results

    async def cancelled_meanwhile(self: watch.Watch, seen: Any) -> Any:
        await shop.app.flows.acancel(handle)
        return await read_results(self, seen)

    handle = await group([shop.square.job(2)], then=shop.total).aenqueue()
    with monkeypatch.context() as patch:
        patch.setattr(watch.Watch, "_results", cancelled_meanwhile)
        await arun_all(shop.app)
    assert handle.then is not None
    then = await shop.app.jobs.aget(handle.then.id)
    assert (shop.seen, then.status) == ([], Status.CANCELLED)
    await shop.app.flows.aretry(handle)
    await arun_all(shop.app)
    assert shop.seen == [[4]]


def test_members_of_a_group_that_adds_none_have_no_open_group(shop: Shop) -> None:
    @shop.app.task
    def look(ctx: Context) -> str:
        return ctx.group.id

    handle = group([look.job()]).enqueue()
    alone = look.enqueue()
    run_all(shop.app)
    assert handle.member(0).result() == handle.id
    assert "only for members of a group" in str(shop.app.jobs.get(alone).error)


def test_a_node_that_is_no_group_is_told_that_it_has_no_members(shop: Shop) -> None:
    @shop.app.task
    def grow(ctx: Context) -> None:
        ctx.group.add(shop.square.job(1))

    with shop.app.flow() as flow:
        node = flow.add(grow.using(max_attempts=1).job())
    run_all(shop.app)
    assert "only for members of a group" in str(shop.app.jobs.get(node.id).error)
