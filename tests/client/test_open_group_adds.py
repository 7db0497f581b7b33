"""Adds to an open group: at once from tasks and threads, by a later producer, repeated by an attempt."""

import asyncio
import threading
from typing import Any

import pytest

from tests.client.test_groups import Shop
from windlass import App, Context, EnqueueFailed, InvalidOption, Results, Status, UseAsync, current_context, group
from windlass.client.groups import watch
from windlass.client.groups.opening import read_opening
from windlass.core.groups.rules import ABANDONED_AFTER
from windlass.testing import arun_all, run_all


@pytest.fixture
def shop(app: App) -> Shop:
    return Shop(app)


async def test_members_that_tasks_add_at_once_are_all_stored_in_the_order_of_the_calls(shop: Shop) -> None:
    async with shop.app.group("import-7", then=shop.total) as opened:
        handles = await asyncio.gather(*(opened.aadd(shop.square.job(n)) for n in range(5)))
    assert [handle.id for handle in handles] == [opened.handle.member(n).id for n in range(5)]
    await arun_all(shop.app)
    assert shop.seen == [[0, 1, 4, 9, 16]]
    await shop.app.aclose()


def test_members_that_threads_add_at_once_are_all_stored(shop: Shop) -> None:
    begin = threading.Barrier(4)
    with shop.app.group(then=shop.total) as opened:

        def add(number: int) -> None:
            begin.wait()
            opened.add(shop.square.job(number))

        threads = [threading.Thread(target=add, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    run_all(shop.app)
    assert [sorted(parts) for parts in shop.seen] == [[0, 1, 4, 9]]


def test_members_that_event_loops_of_threads_add_at_once_are_all_stored(shop: Shop) -> None:
    begin, wrong = threading.Barrier(3), list[BaseException]()
    opened = shop.app.group(then=shop.total)

    async def add_some(first: int) -> None:
        async with asyncio.timeout(30):
            await asyncio.gather(*(opened.aadd(shop.square.job(first + n)) for n in range(4)))

    def add(first: int) -> None:
        begin.wait()
        try:
            asyncio.run(add_some(first))
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=add, args=(4 * n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    opened.seal()
    run_all(shop.app)
    assert [sorted(parts) for parts in shop.seen] == [[n * n for n in range(12)]]


async def test_an_add_that_fails_leaves_its_index_to_the_next(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    async with shop.app.group("import-7", then=shop.total) as opened:
        await opened.aadd(shop.square.job(1))
        with monkeypatch.context() as patch:
            patch.setattr(type(shop.app), "_enqueue_jobs", failing)
            added = await asyncio.gather(*(opened.aadd(shop.square.job(n)) for n in (2, 3)), return_exceptions=True)
        assert [type(each) for each in added] == [EnqueueFailed, EnqueueFailed]
        await opened.aadd(shop.square.job(4))
    assert opened.size == 2
    await arun_all(shop.app)
    assert shop.seen == [[1, 16]]
    await shop.app.aclose()


def test_a_member_is_not_added_in_the_transaction_of_its_job(shop: Shop) -> None:
    with shop.app.group("import-7", then=shop.total) as opened:
        for number in range(2):
            with pytest.raises(InvalidOption, match=rf"^jobs\[{number}\]\.connection: cannot be given"):
                opened.add(shop.square.using(connection=object()).job(7))
            opened.add(shop.square.job(number))
    run_all(shop.app)
    assert shop.seen == [[0, 1]]


async def failing(*_: Any, **__: Any) -> Any:
    raise EnqueueFailed("nothing was stored")


def test_a_producer_that_continues_a_group_touches_it_with_its_first_member(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.app.group("import-7", then=shop.total).add(shop.square.job(1))
    again = shop.app.group("import-7", then=shop.total)

    async def touched() -> int:
        opening = await read_opening(await shop.app._ready(), again.id)
        assert opening is not None
        return opening.touched

    before = shop.app._portal().run(touched())
    again.add_many([shop.square.job(1), shop.square.job(2)])
    after = shop.app._portal().run(touched())
    assert after > before
    run_all(shop.app)
    # Silent for longer than this since the first producer, and for a shorter time since the second.
    monkeypatch.setattr(watch, "_claimed_at", lambda job: before + ABANDONED_AFTER)
    shop.app.jobs.run_now(again.id)
    run_all(shop.app)
    assert shop.status(again.id) is Status.SCHEDULED


async def test_a_blocking_block_is_refused_on_an_event_loop_before_anything_is_stored(shop: Shop) -> None:
    with (
        pytest.raises(UseAsync, match=r"^with app\.group\(\.\.\.\) blocks .* use `async with app\.group\(\.\.\.\)`$"),
        shop.app.group("import-7", then=shop.total) as opened,
    ):
        await opened.aadd(shop.square.job(1))
    assert (await shop.app.stats.acounts()).totals.get(Status.PENDING, 0) == 0
    await shop.app.aclose()


def test_an_attempt_that_repeats_a_failed_add_adds_one_member(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    enqueue, calls = type(app)._enqueue_jobs, list[int]()

    async def lost_answer(self: App, jobs: Any, *rest: Any) -> Any:
        handles = await enqueue(self, jobs, *rest)
        calls.append(len(jobs))
        if len(calls) == 1:
            raise EnqueueFailed("the answer is lost")
        return handles

    @app.task
    def leaf(number: int) -> int:
        return number

    @app.task
    def grow(ctx: Context) -> int:
        for _ in range(2):
            try:
                ctx.group.add(leaf.job(1), leaf.job(1))
                break
            except EnqueueFailed:
                continue
        return 0

    @app.task
    def total(parts: list[int]) -> list[int]:
        return sorted(parts)

    handle = group([grow.job()], then=total).enqueue()
    monkeypatch.setattr(type(app), "_enqueue_jobs", lost_answer)
    run_all(app)
    assert calls == [2, 2]
    assert handle.result(timeout=5) == [0, 1, 1]


def test_equal_jobs_that_are_added_through_the_current_context_are_as_many_members(app: App) -> None:
    tries: list[int] = []

    @app.task(max_attempts=2)
    async def seed() -> int:
        await current_context().group.add(leaf.job())
        await current_context().group.add(leaf.job())
        tries.append(1)
        if len(tries) == 1:
            raise OSError("once")
        return 1

    @app.task
    def leaf() -> int:
        return 1

    @app.task
    def total(parts: Results[int]) -> int:
        return sum(parts)

    handle = group([seed.job()], then=total).enqueue()
    run_all(app)
    app.jobs.run_now(handle.member(0))
    run_all(app)
    assert len(tries) == 2
    assert handle.result(timeout=5) == 3
