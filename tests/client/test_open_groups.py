"""Open and streamed groups: members are added while others run; the group ends when it is sealed."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from tests.client.test_groups import Shop
from windlass import App, Context, Dead, InvalidOption, NotAllowedNow, Results, Status, TaskJob, group
from windlass.client.groups import group as group_module
from windlass.client.groups import members, results, watch
from windlass.core.groups.ids import Role, watcher_id
from windlass.testing import run_all


@pytest.fixture
def shop(app: App) -> Shop:
    return Shop(app)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Portions and pages of a few members."""
    monkeypatch.setattr(group_module, "PORTION", 4)
    monkeypatch.setattr(members, "PAGE", 3)
    monkeypatch.setattr(results, "PAGE", 3)


def squares(shop: Shop, count: int, broken_at: int | None = None) -> Iterator[TaskJob[int]]:
    for number in range(count):
        if number == broken_at:
            raise OSError("the file ends")
        yield shop.square.job(number)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("count", [0, 3, 4, 5, 12])
def test_a_generator_of_any_length_is_stored_and_its_group_ends(shop: Shop, count: int) -> None:
    handle = group(squares(shop, count), then=shop.total).enqueue()
    assert (handle.size, shop.app.flows.get(handle).sealed) == (count, True)
    run_all(shop.app)
    assert handle.result(timeout=5) == sum(n * n for n in range(count))
    assert shop.seen == [[n * n for n in range(count)]]


@pytest.mark.usefixtures("small")
def test_members_of_a_generator_run_while_it_is_read(shop: Shop) -> None:
    stored: list[int] = []

    def watched() -> Iterator[TaskJob[int]]:
        for number in range(9):
            stored.append(sum(shop.app.stats.counts().totals.values()))
            yield shop.square.job(number)

    group(watched(), then=shop.total).enqueue()
    assert stored == [0, 0, 0, 0, 6, 6, 6, 6, 10]


@pytest.mark.usefixtures("small")
def test_a_producer_that_runs_again_with_the_same_id_goes_on(shop: Shop) -> None:
    with pytest.raises(OSError, match="the file ends"):
        group(squares(shop, 10, broken_at=6), then=shop.total, id="import-7").enqueue()
    run_all(shop.app)
    flow = shop.app.flows.get("import-7")
    assert (flow.status, flow.sealed, flow.completed) == (Status.SCHEDULED, False, 4)
    for _ in range(2):
        handle = group(squares(shop, 10), then=shop.total, id="import-7").enqueue()
        run_all(shop.app)
        assert handle.result(timeout=5) == sum(n * n for n in range(10))
    assert shop.seen == [[n * n for n in range(10)]]


@pytest.mark.usefixtures("small")
def test_a_streamed_group_that_is_enqueued_twice_is_stored_once(shop: Shop) -> None:
    made = group(squares(shop, 10), then=shop.total, id="import-7")
    first, again = made.enqueue(), made.enqueue()
    assert (first.id, first.size, first.existing) == (again.id, 10, False)
    assert (again.size, again.existing) == (10, True)
    run_all(shop.app)
    assert shop.seen == [[n * n for n in range(10)]]


@pytest.mark.usefixtures("small")
def test_a_streamed_group_that_was_interrupted_is_not_sealed_without_the_members_that_were_read(shop: Shop) -> None:
    made = group(squares(shop, 10, broken_at=6), then=shop.total, id="import-7")
    with pytest.raises(OSError, match="the file ends"):
        made.enqueue()
    with pytest.raises(InvalidOption, match=r"^jobs: is an iterator that a failed enqueue has partly read"):
        made.enqueue()
    assert not shop.app.flows.get("import-7").sealed
    group(squares(shop, 10), then=shop.total, id="import-7").enqueue()
    run_all(shop.app)
    assert shop.seen == [[n * n for n in range(10)]]


