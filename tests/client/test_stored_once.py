"""A flow with a name that is over is not stored again, although its jobs may be dropped already."""

from typing import Any

import pytest

from tests.client import test_graphs as graphs
from tests.client import test_groups as groups
from windlass import App, group
from windlass.testing import run_all


@pytest.mark.parametrize("kind", [list, iter])
def test_members_that_were_dropped_do_not_run_again_when_their_group_is_enqueued_again(kind: Any) -> None:
    shop = groups.Shop(App.testing())
    ran: list[int] = []

    @shop.app.task
    def noted(number: int) -> int:
        ran.append(number)
        return number

    shop.app.queues.add("long")
    shop.app.queues.set("long", retention={"completed": 90 * 86_400})
    for existing in (False, True):
        jobs = kind([noted.job(number) for number in range(3)])
        handle = group(jobs, then=shop.total.using(queue="long").link(), rest="cancel", id="import-7").enqueue()
        assert handle.existing is existing
        run_all(shop.app)
        assert handle.result(timeout=5) == 3
        shop.app.clock.advance(days=40)
        shop.app._portal().run(prune(shop.app))
    assert ran == [0, 1, 2]


async def prune(app: App) -> None:
    operator = (await app._ready()).operator
    while await operator.prune(1000):
        pass


def test_nodes_that_were_dropped_do_not_run_again_when_their_flow_is_stored_again() -> None:
    shop = graphs.Shop(App.testing())
    shop.app.queues.add("long")
    shop.app.queues.set("long", retention={"completed": 90 * 86_400})
    for _ in range(2):
        with shop.app.flow("order") as flow:
            first = flow.add(shop.double.using(queue="long").job(1))
            flow.add(shop.step.job("pay"), after=[first])
        run_all(shop.app)
        shop.app.clock.advance(days=40)
        shop.app._portal().run(prune(shop.app))
    assert flow.handle.existing
    assert shop.ran == ["pay"]
