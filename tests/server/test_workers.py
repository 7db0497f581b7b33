"""Workers over REST: leases, claims, settlements, silence."""

import asyncio
import json
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from starlette.applications import Starlette

from tests.server.conftest import Client, Connect, enqueue
from tests.support.addresses import on_sqlite
from windlass import App
from windlass.core.moments import SECOND
from windlass.server.workers.service import WorkerService

MAIL = {"queues": ["default"], "types": ["mail.welcome"]}


@pytest.fixture
async def work(connect: Connect) -> Client:
    """A client that may only work."""
    return await connect("work")


def service(served: Starlette) -> WorkerService:
    found: WorkerService = served.state.workers
    return found


async def claim(work: Client, number: int = 1, worker: str = "w1", **more: Any) -> list[dict[str, Any]]:
    answer = await work.post("/claims", json={"worker": worker, "claim": number, **MAIL, "limit": 10, **more})
    assert answer.status_code == 200, answer.text
    jobs: list[dict[str, Any]] = answer.json()["jobs"]
    return jobs


async def settle(work: Client, *items: dict[str, Any], worker: str = "w1") -> list[str]:
    answer = await work.post("/claims/settle", json={"worker": worker, "settlements": list(items)})
    assert answer.status_code == 200, answer.text
    return [each["answer"] for each in answer.json()["settlements"]]


def ended(job: dict[str, Any], outcome: str = "completed", **more: Any) -> dict[str, Any]:
    return {"id": job["id"], "attempt": job["attempt"], "outcome": outcome, **more}


async def test_a_worker_claims_and_completes_a_job(api: Client, work: Client) -> None:
    id_ = await enqueue(api, 7)
    (job,) = await claim(work)
    assert (job["id"], job["attempt"], job["payload"]) == (id_, 1, {"user_id": 7})
    assert (await api.get(f"/jobs/{id_}")).json()["status"] == "running"
    assert await settle(work, ended(job, result={"sent": True})) == ["settled"]
    done = (await api.get(f"/jobs/{id_}")).json()
    assert (done["status"], done["result"]) == ("completed", {"sent": True})


async def test_a_claim_repeated_after_a_lost_answer_returns_the_same_jobs(api: Client, work: Client) -> None:
    ids = {await enqueue(api, n) for n in range(3)}
    first = await claim(work, 1, limit=2)
    again = await claim(work, 1, limit=2)
    assert {job["id"] for job in first} == {job["id"] for job in again}
    (rest,) = await claim(work, 2)
    assert {job["id"] for job in first} | {rest["id"]} == ids


@on_sqlite  # PostgreSQL notes renewals once a second: it may find no outage in half of one, and answer 409
@pytest.mark.parametrize("server", ["the same", "another"])
async def test_a_claim_repeated_after_its_lease_has_lapsed_returns_the_same_jobs(
    app: App, served: Starlette, api: Client, work: Client, server: str
) -> None:
    id_ = await enqueue(api)
    workers = service(served).workers
    length, workers.lease = workers.lease, SECOND // 4
    first = await claim(work)
    await workers.stop()  # no renewals
    workers.lease = length
    while (await app.jobs.aget(id_)).lease_expires_at >= datetime.now(UTC):  # type: ignore[operator]  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    if server == "another":
        workers._known.clear()
    assert await claim(work) == first
    assert await settle(work, ended(first[0])) == ["settled"]


async def test_a_settlement_repeated_says_already_and_a_late_one_stale(api: Client, work: Client) -> None:
    await enqueue(api)
    (job,) = await claim(work)
    assert await settle(work, ended(job)) == ["settled"]
    assert await settle(work, ended(job)) == ["already"]
    assert await settle(work, {**ended(job), "attempt": 9}) == ["stale"]
    assert await settle(work, {"id": "no id", "attempt": 1, "outcome": "completed"}) == ["stale"]


async def test_each_settlement_is_independent_of_the_others(api: Client, work: Client) -> None:
    for n in range(3):
        await enqueue(api, n)
    first, second, third = await claim(work)
    items = [ended(first, "snoozed"), ended(second, result="x" * 70_000), ended(third)]
    assert await settle(work, *items) == ["invalid", "invalid", "settled"]
    assert await settle(work, ended(first, "snoozed", after=60), ended(second)) == ["settled", "settled"]
    assert (await api.get(f"/jobs/{first['id']}")).json()["status"] == "scheduled"


@pytest.mark.parametrize(
    ("outcome", "more", "status"),
    [
        ("failed", {"error": {"type": "Timeout", "message": "no answer"}}, "failed"),
        ("failed", {"after": 3600}, "failed"),
        ("dead", {"reason": "no such user"}, "dead"),
        ("cancelled", {"reason": "not needed"}, "cancelled"),
        ("requeued", {}, "pending"),
    ],
)
async def test_an_attempt_ends_in_every_way(
    api: Client, work: Client, outcome: str, more: dict[str, Any], status: str
) -> None:
    id_ = await enqueue(api)
    (job,) = await claim(work)
    assert await settle(work, ended(job, outcome, **more)) == ["settled"]
    assert (await api.get(f"/jobs/{id_}")).json()["status"] == status


