"""Whether all jobs of a large graph have completed, by one count."""

import pytest

from tests.support.key_queues import take
from tests.support.seed import completed, dead, new_job
from windlass.client.graphs import members
from windlass.client.graphs.members import have_all_completed
from windlass.core.graphs.ids import join_id, node_id
from windlass.core.groups.ids import Role, callback_id, new_group_id
from windlass.core.ids import JobId
from windlass.store.contract import Store

NODES, JOBS = 6, 8
QUEUES = ("q1", "q2")


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members, "PAGE", 2)


async def enqueue_graph(store: Store) -> JobId:
    """Nodes and two joins in two queues, and a child of the flow that is neither."""
    flow = new_group_id()
    ids = [*(node_id(flow, number) for number in range(NODES)), join_id(flow, 0, 0), join_id(flow, NODES - 1, 3)]
    await store.jobs.enqueue([new_job(id=id_, parent=flow, queue=QUEUES[n % 2]) for n, id_ in enumerate(ids)])
    await store.jobs.enqueue([new_job(id=callback_id(flow, Role.ALWAYS), parent=flow, queue="q1")])
    return flow


async def test_a_graph_has_completed_when_every_node_and_join_has(store: Store) -> None:
    flow = await enqueue_graph(store)
    jobs = {job.id: job for job in await take(store, queues=QUEUES)}
    *others, last = [job for id_, job in jobs.items() if id_ != callback_id(flow, Role.ALWAYS)]
    assert len(others) == JOBS - 1
    await store.jobs.settle([completed(job) for job in others])
    assert not await have_all_completed(store.operator, flow, NODES, JOBS), "one is live"
    await store.jobs.settle([completed(last)])
    assert await have_all_completed(store.operator, flow, NODES, JOBS)
    assert not await have_all_completed(store.operator, flow, NODES, JOBS + 1), "others are not counted"
    assert not await have_all_completed(store.operator, new_group_id(), NODES, JOBS)


async def test_nothing_is_counted_before_the_last_node_has_completed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = await enqueue_graph(store)
    counted: list[JobId] = []

    async def count_completed(parent: JobId, *ids: JobId) -> tuple[int, JobId | None]:
        counted.append(parent)
        return 0, None

    operator = store.operator
    monkeypatch.setattr(operator, "count_completed", count_completed)
    jobs = await take(store, queues=QUEUES)
    last = node_id(flow, NODES - 1)
    await store.jobs.settle([completed(job) for job in jobs if job.id != last])
    assert not await have_all_completed(operator, flow, NODES, JOBS)
    assert counted == []
    await store.jobs.settle([completed(job) for job in jobs if job.id == last])
    assert not await have_all_completed(operator, flow, NODES, JOBS)
    assert counted == [flow]


@pytest.mark.parametrize("number", [2, NODES - 1])
@pytest.mark.parametrize("how", ["dead", "cancelled", "dropped"])
async def test_a_graph_of_which_a_node_did_not_complete_has_not(store: Store, how: str, number: int) -> None:
    flow = await enqueue_graph(store)
    lost = node_id(flow, number)
    if how == "cancelled":
        await store.operator.cancel([lost], "not needed")
    jobs = await take(store, queues=QUEUES)
    await store.jobs.settle([dead(job) if how == "dead" and job.id == lost else completed(job) for job in jobs])
    if how == "dropped":
        await store.operator.delete([lost])
    assert not await have_all_completed(store.operator, flow, NODES, JOBS)


async def test_a_small_graph_is_read_in_one_page(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    flow = await enqueue_graph(store)
    await store.jobs.settle([completed(job) for job in await take(store, queues=QUEUES)])
    monkeypatch.setattr(members, "PAGE", JOBS)
    assert not await have_all_completed(store.operator, flow, NODES, JOBS), "it is not counted"
    assert await members.count_nodes(store.operator, flow, ("completed",)) == NODES  # type: ignore[arg-type]
