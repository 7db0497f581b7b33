"""Graphs with real workers: nodes in several queues, conditions, a map, and a runner that is killed."""

import shutil

import pytest

from tests.e2e.stage import SHOP, Stage
from tests.support.addresses import on_every_store
from windlass import App, FlowHandle


@pytest.fixture
def graphed(stage: Stage) -> Stage:
    """A stage with the app of this file's tests."""
    shutil.copy(SHOP.with_name("graphed.py"), stage.folder / "graphed.py")
    return stage


def make_tasks(app: App) -> None:
    """The tasks of the app of this file's tests, as a producer declares them."""

    @app.task(queue="money")
    def pay(amount: int) -> int:
        return amount

    @app.task(queue="goods")
    def items(paid: int) -> list[int]:
        return []

    @app.task(queue="goods")
    def pick(item: int) -> int:
        return item

    @app.task
    def ship(parts: list[int]) -> int:
        return 0

    @app.task(queue="money")
    def refund() -> None: ...

    @app.task
    def clean() -> None: ...


def order(app: App, amount: int) -> FlowHandle[None]:
    """Pay, then pick each item, then ship; refund if that fails, clean up anyway."""
    tasks = app.tasks
    with app.flow(f"order {amount}") as flow:
        paid = flow.add(tasks["pay"].job(amount), name="pay")
        listed = flow.add(tasks["items"].job(paid.result), name="items")
        picked = flow.map(tasks["pick"], over=listed.result, name="pick")
        shipped = flow.add(tasks["ship"].job(picked.result), name="ship")
        refunded = flow.add(tasks["refund"].job(), after=[paid, picked, shipped], when="dead")
        flow.add(tasks["clean"].job(), after=[shipped, refunded], when="ended")
    return flow.handle


def notes(stage: Stage) -> list[str]:
    return (stage.folder / "notes").read_text().splitlines()


@on_every_store
def test_a_graph_over_several_queues_runs_each_node_once_through_a_kill(graphed: Stage) -> None:
    graphed.worker("--processes", "2", app="graphed:app", environment={"KILL_AT": "ship"})
    make_tasks(graphed.app)
    good, bad = order(graphed.app, 10), order(graphed.app, -1)
    assert good.node("ship").result(timeout=60) == 285
    good.result(timeout=60)
    graphed.until_finished()
    assert (graphed.folder / "killed").exists(), "nothing was killed: this test does not test what it says"
    assert sorted(notes(graphed)) == ["clean", "clean", "refund", "ship 285"]
    assert graphed.app.flows.get(bad.id).status == "cancelled"
    shown = graphed.command("flows", "show", "order 10", "--store", graphed.url)
    assert "└─ ✔ items completed" in shown
    assert "✔ ship completed" in shown
    graphed.close_down()
