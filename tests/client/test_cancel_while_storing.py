"""Groups that are cancelled while their producer stores members: none of these is left to run."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.client.labour import Labour
from tests.client.test_groups import Shop
from windlass import App, Context, NotAllowedNow, Status, group
from windlass.client.groups import group as group_module
from windlass.client.groups.cancelled import KIND
from windlass.client.tasks.own_group import OwnGroup
from windlass.core.groups.ids import Role, callback_id, watcher_id
from windlass.testing import arun_all, run_all


@pytest.fixture
def shop(app: App) -> Shop:
    return Shop(app)


def live(app: App) -> int:
    """Members that may still run."""
    return app.jobs.count(type="square", status=["scheduled", "pending", "blocked", "running", "failed"])


@pytest.mark.parametrize("name", ["import-7", None])
def test_a_generator_whose_group_is_cancelled_stores_no_more(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, name: str | None
) -> None:
    monkeypatch.setattr(group_module, "PORTION", 3)
    read: list[int] = []

    def jobs() -> Iterator[Any]:
        for number in range(30):
            if number == 7:
                shop.app.flows.cancel(made.id)
            read.append(number)
            yield shop.square.job(number)

    made = group(jobs(), then=shop.total, always=shop.clean, id=name)
    with pytest.raises(NotAllowedNow, match="it is cancelled"):
        made.enqueue()
    assert len(read) < 12
    assert live(shop.app) == 0
    run_all(shop.app)
    assert shop.seen == ["clean"]


async def test_an_add_during_which_the_group_is_cancelled_leaves_no_live_member(shop: Shop) -> None:
    opened = shop.app.group(then=shop.total, always=shop.clean)
    await opened.aadd(shop.square.job(1))
    store = opened._store

    async def late(jobs: Any, parts: Any) -> Any:
        await shop.app.flows.acancel(opened.id)
        return await store(jobs, parts)

    opened._store = late  # type: ignore[method-assign, assignment]
    with pytest.raises(NotAllowedNow, match="it is cancelled"):
        await opened.aadd_many([shop.square.job(2), shop.square.job(3)])
    found = await shop.app.flows.aget(opened.id)
    assert (found.status, found.live, found.cancelled) == (Status.CANCELLED, 0, 3)


def test_a_cancelled_open_group_is_open_again_after_a_retry(shop: Shop) -> None:
    opened = shop.app.group("import-7", then=shop.total)
    opened.add(shop.square.job(1))
    assert shop.app.flows.cancel("import-7").sealed
    with pytest.raises(NotAllowedNow, match="it is cancelled"):
        opened.add(shop.square.job(2))
    shop.app.flows.retry("import-7")
    with shop.app.group("import-7", then=shop.total) as again:
        for number in (1, 2, 3):
            again.add(shop.square.job(number))
    run_all(shop.app)
    assert shop.seen == [[1, 4, 9]]


def test_a_producer_that_had_added_all_may_end_its_block_after_a_cancel(shop: Shop) -> None:
    with shop.app.group(then=shop.total, always=shop.clean) as opened:
        opened.add(shop.square.job(1))
        shop.app.flows.cancel(opened.id)
    run_all(shop.app)
    assert shop.seen == ["clean"]


def test_a_member_of_a_cancelled_group_adds_no_more(shop: Shop) -> None:
    reported: list[str] = []

    @shop.app.task
    def visit(ctx: Context) -> None:
        shop.app.flows.cancel(ctx.group.id)
        try:
            ctx.group.add(shop.square.job(1))
        except NotAllowedNow as error:
            reported.append(str(error))

    handle = group([visit.job()], always=shop.clean).enqueue()
    run_all(shop.app)
    assert len(reported) == 1
    assert "it is cancelled" in reported[0]
    assert shop.app.flows.get(handle).size == 1


async def test_what_a_member_adds_during_the_cancel_is_cancelled(shop: Shop, labour: Labour) -> None:
    handle = await group([shop.square.job(1)]).aenqueue()
    claimed = await labour.aclaim(await shop.app._ready())

    class Home:
        """The app, in which the group is cancelled before the next jobs are stored."""

        _ready, _returns = shop.app._ready, shop.app._returns

        async def _enqueue_jobs(self, *args: Any) -> Any:
            await shop.app.flows.acancel(handle)
            return await shop.app._enqueue_jobs(*args)

    home: Any = Home()
    with pytest.raises(NotAllowedNow, match="it is cancelled"):
        await OwnGroup(home, claimed, Counter(), awaits=True).aadd(shop.square.job(2))
    statuses = sorted(job.status for job in (await shop.app.jobs.alist(type="square")).items)
    assert statuses == [Status.CANCELLED, Status.RUNNING], "the first one is asked to stop"


async def test_on_dead_that_is_stored_after_the_cancel_does_not_run(shop: Shop) -> None:
    made = group([shop.square.job(1)], on_dead=shop.alert)
    jobs = list(made.jobs)
    late = [job for job in jobs if job.id == callback_id(made.id, Role.ON_DEAD) or job.id in _watchers(made.id)]
    await shop.app._enqueue_jobs([job for job in jobs if job not in late], [Any] * (len(jobs) - len(late)))
    await shop.app.flows.acancel(made.id)
    await shop.app._enqueue_jobs(late, [Any] * len(late))
    for id_ in _watchers(made.id):
        await shop.app.jobs.arun_now(id_)
    await arun_all(shop.app)
    assert shop.seen == []
    assert (await shop.app.jobs.aget(callback_id(made.id, Role.ON_DEAD))).status is Status.CANCELLED


def _watchers(group_id: str) -> list[str]:
    return [watcher_id(group_id, Role.ON_DEAD)]


def test_a_retried_member_of_a_cancelled_group_is_not_cancelled_again(shop: Shop) -> None:
    handle = group([shop.square.job(n) for n in range(3)]).enqueue()
    shop.app.flows.cancel(handle)
    assert _holds(shop.app, handle.id)
    shop.app.jobs.retry(handle.member(1))
    assert not _holds(shop.app, handle.id)
    shop.app.flows.cancel(handle)
    assert _holds(shop.app, handle.id)
    assert shop.app.jobs.retry_all(status="cancelled", type="square") == 3
    assert not _holds(shop.app, handle.id)


def _holds(app: App, flow: str) -> bool:
    async def read() -> bool:
        (found,) = await (await app._ready()).documents.get(KIND, [flow])
        return found is not None and '"holds":false' not in found.data.replace(" ", "")

    return app._portal().run(read())


def test_a_generator_whose_group_completed_may_be_enqueued_again_after_a_cancel(shop: Shop) -> None:
    def enqueue() -> Any:
        return group((shop.square.job(n) for n in range(3)), then=shop.total, id="import-7").enqueue()

    enqueue()
    run_all(shop.app)
    assert shop.app.flows.cancel("import-7").status is Status.COMPLETED
    assert enqueue().existing
    assert shop.seen == [[0, 1, 4]]


def test_a_whole_generator_whose_group_was_cancelled_may_be_enqueued_again(shop: Shop) -> None:
    def enqueue(size: int) -> Any:
        return group((shop.square.job(n) for n in range(size)), then=shop.total, id="import-7").enqueue()

    enqueue(3)
    shop.app.flows.cancel("import-7")
    assert enqueue(3).existing, "as a list"
    with pytest.raises(NotAllowedNow, match="it is sealed"):
        enqueue(4)
    assert live(shop.app) == 0


def test_the_members_of_a_producer_that_stood_still_for_long_are_cancelled(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The document of the cancel is dropped meanwhile."""
    opened = shop.app.group(then=shop.total)
    opened.add(shop.square.job(1))
    store = opened._store

    async def stopped(jobs: Any, parts: Any) -> Any:
        await shop.app.flows.acancel(opened.id)
        await (await shop.app._ready()).documents.delete(KIND, [opened.id])
        monkeypatch.setattr("windlass.client.groups.open_group.LONG", -1)
        return await store(jobs, parts)

    opened._store = stopped  # type: ignore[method-assign, assignment]
    with pytest.raises(NotAllowedNow, match="it is cancelled"):
        opened.add_many([shop.square.job(2), shop.square.job(3)])
    assert live(shop.app) == 0
