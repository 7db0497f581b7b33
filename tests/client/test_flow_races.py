"""Flows while others act on them: a parent is retried, another producer takes the name, a node is lost."""

from typing import Any

import pytest

from tests.client.labour import Labour
from windlass import App, Dead, InvalidOption, Status, group
from windlass.client.tasks.task import Task
from windlass.core.graphs.ids import join_id
from windlass.testing import run_all


class Steps:
    """An app with a task that notes what ran; those in `broken` die."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.ran: list[str] = []
        self.broken: set[str] = set()

        @app.task
        def step(name: str) -> str:
            self.ran.append(name)
            if name in self.broken:
                raise Dead("broken")
            return name

        self.step: Task[[str], str, str] = step


@pytest.fixture
def steps(app: App) -> Steps:
    return Steps(app)


@pytest.mark.parametrize("many", [0, 101])
def test_a_node_that_waits_for_ends_waits_again_for_a_lost_node_that_is_retried(steps: Steps, many: int) -> None:
    app, steps.broken = steps.app, {"pay"}
    with app.flow("order") as flow:
        pay = flow.add(steps.step.using(queue="slow").job("pay"), name="pay")
        late = flow.add(steps.step.using(delay=3600).job("late"), name="late")
        others = [flow.add(steps.step.job(f"other {n}")) for n in range(many)]
        clean = flow.add(steps.step.job("clean"), name="clean", after=[pay, late, *others], when="ended")
    run_all(app)
    assert app.jobs.get(pay.id).status is Status.DEAD
    steps.broken = set()
    app.queues.pause("slow")
    app.flows.retry("order")
    app.jobs.run_now(late.id)
    run_all(app)
    assert (app.jobs.get(pay.id).status, "clean" in steps.ran) == (Status.PENDING, False)
    app.queues.resume("slow")
    run_all(app)
    app.jobs.run_now(join_id(flow.id, clean.number, 0))
    run_all(app)
    assert steps.ran[-2:] == ["pay", "clean"]


def test_the_reason_of_a_lost_graph_names_its_node_and_leads_to_it(steps: Steps) -> None:
    app, steps.broken = steps.app, {"pay"}
    with app.flow("order") as flow:
        pay = flow.add(steps.step.job("pay"), name="pay")
        flow.add(steps.step.job("ship"), name="ship", after=[pay])
    run_all(app)
    found = app.flows.get("order")
    assert (found.reason or "").startswith(f"its node {pay.id} (pay) is dead")
    (reason,) = app.jobs.why(flow.id).reasons
    assert reason.jobs == (pay.id,)
    assert f"windlass flows retry {flow.id}" in (reason.do or "")


def test_a_member_can_be_cancelled_while_its_group_runs(steps: Steps, labour: Labour) -> None:
    app = steps.app
    handle = group([steps.step.job("a"), steps.step.job("b")]).enqueue()
    app.jobs.run_now(handle.id)
    app._portal().run(claim(app, labour))
    assert app.jobs.get(handle.id).status is Status.RUNNING
    assert app.jobs.cancel(handle.member(0).id).status is Status.CANCELLED


async def claim(app: App, labour: Labour) -> None:
    await labour.aclaim(await app._ready())


async def after_its_look(late: Any, first: Any) -> None:
    """The late producer looks for the name, the first one stores, and then the late one."""
    look = late._check_same

    async def looked(*args: object) -> bool:
        found: bool = await look(*args)
        late._check_same = look
        await first.aenqueue()
        return found

    late._check_same = looked
    await late.aenqueue()


async def test_a_second_producer_at_the_same_moment_gets_an_error_about_another_group(steps: Steps) -> None:
    first = group([steps.step.job("a")], id="import-7")
    larger = group([steps.step.job("a"), steps.step.job("b")], id="import-7")
    opened = steps.app.group("import-7")
    frame = await opened._begin(await steps.app._ready(), [steps.step.job("c")])
    with pytest.raises(InvalidOption, match="with 1 members, not 2"):
        await after_its_look(larger, first)
    with pytest.raises(InvalidOption, match="never open"):
        await opened._store(frame)


async def test_a_second_producer_at_the_same_moment_gets_an_error_about_another_graph(steps: Steps) -> None:
    first, other = steps.app.flow("order"), steps.app.flow("order")
    first.add(steps.step.job("a"))
    other.add(steps.step.job("a"))
    other.add(steps.step.job("b"))
    with pytest.raises(InvalidOption, match="with other nodes"):
        await after_its_look(other, first)
