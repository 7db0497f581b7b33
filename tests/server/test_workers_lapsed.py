"""REST workers whose leases have lapsed: their jobs are rescued by the server, without a coordinator."""

import asyncio
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from starlette.applications import Starlette

from tests.server.conftest import Client, Connect, enqueue
from tests.server.test_workers import MAIL, claim, service
from windlass import App
from windlass.core.moments import SECOND
from windlass.store.postgres.connection.profile import SKEW

LEASE = SECOND // 4


@pytest.fixture
async def work(connect: Connect, served: Starlette) -> Client:
    """A client that may only work, at a server with short leases whose rounds the test calls."""
    workers = service(served).workers
    workers.lease, workers._keeping = LEASE, asyncio.create_task(asyncio.sleep(3600))
    client = await connect("work")
    await claim(client, worker="w2", limit=0)
    return client


async def until_lapsed(app: App, work: Client, id_: str) -> None:
    """Until the lease of the worker that holds this job has lapsed, while the lease of another one is renewed."""
    while True:
        ends = (await app.jobs.aget(id_)).lease_expires_at
        assert ends is not None
        if datetime.now(UTC) > ends + timedelta(microseconds=SKEW):
            return
        assert (await work.post("/claims/beat", json={"worker": "w2"})).status_code == 200
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("path", ["/claims/beat", "/claims"])
async def test_the_jobs_of_a_worker_that_gets_409_are_rescued_at_once(
    app: App, api: Client, work: Client, path: str
) -> None:
    id_ = await enqueue(api)
    assert await claim(work)
    answer = httpx.Response(200)
    while answer.status_code == 200:  # a pause of this test for a quarter of a second is an outage: a grace
        await until_lapsed(app, work, id_)
        more = {} if path == "/claims/beat" else {"claim": 1, **MAIL}
        answer = await work.post(path, json={"worker": "w1", **more})
    assert (answer.status_code, answer.json()["code"]) == (409, "lease_lost")
    job = await app.jobs.aget(id_)
    assert (job.status, job.rescues, job.crashes) == ("pending", 1, 0)
    assert [each.id for each in await app.workers.alist()] == ["rest-w2"]


async def test_a_server_rescues_the_jobs_of_a_worker_that_it_never_knew(
    app: App, served: Starlette, api: Client, work: Client
) -> None:
    id_ = await enqueue(api)
    assert await claim(work)
    workers = service(served).workers
    workers._known.pop("w1")
    await (await app._ready()).workers.unregister("rest-w1")  # as after a minute without any server
    async with asyncio.timeout(30):
        while (await app.jobs.aget(id_)).status == "running":
            await until_lapsed(app, work, id_)
            await workers.round()
    assert (await app.jobs.aget(id_)).rescues == 1


async def test_a_worker_keeps_its_lease_or_loses_its_jobs_if_the_server_has_other_leases_now(
    app: App, served: Starlette, api: Client, work: Client
) -> None:
    """A lease shorter than the time after which renewals are noted again: the store may find an outage, or none."""
    id_ = await enqueue(api)
    assert await claim(work)
    service(served).workers.lease = 30 * SECOND
    while (await app.jobs.aget(id_)).lease_expires_at > datetime.now(UTC):  # type: ignore[operator]  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    answer = await work.post("/claims/beat", json={"worker": "w1"})
    assert (answer.status_code, (await app.jobs.aget(id_)).status) in {(200, "running"), (409, "pending")}