async def test_a_worker_belongs_to_the_token_that_opened_it(api: Client, connect: Connect) -> None:
    mine, other = await connect("work"), await connect("work")
    await enqueue(api)
    (job,) = await claim(mine)
    calls = [
        other.post("/claims", json={"worker": "w1", "claim": 2, **MAIL}),
        other.post("/claims/beat", json={"worker": "w1"}),
        other.post("/claims/settle", json={"worker": "w1", "settlements": [ended(job)]}),
        other.post("/claims/end", json={"worker": "w1"}),
        other.get("/claims/w1"),
    ]
    for answer in await asyncio.gather(*calls):
        assert (answer.status_code, answer.json()["code"]) == (404, "worker_not_found")
    assert await settle(mine, ended(job)) == ["settled"]


async def test_a_worker_settles_no_job_of_another(api: Client, work: Client) -> None:
    await enqueue(api)
    (job,) = await claim(work, worker="w1")
    assert await claim(work, worker="w2") == []
    assert await settle(work, ended(job), worker="w2") == ["stale"]
    assert (await api.get(f"/jobs/{job['id']}")).json()["status"] == "running"


async def is_waiting(served: Starlette) -> None:
    """Until a claim waits for a job."""
    while not service(served).polls._waiting:  # noqa: ASYNC110
        await asyncio.sleep(0.01)


async def test_a_waiting_claim_gets_a_job_that_comes_later(served: Starlette, api: Client, work: Client) -> None:
    waiting = asyncio.create_task(claim(work, wait=20))
    await is_waiting(served)
    id_ = await enqueue(api)
    (job,) = await asyncio.wait_for(waiting, 15)
    assert job["id"] == id_


async def test_cancellations_come_with_the_beat(api: Client, work: Client) -> None:
    id_ = await enqueue(api)
    (job,) = await claim(work)
    assert (await api.delete(f"/jobs/{id_}")).status_code == 202
    notes = [{"id": id_, "attempt": 1, "done": 1, "total": 4, "note": "first", "lines": ["one", "two"]}]
    answer = (await work.post("/claims/beat", json={"worker": "w1", "notes": notes})).json()
    assert answer["cancels"] == [{"id": id_, "attempt": job["attempt"]}]
    seen = (await api.get(f"/jobs/{id_}")).json()
    assert (seen["progress"]["done"], [line["text"] for line in seen["logs"]]) == (1, ["one", "two"])
    assert await settle(work, ended(job, "cancelled")) == ["settled"]
    assert (await api.get(f"/jobs/{id_}")).json()["status"] == "cancelled"


async def test_an_ended_worker_holds_nothing_and_its_id_is_not_used_again(api: Client, work: Client) -> None:
    id_ = await enqueue(api)
    await claim(work)
    assert [each["id"] for each in (await work.get("/claims/w1")).json()["jobs"]] == [id_]
    for _ in range(2):
        assert (await work.post("/claims/end", json={"worker": "w1"})).status_code == 204
    assert (await api.get(f"/jobs/{id_}")).json()["status"] == "pending"
    answer = await work.post("/claims", json={"worker": "w1", "claim": 2, **MAIL})
    assert (answer.status_code, answer.json()["code"]) == (409, "lease_lost")
    assert [job["id"] for job in await claim(work, worker="w2")] == [id_]


async def test_the_silence_of_a_worker_with_one_job_is_a_crash(
    app: App, served: Starlette, api: Client, work: Client
) -> None:
    id_ = await enqueue(api)
    await claim(work)
    await fall_silent(served)
    job = await app.jobs.aget(id_)
    assert (job.status, job.crashes, job.attempts[-1].outcome) == ("pending", 1, "crashed")


async def test_of_several_jobs_each_is_a_suspect_and_is_then_given_out_alone(
    app: App, served: Starlette, api: Client, work: Client
) -> None:
    ids = [await enqueue(api, n) for n in range(3)]
    assert len(await claim(work)) == 3
    await fall_silent(served)
    assert [(await app.jobs.aget(id_)).suspicions for id_ in ids] == [1, 1, 1]
    (alone,) = await claim(work, worker="w2")
    assert await claim(work, 2, worker="w2") == []
    assert await settle(work, ended(alone), worker="w2") == ["settled"]
    (second,) = await claim(work, 3, worker="w2")
    assert second["id"] != alone["id"]


