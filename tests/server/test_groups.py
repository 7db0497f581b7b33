"""Groups in queues that only REST workers serve: their server runs what watches them."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from tests.server.conftest import Client, Connect
from tests.server.test_workers import ended, settle
from windlass import App, GroupHandle, JobCancelled, StoreUnavailable, chain, group
from windlass.client.tasks.task import Task
from windlass.core.jobs.outcome import Settlement
from windlass.core.moments import SECOND
from windlass.server.workers.groups import RestGroups
from windlass.server.workers.service import MAX_LEASE, MIN_LEASE
from windlass.store.records import Settled

TYPES = ["mail.welcome", "mail.total"]


@pytest.fixture
async def work(connect: Connect) -> Client:
    """A client that may only work."""
    return await connect("work")


def tasks(app: App) -> tuple[Task[Any, Any, Any], Task[Any, Any, Any]]:
    @app.task(type="mail.total")
    def total(parts: list[str]) -> int:
        return len(parts)

    return app.tasks["mail.welcome"], total


class RestWorker:
    """Asks a server for jobs."""

    def __init__(self, work: Client, types: Sequence[str] = TYPES) -> None:
        self._work, self._types = work, types
        self._claims = 0

    async def claim(self, wait: float = 0, limit: int = 10) -> list[dict[str, Any]]:
        self._claims += 1
        body = {"worker": "w1", "claim": self._claims, "queues": ["default"], "types": self._types, "limit": limit}
        answer = await self._work.post("/claims", json={**body, "wait": wait})
        assert answer.status_code == 200, answer.text
        jobs: list[dict[str, Any]] = answer.json()["jobs"]
        return jobs

    async def until(self, type_: str) -> dict[str, Any]:
        """The next job, which has this type."""
        while not (jobs := await self.claim(wait=10)):
            pass
        assert [job["type"] for job in jobs] == [type_]
        return jobs[0]


async def enqueue(app: App, **options: Any) -> GroupHandle[Any]:
    welcome, total = tasks(app)
    return await group([welcome.job(n) for n in range(3)], then=total, **options).aenqueue()


async def test_a_group_of_rest_workers_alone_runs_then_with_the_results(app: App, work: Client) -> None:
    handle = await enqueue(app)
    worker = RestWorker(work)
    jobs = await worker.claim()
    assert {job["type"] for job in jobs} == {"mail.welcome"}
    results = [ended(job, result=f"{job['payload']['user_id']}") for job in jobs]
    assert await settle(work, *results) == ["settled"] * 3
    last = await worker.until("mail.total")
    assert last["payload"] == {"parts": ["0", "1", "2"]}
    assert await settle(work, ended(last, result=3)) == ["settled"]
    assert await handle.aresult(timeout=10) == 3


async def test_a_dead_member_of_a_rest_worker_cancels_then(app: App, work: Client) -> None:
    handle = await enqueue(app)
    worker = RestWorker(work)
    first, *_ = await worker.claim()
    assert await settle(work, ended(first, "dead", reason="hopeless")) == ["settled"]
    with pytest.raises(JobCancelled, match="which is dead"):
        await handle.aresult(timeout=10)


async def test_a_settlement_that_is_repeated_changes_nothing_and_always_runs_once(app: App, work: Client) -> None:
    handle = await enqueue(app, always=app.tasks["mail.welcome"].job(9))
    worker = RestWorker(work)
    jobs = await worker.claim()
    assert await settle(work, *map(ended, jobs)) == ["settled"] * 3
    assert await settle(work, *map(ended, jobs)) == ["already"] * 3
    found: list[str] = []
    while len(found) < 2:
        found += [job["id"] for job in await worker.claim(wait=10)]
    assert handle.then is not None
    assert handle.always is not None
    assert sorted(found) == sorted([handle.then.id, handle.always.id])


async def test_a_group_whose_watcher_could_not_be_settled_is_looked_after_again(
    app: App, work: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = await enqueue(app)
    worker = RestWorker(work)
    jobs = await worker.claim()
    store = (await app._ready()).jobs
    settled = store.settle
    failures: list[Settlement] = []

    async def settle_or_fail(settlements: Sequence[Settlement]) -> list[Settled]:
        if not failures and settlements[0].id == handle.id:
            failures.append(settlements[0])
            raise StoreUnavailable("it is away")
        return await settled(settlements)

    monkeypatch.setattr(store, "settle", settle_or_fail)
    assert await settle(work, *[ended(job, result="1") for job in jobs]) == ["settled"] * 3
    last = await worker.until("mail.total")
    assert await settle(work, ended(last, result=3)) == ["settled"]
    assert await handle.aresult(timeout=10) == 3
    assert len(failures) == 1


async def test_a_chain_in_a_group_ends_without_a_python_worker(app: App, work: Client) -> None:
    welcome, total = tasks(app)
    handle = await group([chain(welcome.job(1), welcome.job(2))], then=total).aenqueue()
    worker = RestWorker(work)
    for number in (1, 2):
        job = await worker.until("mail.welcome")
        assert await settle(work, ended(job, result=f"link {number}")) == ["settled"]
    last = await worker.until("mail.total")
    assert last["payload"] == {"parts": ["link 2"]}
    await settle(work, ended(last, result=1))
    assert await handle.aresult(timeout=10) == 1


async def test_a_group_ends_although_the_store_was_away_when_its_server_settled_it(
    app: App, work: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = await enqueue(app)
    jobs = (await app._ready()).jobs
    settles = jobs.settle
    refused: list[str] = []

    async def settled(settlements: Sequence[Settlement]) -> Any:
        if not refused and any(each.id == handle.id for each in settlements):
            refused.append(handle.id)
            raise StoreUnavailable("away")
        return await settles(settlements)

    monkeypatch.setattr(jobs, "settle", settled)
    worker = RestWorker(work)
    await settle(work, *(ended(job, result="x") for job in await worker.claim()))
    async with asyncio.timeout(30):
        last = await worker.until("mail.total")
    assert refused == [handle.id]
    await settle(work, ended(last, result=3))
    assert await handle.aresult(timeout=10) == 3


@pytest.mark.parametrize("known", [False, True])
async def test_a_map_ends_without_a_python_worker_and_without_its_task_in_the_server(
    app: App, work: Client, known: bool
) -> None:
    producer = app if known else App(app.store)

    @producer.task(type="mail.plan")
    def plan() -> list[int]:
        raise NotImplementedError

    @producer.task(type="mail.send")
    def send(number: int, lang: str) -> str:
        raise NotImplementedError

    @producer.task(type="mail.count")
    def count(sent: list[str]) -> int:
        raise NotImplementedError

    async with producer.flow("mails") as flow:
        sent = flow.map(send, over=flow.add(plan.job()).result, lang="en")
        counted = flow.add(count.job(sent.result), name="count")
    worker = RestWorker(work, ["mail.plan", "mail.send", "mail.count"])
    async with asyncio.timeout(60):
        await settle(work, ended(await worker.until("mail.plan"), result=[5, 6, 7]))
        jobs: list[dict[str, Any]] = []
        while len(jobs) < 3:
            jobs += await worker.claim(wait=10)
        assert sorted(job["payload"]["number"] for job in jobs) == [5, 6, 7]
        assert {job["payload"]["lang"] for job in jobs} == {"en"}
        await settle(work, *(ended(job, result=str(job["payload"]["number"])) for job in jobs))
        last = await worker.until("mail.count")
        assert last["payload"] == {"sent": ["5", "6", "7"]}
        await settle(work, ended(last, result=3))
    assert await flow.handle.node(counted).aresult(timeout=10) == 3
    if not known:
        await producer.aclose()


def test_the_lease_for_groups_is_renewed_before_it_ends_however_short() -> None:
    """It is renewed by a round, when a third of it is over."""
    for lease in (MIN_LEASE, MAX_LEASE):
        assert RestGroups(App("sqlite:///jobs.db"), lease).pause * SECOND <= lease / 2
