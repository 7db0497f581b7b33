"""The calls of REST workers in full: rules, limits, fused claims, crashes; one renewal for all; what people see."""

import asyncio
from typing import Any

import pytest
from starlette.applications import Starlette

from tests.server.conftest import Client, Connect, enqueue
from tests.server.test_workers import MAIL, claim, ended, is_waiting, service, settle
from windlass import App, Fixed
from windlass.core.own_types import OWN_TYPES


@pytest.fixture
async def work(connect: Connect) -> Client:
    """A client that may only work."""
    return await connect("work")


async def test_a_worker_learns_the_rules_before_its_first_claim(app: App, connect: Connect) -> None:
    app.queue("patient", retry=Fixed(base=7))
    app.queue("secret", retry=Fixed(base=8))
    await app.declare()
    limited = await connect("work", queues=["patient"])
    rules = (await limited.get("/claims")).json()
    assert (rules["lease"], rules["beat_after"], rules["max_limit"], rules["max_settlements"]) == (30, 10, 100, 1000)
    assert {name: policy["base"] for name, policy in rules["retry"].items()} == {"patient": 7}
    reader = await connect("read")
    assert (await reader.get("/claims")).status_code == 403


async def test_a_claim_of_nothing_opens_the_lease_and_uses_no_number(app: App, api: Client, work: Client) -> None:
    await enqueue(api)
    for _ in range(2):
        assert await claim(work, 0, limit=0, wait=20) == []
    assert [each.id for each in await app.workers.alist()] == ["rest-w1"]
    assert (await work.post("/claims/beat", json={"worker": "w1"})).json()["lease"] == 30
    assert len(await claim(work, 1)) == 1


async def test_of_a_queue_no_more_are_claimed_than_its_limit(api: Client, work: Client) -> None:
    for n in range(3):
        await enqueue(api, n)
        await enqueue(api, n, queue="other")
    both: dict[str, Any] = {"queues": ["default", "other"]}
    jobs = await claim(work, 1, limits={"default": 1}, **both)
    assert sorted(job["queue"] for job in jobs) == ["default", "other", "other", "other"]
    assert await claim(work, 2, limits={"default": 0}, wait=0.1, **both) == []
    assert len(await claim(work, 3, limit=10, limits={"other": 0}, **both)) == 2


async def test_a_settlement_and_the_next_claim_are_one_call(api: Client, work: Client) -> None:
    ids = [await enqueue(api, n) for n in range(2)]
    (first,) = await claim(work, 1, limit=1)
    body: dict[str, Any] = {
        "worker": "w1",
        "settlements": [ended(first)],
        "claim": {"worker": "w1", "claim": 2, **MAIL, "limit": 1},
    }
    for said in ("settled", "already"):
        answer = (await work.post("/claims/settle", json=body)).json()
        assert [each["answer"] for each in answer["settlements"]] == [said]
        assert [job["id"] for job in answer["claimed"]["jobs"]] == [ids[1]]
        assert answer["claimed"]["lease"] == 30
    body["claim"]["worker"] = "w2"
    refused = await work.post("/claims/settle", json=body)
    assert (refused.status_code, refused.json()["field"]) == (422, "claim.worker")


async def test_a_settle_call_with_a_claim_that_is_refused_settles_nothing(api: Client, work: Client) -> None:
    await enqueue(api)
    (job,) = await claim(work, 1)
    body = {"worker": "w1", "settlements": [ended(job)], "claim": {"worker": "w1", "claim": 2, **MAIL, "limit": 101}}
    refused = await work.post("/claims/settle", json=body)
    assert (refused.status_code, refused.json()["field"]) == (422, "claim.limit")
    assert await settle(work, ended(job)) == ["settled"]


async def test_types_of_our_own_are_not_claimed_by_rest_workers_nor_shown_as_theirs(
    app: App, api: Client, work: Client
) -> None:
    for own in sorted(OWN_TYPES):
        claimed = await work.post("/claims", json={"worker": "w1", "claim": 1, "queues": ["a"], "types": [own]})
        assert (claimed.status_code, claimed.json()["field"]) == (422, "types")
    await claim(work, 1)
    assert [each.types for each in await app.workers.alist()] == [("mail.welcome",)]
    assert {each["type"] for each in (await api.get("/types")).json()["types"]} & OWN_TYPES == set()
    (known,) = await (await app._ready()).workers.list()
    assert "windlass.group" in known.types  # so that groups in its queue are not set aside