async def test_a_server_that_has_just_begun_to_listen_ends_no_worker(
    app: App, served: Starlette, api: Client, work: Client
) -> None:
    id_ = await enqueue(api)
    await claim(work)
    workers = service(served).workers
    workers._known.clear()
    workers._silence._observed.clear()
    workers.lease = 0
    await workers.round()
    assert (await app.jobs.aget(id_)).status == "running"


async def test_an_open_claim_renews_the_lease(app: App, served: Starlette, work: Client) -> None:
    waiting = asyncio.create_task(claim(work, wait=20))
    await is_waiting(served)
    workers = service(served).workers
    before = (await app.workers.alist())[0].beat_at
    await workers.round()
    (now,) = await app.workers.alist()
    assert (now.id, now.rest) == ("rest-w1", True)
    assert now.beat_at != before
    served.state.probes.stopping = True
    await service(served).polls.stop()
    assert await waiting == []


async def test_a_limited_token_claims_only_what_it_may(api: Client, connect: Connect) -> None:
    await enqueue(api)
    limited = await connect("work", queues=["images"])
    answer = await limited.post("/claims", json={"worker": "w1", "claim": 1, **MAIL})
    assert (answer.status_code, answer.json()["code"]) == (403, "outside_limits")
    by_type = await connect("work", types=["img.resize"])
    answer = await by_type.post("/claims", json={"worker": "w2", "claim": 1, **MAIL})
    assert (answer.status_code, answer.json()["code"]) == (403, "outside_limits")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("worker", "a b"),
        ("worker", ""),
        ("claim", -1),
        ("claim", 2**32),
        ("limit", 101),
        ("limit", -1),
        ("limits.other", {"other": 1}),
        ("limits.default", {"default": -1}),
        ("wait", 31),
        ("queues", []),
        ("types", []),
        ("slots", 0),
        ("host", "x" * 256),
    ],
)
async def test_a_bad_claim_is_refused_with_its_field(work: Client, field: str, value: Any) -> None:
    answer = await work.post("/claims", json={"worker": "w1", "claim": 1, **MAIL, field.partition(".")[0]: value})
    assert (answer.status_code, answer.json()["field"]) == (422, field)


async def test_the_scope_work_is_needed(connect: Connect) -> None:
    reader = await connect("read", "enqueue", "operate")
    answer: httpx.Response = await reader.post("/claims", json={"worker": "w1", "claim": 1, **MAIL})
    assert (answer.status_code, answer.json()["code"]) == (403, "missing_scope")


async def fall_silent(served: Starlette) -> None:
    """No word of the worker for a whole lease."""
    workers = service(served).workers
    workers._known.clear()
    await workers.round()
    length, workers.lease = workers.lease, -SECOND
    await workers.round()
    workers.lease = length


@pytest.mark.parametrize(
    "result", [b'"\xff"', b"1e999", b"9" * 30, b"[" * 200 + b"]" * 200], ids=["bytes", "inf", "integer", "depth"]
)
async def test_a_result_that_no_task_could_return_is_invalid(api: Client, work: Client, result: bytes) -> None:
    for n in range(2):
        await enqueue(api, n)
    first, second = await claim(work)
    items = [
        json.dumps(ended(first)).encode()[:-1] + b', "result": ' + result + b"}",
        json.dumps(ended(second)).encode(),
    ]
    body = b'{"worker": "w1", "settlements": [' + b", ".join(items) + b"]}"
    answer = await work.post("/claims/settle", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 200, answer.text
    wrong, right = answer.json()["settlements"]
    assert (wrong["answer"], right["answer"]) == ("invalid", "settled")
    assert wrong["problem"].startswith("result")
    assert await settle(work, ended(first)) == ["settled"]


async def test_an_attempt_is_settled_once_in_a_call_and_the_first_counts(api: Client, work: Client) -> None:
    id_ = await enqueue(api)
    (job,) = await claim(work)
    items = [ended(job, "dead"), ended(job), ended(job, "failed")]
    assert await settle(work, *items) == ["settled", "invalid", "invalid"]
    assert (await api.get(f"/jobs/{id_}")).json()["status"] == "dead"


@pytest.mark.parametrize("name", ["a\0b", "", "x" * 50_000], ids=["zero", "empty", "long"])
async def test_a_name_that_no_worker_can_have_is_refused_before_the_store_is_asked(work: Client, name: str) -> None:
    settlement = {"id": "x", "attempt": 1, "outcome": "completed"}
    for path, more in (("beat", {}), ("settle", {"settlements": [settlement]}), ("end", {})):
        answer = await work.post(f"/claims/{path}", json={"worker": name, **more})
        assert (answer.status_code, answer.json()["field"]) == (422, "worker"), path
        assert len(answer.text) < 1_000
    if name:
        assert (await work.get(f"/claims/{quote(name)}")).status_code == 422
