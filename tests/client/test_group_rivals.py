"""Bugs of other designs of groups, flows and maps that no other test here shows; decision 0089 lists all."""

from typing import Any

import pytest

from tests.client.test_groups import Shop
from windlass import App, Context, Fixed, InvalidOption, KeyConflict, group
from windlass.client.graphs import map as map_module
from windlass.testing import run_all


@pytest.fixture
def shop(app: App) -> Shop:
    return Shop(app)


def test_an_attempt_that_adds_other_jobs_in_another_order_gets_the_handle_of_each(app: App) -> None:
    added: list[dict[int, str]] = []

    @app.task
    def leaf(number: int) -> int:
        return number

    @app.task(retry=Fixed(base=0, jitter=0))
    async def grow(ctx: Context) -> int:
        numbers = [3, 2, 1] if added else [1, 2]
        handles = await ctx.group.add(*(leaf.job(number) for number in numbers))
        added.append({number: handle.id for number, handle in zip(numbers, handles, strict=True)})
        if len(added) == 1:
            raise OSError("again")
        return 0

    @app.task
    def total(parts: list[int]) -> list[int]:
        return sorted(parts)

    handle = group([grow.job()], then=total).enqueue()
    run_all(app)
    first, second = added
    assert [app.jobs.get(second[number]).payload for number in (1, 2, 3)] == [{"number": n} for n in (1, 2, 3)]
    assert {number: second[number] for number in first} == first
    assert handle.result(timeout=5) == [0, 1, 2, 3]


def test_a_flow_whose_nodes_have_exchanged_their_places_is_refused(shop: Shop) -> None:
    def enqueue(names: str) -> None:
        with shop.app.flow("order") as flow:
            for name in names:
                flow.add(shop.square.job(ord(name)), name=name)

    enqueue("ab")
    enqueue("ab")
    with pytest.raises(InvalidOption, match="there is a flow 'order' with other nodes"):
        enqueue("ba")
    assert shop.app.jobs.count(type="square") == 2


@pytest.mark.parametrize("nodes", [1, 2])
def test_a_key_that_is_taken_refuses_the_whole_flow_and_no_node_waits_for_it(shop: Shop, nodes: int) -> None:
    """One node with the key of a job that is stored, or two nodes with the same key."""
    keyed = shop.square.using(idempotency_key="user:7")
    if nodes == 1:
        keyed.enqueue(7)
    before = shop.app.stats.counts().totals

    def enqueue() -> None:
        with shop.app.flow("order") as flow:
            made = [flow.add(keyed.job(number)) for number in range(nodes)]
            flow.add(shop.sweep.job("after"), after=made)

    with pytest.raises(KeyConflict, match="user:7"):
        enqueue()
    assert shop.app.stats.counts().totals == before


def test_members_of_a_map_are_stored_once_and_in_portions(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    enqueue, sizes = app._enqueue_jobs, list[int]()

    @app.task
    def numbers() -> list[int]:
        return list(range(25))

    @app.task
    def double(number: int) -> int:
        return 2 * number

    @app.task
    def add_up(parts: list[int]) -> int:
        return sum(parts)

    async def counted(jobs: Any, *more: Any) -> Any:
        sizes.append(len(jobs))
        return await enqueue(jobs, *more)

    with app.flow("wide") as flow:
        doubled = flow.map(double, over=flow.add(numbers.job()).result)
        flow.add(add_up.job(doubled.result), name="sum")
    monkeypatch.setattr(map_module, "PORTION", 10)
    monkeypatch.setattr(app, "_enqueue_jobs", counted)
    run_all(app)
    assert sizes == [10, 10, 5]
    assert flow.handle.node("sum").result(timeout=5) == 600