async def test_a_crash_of_one_job_in_its_own_process_counts_as_one(app: App, api: Client, work: Client) -> None:
    id_ = await enqueue(api, max_attempts=10)
    for number in (1, 2, 3):
        (job,) = await claim(work, number)
        assert (job.get("crashes", 0), job["attempt"]) == (number - 1, number)
        error = {"type": "Killed", "message": "signal 9"}
        assert await settle(work, ended(job, "crashed", error=error)) == ["settled"]
    dead = await app.jobs.aget(id_)
    assert (dead.status, dead.crashes, dead.reason) == ("dead", 3, "crashed its runner 3 times")


async def test_a_parent_process_says_which_attempts_ran_when_its_worker_died(
    app: App, api: Client, work: Client
) -> None:
    ran, waited = await enqueue(api, 1, priority=9), await enqueue(api, 2)
    first, _ = await claim(work)
    assert first["id"] == ran
    crashed = [{"id": ran, "attempt": 1}, {"id": waited, "attempt": 7}]
    body = {"worker": "w1", "crashed": crashed[:1]}
    for _ in range(2):
        assert (await work.post("/claims/end", json=body)).status_code == 204
    assert [(await app.jobs.aget(id_)).crashes for id_ in (ran, waited)] == [1, 0]
    assert [(await app.jobs.aget(id_)).requeues for id_ in (ran, waited)] == [0, 1]
    too_many = {"worker": "w1", "crashed": crashed * 5_001}
    refused = await work.post("/claims/end", json=too_many)
    assert (refused.status_code, refused.json()["field"]) == (422, "crashed")


async def test_a_worker_reads_what_it_holds_with_all_that_deciding_needs(api: Client, work: Client) -> None:
    id_ = await enqueue(api, max_attempts=4, timeout=9)
    await claim(work, 5)
    (held,) = (await work.get("/claims/w1")).json()["jobs"]
    assert held == {
        "id": id_,
        "attempt": 1,
        "queue": "default",
        "claim": 5,
        "type": "mail.welcome",
        "max_attempts": 4,
        "timeout": 9.0,
    }


async def test_a_server_renews_the_leases_of_all_its_workers_in_one_call(
    app: App, served: Starlette, work: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("w1", "w2", "w3"):
        await claim(work, worker=name)
    leases = (await app._ready()).leases
    renewed: list[tuple[str, ...]] = []
    renew = leases.renew

    async def counted(worker: str, runners: tuple[str, ...], length: int) -> Any:
        renewed.append(tuple(runners))
        return await renew(worker, runners, length)

    monkeypatch.setattr(leases, "renew", counted, raising=False)
    await service(served).workers.round()
    assert [sorted(each) for each in renewed] == [["rest-w1-1", "rest-w2-1", "rest-w3-1"]]


async def test_parked_jobs_are_released_while_a_rest_worker_knows_their_type(
    app: App, served: Starlette, api: Client, work: Client
) -> None:
    id_ = (await app.aenqueue("mail.goodbye", {})).id
    store = await app._ready()
    await claim(work)
    assert await store.jobs.park() == {"mail.goodbye": 1}
    assert await store.jobs.parked_types() == ["mail.goodbye"]
    assert (await app.jobs.awhy(id_)).reasons[0].code == "parked"
    (job,) = await claim(work, worker="w2", types=["mail.goodbye"])
    assert job["id"] == id_


async def test_why_and_the_lists_of_workers_show_a_rest_worker(
    app: App, served: Starlette, api: Client, work: Client
) -> None:
    id_ = await enqueue(api)
    assert (await app.jobs.awhy(id_)).reasons[0].code == "no_worker"
    await claim(work, limit=0, host="thumb-1", slots=4)
    assert "no_worker" not in [each.code for each in (await app.jobs.awhy(id_)).reasons]
    await claim(work, 1, host="thumb-1", slots=4)
    assert "rest-w1" in (await app.jobs.awhy(id_)).reasons[0].text
    (listed,) = (await api.get("/workers")).json()["workers"]
    assert (listed["id"], listed["host"], listed["rest"], listed["slots"], listed["running"]) == (
        "rest-w1",
        "thumb-1",
        True,
        4,
        1,
    )
    page = (await api.get("http://windlass/workers", headers={"accept": "text/html"})).text
    assert "thumb-1" in page
    assert "rest-w1" in page
    assert "pid 0" not in page


async def test_a_claim_that_waits_is_answered_when_its_token_is_revoked(
    app: App, served: Starlette, connect: Connect
) -> None:
    mine = await connect("work")
    waiting = asyncio.create_task(mine.post("/claims", json={"worker": "w1", "claim": 1, **MAIL, "wait": 25}))
    await is_waiting(served)
    for each in await app.tokens.alist():
        await app.tokens.arevoke(each.id)
    answer = await asyncio.wait_for(waiting, 20)
    assert answer.status_code == 401
