"""REST workers after lost answers, restarts of servers and changes from one server to another: no job is stuck."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
from starlette.applications import Starlette

from tests.server.conftest import Client, Connect, enqueue
from tests.server.test_workers import claim, ended, fall_silent, is_waiting, service, settle
from windlass import App
from windlass.core.moments import SECOND
from windlass.server import asgi

BOTH = ["default", "other"]


@pytest.fixture
async def work(connect: Connect) -> Client:
    """A client that may only work."""
    return await connect("work")


@pytest.fixture
async def second(address: str, work: Client) -> AsyncIterator[Client]:
    """The same client at a second server."""
    app = App(address)
    served = asgi(app)
    transport = httpx.ASGITransport(served, raise_app_exceptions=False)
    client = httpx.AsyncClient(transport=transport, base_url=work.base_url, headers=work.headers)
    async with served.router.lifespan_context(served), client:
        yield client
    await app.aclose()


async def test_a_suspect_whose_answer_was_lost_is_given_out_again(
    served: Starlette, api: Client, work: Client
) -> None:
    for n in range(2):
        await enqueue(api, n)
    await claim(work)
    await fall_silent(served)
    lost = await claim(work, 1, worker="w2")
    (again,) = await claim(work, 1, worker="w2")
    assert [again["id"]] == [job["id"] for job in lost]
    assert await claim(work, 2, worker="w2") == []
    assert await settle(work, ended(again), worker="w2") == ["settled"]
    assert len(await claim(work, 3, worker="w2")) == 1


async def test_a_lost_answer_is_repeated_while_a_suspect_waits_for_the_worker(
    served: Starlette, api: Client, work: Client
) -> None:
    for n in range(2):
        await enqueue(api, n)
    await claim(work)
    await fall_silent(served)
    urgent = await enqueue(api, 3, priority=50)
    assert [job["id"] for job in await claim(work, 1, worker="w2", limit=1)] == [urgent]
    plain = await enqueue(api, 4)
    for _ in range(2):
        assert [job["id"] for job in await claim(work, 2, worker="w2")] == [plain]
    held = (await work.get("/claims/w2")).json()["jobs"]
    assert {each["id"]: each["claim"] for each in held} == {urgent: 1, plain: 2}


async def test_a_claim_of_several_queues_is_repeated_at_another_server(
    api: Client, work: Client, second: Client
) -> None:
    assert await claim(second, 1, limit=1, queues=BOTH) == []
    taken = await enqueue(api, 1, queue="other")
    assert [job["id"] for job in await claim(work, 2, limit=1, queues=BOTH)] == [taken]
    await enqueue(api, 2)
    assert [job["id"] for job in await claim(second, 2, limit=1, queues=BOTH)] == [taken]


async def test_a_claim_that_is_repeated_while_it_still_waits_gets_the_job_that_the_first_one_took(
    served: Starlette, api: Client, work: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windlass.server.workers.long_polls.WOKEN", 1)
    monkeypatch.setattr("windlass.server.workers.long_polls.CHECK_SECONDS", 0.1)
    both = [asyncio.create_task(claim(work, 1, wait=5)) for _ in range(2)]
    while sum(map(len, service(served).polls._waiting.values())) < 2:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    id_ = await enqueue(api)
    assert [[job["id"] for job in each] for each in await asyncio.gather(*both)] == [[id_], [id_]]


async def test_a_claim_that_still_waits_after_a_later_one_takes_nothing(
    served: Starlette, api: Client, work: Client
) -> None:
    forgotten = asyncio.create_task(claim(work, 1, wait=5, limit=1))
    await is_waiting(served)
    assert await claim(work, 1) == []
    assert await claim(work, 2) == []
    id_ = await enqueue(api)
    assert await forgotten == []
    assert [job["id"] for job in await claim(work, 3)] == [id_]


async def test_the_largest_number_of_a_claim_is_repeated_too(api: Client, work: Client) -> None:
    for n in range(2):
        await enqueue(api, n)
    first = await claim(work, 2**32 - 1, limit=1)
    assert [job["id"] for job in await claim(work, 2**32 - 1, limit=1)] == [job["id"] for job in first]


async def test_beats_at_a_server_that_did_not_open_the_worker_are_signs_of_life(
    app: App, served: Starlette, api: Client, work: Client
) -> None:
    await enqueue(api)
    await claim(work)
    workers = service(served).workers
    for is_registered in (True, False):
        workers._known.clear()
        if not is_registered:
            await (await app._ready()).workers.unregister("rest-w1")
        before = {each.beat_at for each in await app.workers.alist()}
        assert (await work.post("/claims/beat", json={"worker": "w1"})).status_code == 200
        await workers.round()
        (now,) = await app.workers.alist()
        assert now.beat_at not in before
        assert now.types == (("mail.welcome",) if is_registered else ())
    await claim(work, 2)
    assert (await app.workers.alist())[0].types == ("mail.welcome",)


async def test_silence_for_longer_than_the_registry_lasts_is_a_crash_too(
    app: App, served: Starlette, api: Client, work: Client
) -> None:
    id_ = await enqueue(api)
    await claim(work)
    workers = service(served).workers
    workers._known.clear()
    await workers.round()
    await (await app._ready()).workers.unregister("rest-w1")
    workers.lease = -SECOND
    await workers.round()
    job = await app.jobs.aget(id_)
    assert (job.status, job.crashes, workers._silence._observed) == ("pending", 1, {})


async def test_a_server_that_was_stopped_for_a_lease_ends_no_worker(
    app: App, served: Starlette, api: Client, work: Client
) -> None:
    id_ = await enqueue(api)
    await claim(work)
    workers = service(served).workers
    await workers.round()
    workers._known.clear()
    workers._silence._looked_at -= 2 * workers.lease
    workers._silence._observed = {
        each: (sign, at - 2 * workers.lease) for each, (sign, at) in workers._silence._observed.items()
    }
    await workers.round()
    assert (await app.jobs.aget(id_)).status == "running"


async def test_a_worker_that_ended_at_another_server_is_not_kept(
    served: Starlette, api: Client, work: Client, second: Client
) -> None:
    await enqueue(api)
    await claim(work)
    assert (await second.post("/claims/end", json={"worker": "w1"})).status_code == 204
    workers = service(served).workers
    workers._known["w1"].heard_at -= 2 * workers.lease
    await workers.round()
    assert workers._known == {}


async def test_jobs_that_another_server_settled_do_not_fill_the_memory(
    served: Starlette, api: Client, work: Client, second: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windlass.server.workers.service.MAX_KNOWN", 2)
    for n in range(4):
        await enqueue(api, n)
        (job,) = await claim(work, n)
        assert await settle(second, ended(job)) == ["settled"]
    await enqueue(api, 5)
    (job,) = await claim(work, 5)
    known = service(served).workers._known["w1"].claimed
    assert len(known) == 2
    assert known[job["id"], 1].job.payload == ""
    assert await settle(work, ended(job)) == ["settled"]


async def test_silence_counts_from_the_round_after_the_last_call(
    app: App, served: Starlette, api: Client, work: Client
) -> None:
    await enqueue(api)
    await claim(work)
    workers, signs = service(served).workers, []
    for calls in (False, False, True):
        if calls:
            assert (await work.post("/claims/beat", json={"worker": "w1"})).status_code == 200
        await workers.round()
        signs.append((await app.workers.alist())[0].beat_at)
    assert signs[0] == signs[1] != signs[2]