@pytest.mark.usefixtures("small")
def test_a_producer_that_fails_and_cannot_go_on_cancels_its_group(shop: Shop) -> None:
    with pytest.raises(OSError, match="the file ends"):
        group(squares(shop, 10, broken_at=6), then=shop.total, on_dead=shop.alert, always=shop.clean).enqueue()
    (flow,) = shop.app.flows.list()
    assert (flow.status, flow.reason) == (Status.CANCELLED, "abandoned")
    run_all(shop.app)
    assert shop.seen == ["clean"]


@pytest.mark.usefixtures("small")
def test_a_generator_that_fails_in_its_first_portion_stores_nothing(shop: Shop) -> None:
    with pytest.raises(OSError, match="the file ends"):
        group(squares(shop, 10, broken_at=3), then=shop.total, id="import-7").enqueue()
    assert sum(shop.app.stats.counts().totals.values()) == 0


def test_an_open_group_that_nothing_touches_is_abandoned(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = shop.app.group("import-7", then=shop.total, on_dead=shop.alert, always=shop.clean)
    opened.add(shop.square.job(3))
    run_all(shop.app)
    shop.app.jobs.run_now(opened.id)
    run_all(shop.app)
    assert shop.status(opened.id) is Status.SCHEDULED
    monkeypatch.setattr(watch, "ABANDONED_AFTER", 0)
    shop.app.jobs.run_now(opened.id)
    run_all(shop.app)
    assert (shop.find(opened.handle).reason or "").startswith("abandoned")
    assert sorted(shop.seen, key=str) == [("alert", []), "clean"]
    with pytest.raises(NotAllowedNow, match="it is sealed"):
        opened.add(shop.square.job(4))


def test_always_waits_for_live_members_of_an_abandoned_group(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = shop.app.group("import-7", then=shop.total, always=shop.clean)
    opened.add_many([shop.square.using(delay=3600).job(3), shop.square.job(4)])
    run_all(shop.app)
    monkeypatch.setattr(watch, "ABANDONED_AFTER", 0)
    for _ in range(2):
        shop.app.jobs.run_now(watcher_id(opened.id, Role.ALWAYS))
        run_all(shop.app)
    assert shop.seen == []
    shop.app.jobs.run_now(opened.handle.member(0))
    run_all(shop.app)
    assert shop.seen == ["clean"]
    assert (shop.find(opened.handle).reason or "").startswith("abandoned")


def test_a_retry_opens_an_abandoned_group_again(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = shop.app.group("import-7", then=shop.total)
    opened.add(shop.square.job(3))
    run_all(shop.app)
    with monkeypatch.context() as patch:
        patch.setattr(watch, "ABANDONED_AFTER", 0)
        shop.app.jobs.run_now(opened.id)
        run_all(shop.app)
    assert shop.status(opened.id) is Status.CANCELLED
    shop.app.flows.retry("import-7")
    with shop.app.group("import-7", then=shop.total) as again:
        again.add_many([shop.square.job(3), shop.square.job(4)])
    run_all(shop.app)
    assert shop.seen == [[9, 16]]


def test_a_group_that_has_fewer_members_than_it_needs_is_lost_when_they_have_ended(shop: Shop) -> None:
    with shop.app.group("import-7", then=shop.total, on_dead=shop.alert, need=3) as opened:
        opened.add_many([shop.square.job(1), shop.square.job(2)])
    run_all(shop.app)
    assert shop.seen == [("alert", [])]
    assert shop.find(opened.handle).reason == "it needs 3 completed members, and has 2"


@pytest.mark.usefixtures("small")
def test_a_slow_generator_stores_what_it_has_before_its_group_is_given_up(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_module, "TOUCH_SECONDS", 0)
    stored: list[int] = []

    def watched() -> Iterator[TaskJob[int]]:
        for number in range(7):
            stored.append(sum(shop.app.stats.counts().totals.values()))
            yield shop.square.job(number)

    handle = group(watched(), then=shop.total).enqueue()
    assert (handle.size, stored) == (7, [0, 0, 0, 0, 6, 7, 8])


def test_an_open_group_waits_for_its_seal_and_not_only_for_its_members(shop: Shop) -> None:
    with shop.app.group("import-7", then=shop.total, always=shop.clean) as opened:
        opened.add(shop.square.job(3))
        run_all(shop.app)
        shop.app.jobs.run_now(opened.id)
        run_all(shop.app)
        assert (shop.status(opened.id), shop.seen) == (Status.SCHEDULED, [])
        assert "may add more until it seals the group" in str(shop.app.jobs.why(opened.id).reasons)
    run_all(shop.app)
    assert sorted(shop.seen, key=str) == [[9], "clean"]


def test_a_group_that_is_sealed_after_its_last_member_ended_ends_at_once(shop: Shop) -> None:
    with shop.app.group(then=shop.total) as opened:
        opened.add_many([shop.square.job(n) for n in range(3)])
        run_all(shop.app)
    run_all(shop.app)
    assert opened.handle.result(timeout=5) == 5


def test_an_open_group_without_members_runs_then(shop: Shop) -> None:
    with shop.app.group("empty", then=shop.total):
        pass
    run_all(shop.app)
    assert shop.seen == [[]]
    with pytest.raises(InvalidOption, match="has no members and no callback"), shop.app.group():
        pass


def test_nothing_is_added_to_a_group_that_is_over(shop: Shop) -> None:
    with shop.app.group("import-7", then=shop.total) as opened:
        opened.add(shop.square.job(3))
    run_all(shop.app)
    with pytest.raises(NotAllowedNow, match=f"cannot add a member to job {opened.id}: it is sealed"):
        opened.add(shop.square.job(4))
    with shop.app.group("import-7", then=shop.total) as again:
        assert again.add(shop.square.job(3)).existing
        assert again.existing
    with pytest.raises(NotAllowedNow, match="it is sealed"), shop.app.group("import-7", then=shop.total) as more:
        more.add_many([shop.square.job(3), shop.square.job(4)])
    run_all(shop.app)
    assert shop.seen == [[9]]


def test_a_lost_open_group_still_takes_members_unless_it_cancels_the_rest(shop: Shop) -> None:
    with shop.app.group("finish", on_dead=shop.alert) as opened:
        opened.add(shop.fail.job())
        run_all(shop.app)
        assert shop.status(opened.id) is Status.CANCELLED
        later = opened.add(shop.square.job(3))
    run_all(shop.app)
    assert later.result(timeout=5) == 9
    other = shop.app.group("cancel", rest="cancel")
    other.add(shop.fail.job())
    run_all(shop.app)
    with pytest.raises(NotAllowedNow, match="it is cancelled"):
        other.add(shop.square.job(3))


def test_a_share_of_an_open_group_is_counted_when_it_is_sealed(shop: Shop) -> None:
    with shop.app.group("import-7", then=shop.total, on_dead=shop.alert, need="50%") as opened:
        opened.add(shop.fail.job())
        run_all(shop.app)
        shop.app.jobs.run_now(opened.id)
        run_all(shop.app)
        assert shop.status(opened.id) is Status.SCHEDULED
        opened.add(shop.square.job(3))
    run_all(shop.app)
    assert shop.seen == [[9]]


def test_async_blocks_add_members_too(app: App) -> None:
    @app.task
    async def load(page: int) -> int:
        return page

    @app.task
    async def total(parts: Results[int]) -> int:
        return sum([each async for each in parts])

    async def work() -> int:
        async with app.worker():
            async with app.group(then=total) as opened:
                for page in range(5):
                    await opened.aadd(load.job(page))
            return await opened.handle.aresult(timeout=30)

    assert asyncio.run(work()) == 10


class Tree:
    """Tasks that add members to their group; each node of a tree adds two below it."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.failed = False
        tree = self

        @app.task
        def grow(ctx: Context, depth: int, queue: str = "default") -> int:
            if depth:
                child = grow.using(queue=queue).job(depth - 1, queue)
                ctx.group.add(child, child)
            return 1

        @app.task(max_attempts=2)
        async def grow_twice(ctx: Context) -> int:
            await ctx.group.add(grow.job(0), grow.job(0))
            if not tree.failed:
                tree.failed = True
                raise OSError("once")
            await ctx.group.add(grow.job(1))
            return 1

        @app.task
        def doom(ctx: Context) -> int:
            ctx.group.add(dead.job())
            return 1

        @app.task
        def dead() -> int:
            raise Dead("hopeless")

        @app.task
        def total(parts: Results[int]) -> int:
            return sum(parts)

        self.grow, self.grow_twice, self.doom, self.total = grow, grow_twice, doom, total
        self.dead = dead


def test_members_add_members_and_the_group_ends_after_all_of_them(app: App) -> None:
    tree = Tree(app)
    handle = group([tree.grow.job(3), tree.grow.job(0)], then=tree.total).enqueue()
    run_all(app)
    assert handle.result(timeout=5) == 16
    flow = app.flows.get(handle)
    assert (flow.size, flow.completed, flow.status) == (16, 16, Status.COMPLETED)


def test_members_add_members_in_other_queues(app: App) -> None:
    tree = Tree(app)
    handle = group([tree.grow.job(3, "q1"), tree.grow.using(queue="q0").job(2, "q2")], then=tree.total).enqueue()
    run_all(app)
    assert handle.result(timeout=5) == 22


def test_an_attempt_that_runs_again_adds_its_members_once(app: App) -> None:
    tree = Tree(app)
    handle = group([tree.grow_twice.job()], then=tree.total).enqueue()
    run_all(app)
    app.jobs.run_now(handle.member(0))
    run_all(app)
    assert handle.result(timeout=5) == 6


def test_a_lost_member_that_a_member_added_loses_the_group(app: App) -> None:
    tree = Tree(app)
    handle = group([tree.doom.job()], then=tree.total).enqueue()
    run_all(app)
    assert "is dead (added by a member)" in (app.jobs.get(handle.id).reason or "")
    enough = group([tree.doom.job(), tree.grow.job(0)], then=tree.total, need="60%").enqueue()
    run_all(app)
    assert enough.result(timeout=5) == 2


def test_a_share_of_a_group_that_members_add_to_is_counted_when_all_have_ended(app: App) -> None:
    tree = Tree(app)

    @app.task
    async def seed(ctx: Context) -> int:
        late = tree.grow.using(delay=3600).job(0)
        await ctx.group.add(tree.dead.job(), late, *(tree.grow.job(0) for _ in range(8)))
        return 1

    handle = group([seed.job()], then=tree.total, need="80%").enqueue()
    run_all(app)
    app.jobs.run_now(handle.id)
    run_all(app)
    assert app.jobs.get(handle.id).status is Status.SCHEDULED
    (late,) = app.jobs.list(type="grow", status="scheduled")
    app.jobs.run_now(late.id)
    run_all(app)
    assert handle.result(timeout=5) == 10


def test_lost_members_of_both_kinds_count_against_what_a_group_needs(app: App) -> None:
    tree = Tree(app)
    with app.group("import-7", then=tree.total, need=5) as opened:
        opened.add_many([tree.dead.job(), tree.dead.job(), tree.grow.job(1), tree.doom.job()])
    run_all(app)
    assert app.jobs.get(opened.id).status is Status.CANCELLED


def test_what_a_member_cannot_add_is_refused(app: App) -> None:
    seen: list[str] = []

    @app.task
    def wrong(ctx: Context) -> None:
        jobs: list[Any] = [wrong, wrong.using(idempotency_key="k").job(), wrong.using(parent=ctx.job.id).job()]
        jobs.append(wrong.using(connection=object()).job())
        for job in jobs:
            try:
                ctx.group.add(job)
            except InvalidOption as error:
                seen.append(str(error))

    group([wrong.job()]).enqueue()
    run_all(app)
    assert [each.split(":")[0] for each in seen] == [
        *("jobs[0]", "jobs[0].idempotency_key", "jobs[0]", "jobs[0].connection"),
    ]
