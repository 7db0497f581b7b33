"""Adds to an open group whose outcome is unknown: their members are stored once, and take no index of another."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.client.test_groups import Shop
from windlass import (
    App,
    EnqueueFailed,
    EnqueueUnknown,
    InvalidOption,
    KeyConflict,
    QueueClosed,
    Status,
    StoreUnavailable,
    chain,
)
from windlass.core.groups.ids import member_id
from windlass.testing import arun_all, run_all

Failing = Callable[..., None]


@pytest.fixture
def shop(app: App) -> Shop:
    return Shop(app)


@pytest.fixture
def fail_next(monkeypatch: pytest.MonkeyPatch) -> Failing:
    """Let the next enqueues raise, after they have stored their jobs or before."""
    enqueue, planned = App._enqueue_jobs, list[tuple[BaseException | None, bool]]()

    async def failing(self: App, jobs: list[Any], *rest: Any) -> Any:
        error, stores = planned.pop(0) if planned else (None, True)
        handles = await enqueue(self, jobs, *rest) if stores else []
        if error is not None:
            raise error
        return handles

    monkeypatch.setattr(App, "_enqueue_jobs", failing)

    def plan(*errors: BaseException | None, stores: bool = True) -> None:
        planned[:] = [(error, stores) for error in errors]

    return plan


def unknown() -> EnqueueUnknown:
    return EnqueueUnknown(["an-id"], "the answer is lost")


@pytest.mark.parametrize("stores", [True, False])
@pytest.mark.parametrize("name", ["import-7", None])
def test_another_add_after_an_unknown_one_takes_the_next_index(
    shop: Shop, fail_next: Failing, name: str | None, stores: bool
) -> None:
    with shop.app.group(name, then=shop.total) as opened:
        opened.add(shop.square.job(1))
        fail_next(unknown(), stores=stores)
        with pytest.raises(EnqueueUnknown):
            opened.add(shop.square.job(2))
        assert opened.add(shop.square.job(3)).id == member_id(opened.id, 2)
    assert opened.size == 3
    run_all(shop.app)
    assert shop.seen == [[1, 4, 9]]


@pytest.mark.parametrize("stores", [True, False])
def test_an_unknown_first_add_is_stored_with_its_group(shop: Shop, fail_next: Failing, stores: bool) -> None:
    with shop.app.group(then=shop.total) as opened:
        fail_next(unknown(), stores=stores)
        with pytest.raises(EnqueueUnknown):
            opened.add_many([shop.square.job(1), shop.square.job(2)])
        opened.add_many([shop.square.job(1), shop.square.job(3)])
    run_all(shop.app)
    assert shop.seen == [[1, 4, 1, 9]]


@pytest.mark.parametrize("stores", [True, False])
def test_the_same_call_again_adds_its_members_once(shop: Shop, fail_next: Failing, stores: bool) -> None:
    def made() -> list[Any]:
        keyed = shop.square.using(idempotency_key="three", priority=2).job(3)
        return [shop.square.using(priority=5).job(2), keyed, chain(shop.square.job(2), shop.square)]

    with shop.app.group("import-7", then=shop.total) as opened:
        opened.add(shop.square.job(1))
        fail_next(unknown(), EnqueueFailed("away"), stores=stores)
        with pytest.raises(EnqueueUnknown):
            opened.add_many(made())
        with pytest.raises(EnqueueFailed):
            opened.add_many(made())
        opened.add_many(made())
        opened.add(shop.square.job(5))
    assert opened.size == 5
    run_all(shop.app)
    assert shop.seen == [[1, 4, 9, 16, 25]]


@pytest.mark.parametrize("options", [{"priority": 5}, {"delay": 0.001}, {"idempotency_key": "two"}])
def test_a_job_with_other_options_is_another_member(shop: Shop, fail_next: Failing, options: dict[str, Any]) -> None:
    with shop.app.group(then=shop.stream) as opened:
        fail_next(unknown())
        with pytest.raises(EnqueueUnknown):
            opened.add(shop.square.job(2))
        opened.add(shop.square.using(**options).job(2))
    assert opened.size == 2


@pytest.mark.parametrize("stores", [True, False])
def test_the_end_of_the_block_stores_an_unknown_add(shop: Shop, fail_next: Failing, stores: bool) -> None:
    with shop.app.group("import-7", then=shop.total) as opened:
        fail_next(unknown(), stores=stores)
        with pytest.raises(EnqueueUnknown):
            opened.add(shop.square.job(2))
    assert opened.size == 1
    run_all(shop.app)
    assert shop.seen == [[4]]


def test_an_add_after_an_unknown_one_that_stays_unknown_stores_nothing(shop: Shop, fail_next: Failing) -> None:
    with shop.app.group(then=shop.total) as opened:
        fail_next(unknown(), unknown())
        with pytest.raises(EnqueueUnknown):
            opened.add(shop.square.job(2))
        with pytest.raises(EnqueueFailed, match=r"^nothing was stored"):
            opened.add(shop.square.job(3))
        with pytest.raises(InvalidOption, match=r"^jobs\[0\]: must be a job"):
            opened.add(3)  # type: ignore[arg-type]
        opened.add(shop.square.job(4))
    run_all(shop.app)
    assert shop.seen == [[4, 16]]


def test_a_key_that_is_taken_since_an_unknown_add_does_not_keep_the_group_open(
    shop: Shop, fail_next: Failing
) -> None:
    taken = shop.square.using(idempotency_key="two", on_conflict="raise")
    with shop.app.group(then=shop.total) as opened:
        opened.add(shop.square.job(1))
        fail_next(unknown(), stores=False)
        with pytest.raises(EnqueueUnknown):
            opened.add(taken.job(2))
        shop.square.using(idempotency_key="two").enqueue(7)
        with pytest.raises(KeyConflict):
            opened.add(shop.square.job(3))
        opened.add(shop.square.job(4))
    run_all(shop.app)
    assert shop.seen == [[1, 16]]


@pytest.mark.parametrize("first", [True, False])
async def test_a_cancelled_add_is_stored_before_the_next(shop: Shop, first: bool, monkeypatch: Any) -> None:
    enqueue, reached = App._enqueue_jobs, asyncio.Event()

    async def slow(self: App, jobs: list[Any], *rest: Any) -> Any:
        await enqueue(self, jobs, *rest)
        reached.set()
        await asyncio.sleep(60)

    async with shop.app.group("import-7", then=shop.total) as opened:
        if not first:
            await opened.aadd(shop.square.job(1))
        with monkeypatch.context() as patch:
            patch.setattr(App, "_enqueue_jobs", slow)
            adding = asyncio.create_task(opened.aadd(shop.square.job(2)))
            await reached.wait()
            adding.cancel()
            with pytest.raises(asyncio.CancelledError):
                await adding
        await opened.aadd(shop.square.job(3))
    await arun_all(shop.app)
    assert shop.seen == [[4, 9] if first else [1, 4, 9]]
    await shop.app.aclose()


async def test_adds_that_are_cancelled_at_any_moment_lose_no_member(shop: Shop) -> None:
    added = list[int]()
    async with shop.app.group("import-7", then=shop.total) as opened:
        for number in range(40):
            try:
                await asyncio.wait_for(opened.aadd(shop.square.job(number)), number * 0.0002)
            except TimeoutError:
                continue
            added.append(number * number)
    await arun_all(shop.app)
    (parts,) = shop.seen
    assert len(parts) == len(set(parts)) == opened.size
    assert set(added) <= set(parts) <= {n * n for n in range(40)}
    await shop.app.aclose()


@pytest.mark.parametrize("stores", [True, False])
def test_a_block_that_ends_with_an_unknown_first_add_cancels_its_group(
    shop: Shop, fail_next: Failing, stores: bool
) -> None:
    fail_next(unknown(), stores=stores)
    with pytest.raises(EnqueueUnknown), shop.app.group(then=shop.total, always=shop.clean) as opened:
        opened.add(shop.square.job(2))
    run_all(shop.app)
    assert shop.seen == (["clean"] if stores else [])
    if stores:
        assert (shop.status(opened.id), shop.find(opened.handle).reason) == (Status.CANCELLED, "abandoned")


def test_the_error_of_a_block_is_raised_also_if_its_group_cannot_be_cancelled(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object, **__: object) -> Any:
        raise StoreUnavailable("the store is away")

    def broken() -> Any:
        monkeypatch.setattr(type(shop.app.flows), "acancel", away)
        raise OSError("the file ends")

    with pytest.raises(OSError, match="the file ends"), shop.app.group(then=shop.total) as opened:
        opened.add_many([shop.square.job(2)]) and broken()


@pytest.mark.parametrize("at", ["add", "end"])
def test_a_queue_that_is_closed_since_an_unknown_add_does_not_keep_the_group_open(
    shop: Shop, fail_next: Failing, at: str
) -> None:
    shop.app.queues.add("mail")
    opened = shop.app.group("import-7", then=shop.total)
    opened.add(shop.square.job(1))
    fail_next(unknown(), stores=False)
    with pytest.raises(EnqueueUnknown):
        opened.add(shop.square.using(queue="mail").job(2))
    shop.app.queues.close("mail")
    with pytest.raises(QueueClosed):
        opened.add(shop.square.job(3)) if at == "add" else opened.seal()
    if at == "add":
        opened.add(shop.square.job(3))
        opened.seal()
    run_all(shop.app)
    assert shop.seen == [[1, 9] if at == "add" else [1]]


def test_an_enqueue_that_fails_at_the_end_of_a_block_does_not_replace_its_error(
    shop: Shop, fail_next: Failing
) -> None:
    fail_next(unknown(), EnqueueFailed("the store is away"))
    with pytest.raises(EnqueueUnknown, match="the answer is lost"), shop.app.group(then=shop.total) as opened:
        opened.add(shop.square.job(1))
