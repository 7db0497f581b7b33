"""Idempotency-Key: one request, one answer."""

import asyncio

import msgspec
import pytest

from tests.server.conftest import Client, Connect
from windlass import App
from windlass.errors import InvalidOption, StoreUnavailable
from windlass.server.api import enqueue, requests

WELCOME = {"type": "mail.welcome", "payload": {"user_id": 1}}
KEY = {"Idempotency-Key": "order-7"}


async def _jobs(app: App) -> int:
    return sum((await app.stats.acounts()).totals.values())


async def test_a_repeated_request_gets_the_first_answer_whatever_became_of_the_job(api: Client, app: App) -> None:
    first = await api.post("/jobs", json=WELCOME, headers=KEY)
    await app.jobs.acancel(first.json()["id"])
    await app.jobs.adelete(first.json()["id"])
    again = await api.post("/jobs", json=WELCOME, headers=KEY)
    assert (again.status_code, again.json()) == (201, first.json())
    assert again.headers["idempotency-replayed"] == "true"
    assert await _jobs(app) == 0


async def test_another_body_is_refused_and_stores_nothing(api: Client, app: App) -> None:
    await api.post("/jobs", json=WELCOME, headers=KEY)
    other = await api.post("/jobs", json={**WELCOME, "priority": 1}, headers=KEY)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
    assert await _jobs(app) == 1


async def test_a_key_belongs_to_its_token_and_path(api: Client, connect: Connect, app: App) -> None:
    other = await connect("enqueue")
    ids = {(await client.post("/jobs", json=WELCOME, headers=KEY)).json()["id"] for client in (api, other)}
    bulk = await api.post("/jobs/bulk", json={"jobs": [WELCOME, WELCOME]}, headers=KEY)
    assert bulk.status_code == 201
    assert len(ids) == 2
    assert await _jobs(app) == 4


async def test_concurrent_requests_with_one_key_store_one_job(api: Client, app: App) -> None:
    answers = await asyncio.gather(*[api.post("/jobs", json=WELCOME, headers=KEY) for _ in range(8)])
    assert {answer.status_code for answer in answers} <= {201, 409}
    assert len({answer.json()["id"] for answer in answers if answer.status_code == 201}) == 1
    assert {answer.json()["code"] for answer in answers if answer.status_code == 409} <= {"request_in_progress"}
    assert await _jobs(app) == 1


async def test_a_server_that_died_between_jobs_and_record_doubles_nothing(
    api: Client, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = (await api.post("/jobs/bulk", json={"jobs": [WELCOME, WELCOME]}, headers=KEY)).json()
    # As if it had died before it wrote the answer: the record is in progress, and its time is over.
    documents = (await app._ready()).documents
    (record,) = await documents.list(requests.KIND, 10)
    lost = msgspec.json.decode(record.data)
    unfinished = {name: lost[name] for name in ("at", "body")} | {"until": 0}
    assert await documents.replace(requests.KIND, record.id, msgspec.json.encode(unfinished).decode(), record.version)
    again = await api.post("/jobs/bulk", json={"jobs": [WELCOME, WELCOME]}, headers=KEY)
    assert [each["id"] for each in again.json()["jobs"]] == [each["id"] for each in first["jobs"]]
    assert [each["existing"] for each in again.json()["jobs"]] == [True, True]
    assert await _jobs(app) == 2


async def test_a_request_in_progress_is_not_done_again_until_its_time_is_over(api: Client, app: App) -> None:
    await api.post("/jobs", json=WELCOME, headers=KEY)
    documents = (await app._ready()).documents
    (record,) = await documents.list(requests.KIND, 10)
    data = msgspec.json.decode(record.data)
    running = {name: data[name] for name in ("at", "body")} | {"until": 2**62}
    await documents.replace(requests.KIND, record.id, msgspec.json.encode(running).decode(), record.version)
    answer = await api.post("/jobs", json=WELCOME, headers=KEY)
    assert (answer.status_code, answer.json()["code"]) == (409, "request_in_progress")


async def test_after_an_error_the_key_may_be_used_again_at_once(api: Client, app: App) -> None:
    await app.queues.aclose("default")
    refused = await api.post("/jobs", json=WELCOME, headers=KEY)
    assert (refused.status_code, refused.json()["code"]) == (409, "queue_closed")
    await app.queues.aopen("default")
    assert (await api.post("/jobs", json=WELCOME, headers=KEY)).status_code == 201


@pytest.mark.parametrize(
    "wrong",
    [
        {**WELCOME, "payload": {"user_id": "one"}},
        {**WELCOME, "type": "nobody.knows"},
        {**WELCOME, "idempotency_key": "k", "on_conflict": "raise"},
    ],
)
async def test_a_request_that_was_refused_leaves_its_key_to_a_corrected_one(
    api: Client, app: App, wrong: dict[str, object]
) -> None:
    await api.post("/jobs", json={**WELCOME, "idempotency_key": "k"})
    refused = await api.post("/jobs", json=wrong, headers=KEY)
    assert refused.status_code in (409, 422)
    right = await api.post("/jobs", json=WELCOME, headers=KEY)
    assert right.status_code == 201
    assert (await api.post("/jobs", json=WELCOME, headers=KEY)).json() == right.json()
    other = await api.post("/jobs", json={**WELCOME, "priority": 1}, headers=KEY)
    assert other.json()["code"] == "idempotency_key_reused"
    assert await _jobs(app) == 2


async def test_a_refusal_after_a_try_that_may_have_stored_its_job_frees_nothing(
    api: Client, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = (await api.post("/jobs", json=WELCOME, headers=KEY)).json()
    documents = (await app._ready()).documents
    (record,) = await documents.list(requests.KIND, 10)
    lost = msgspec.json.decode(record.data)
    unfinished = {name: lost[name] for name in ("at", "body")} | {"until": 0}
    await documents.replace(requests.KIND, record.id, msgspec.json.encode(unfinished).decode(), record.version)

    def refuse(*_: object) -> None:
        raise InvalidOption("priority", "is refused by the new version")

    with monkeypatch.context() as patch:
        patch.setattr(enqueue, "make_job", refuse)
        assert (await api.post("/jobs", json=WELCOME, headers=KEY)).status_code == 422
    other = await api.post("/jobs", json={**WELCOME, "priority": 1}, headers=KEY)
    assert other.json()["code"] == "idempotency_key_reused"
    assert (await api.post("/jobs", json=WELCOME, headers=KEY)).json()["id"] == first["id"]
    assert await _jobs(app) == 1


async def test_a_key_of_a_job_that_is_gone_is_answered_with_its_id(api: Client, app: App) -> None:
    keyed = {**WELCOME, "idempotency_key": "k", "idempotency_window": 3600}
    async with app.worker(concurrency=1):
        first = await app.aenqueue("mail.welcome", {"user_id": 1}, idempotency_key="k", idempotency_window=3600)
        await first.aresult(timeout=20)
    await app.jobs.adelete(first.id)
    again = await api.post("/jobs", json=keyed)
    assert (again.status_code, again.json()["id"], again.json()["existing"]) == (200, first.id, True)


@pytest.mark.parametrize("key", ["", "x" * 256])
async def test_a_key_has_1_to_255_characters(api: Client, key: str) -> None:
    answer = await api.post("/jobs", json=WELCOME, headers={"Idempotency-Key": key})
    assert (answer.status_code, answer.json()["field"]) == (422, "Idempotency-Key")


async def _away(*_: object) -> None:
    raise StoreUnavailable("no answer")


async def test_an_outage_after_the_enqueue_says_that_the_job_may_be_stored(
    api: Client, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(enqueue, "_read", _away)
    answer = await api.post("/jobs", json={**WELCOME, "concurrency_key": "k"})
    assert (answer.status_code, answer.json()["code"]) == (503, "enqueue_unknown")
    assert answer.json()["maybe_done"] is True
    assert await _jobs(app) == 1


@pytest.mark.parametrize("bulk", [False, True])
async def test_an_outage_after_the_enqueue_does_not_name_a_job_outside_the_limits(
    api: Client, connect: Connect, monkeypatch: pytest.MonkeyPatch, bulk: bool
) -> None:
    keyed = {**WELCOME, "queue": "shared", "idempotency_key": "k"}
    other = (await api.post("/jobs", json={**keyed, "type": "img.resize", "payload": {"path": "a"}})).json()["id"]
    limited = await connect("enqueue", types=["mail.welcome"])
    monkeypatch.setattr(enqueue, "_read", _away)
    path, body = ("/jobs/bulk", {"jobs": [keyed]}) if bulk else ("/jobs", keyed)
    answer = await limited.post(path, json=body)
    assert answer.json()["code"] == "enqueue_unknown"
    assert other not in answer.text


async def test_an_answer_that_cannot_be_kept_is_sent_all_the_same(
    api: Client, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests._Attempt, "_write", _away)
    assert (await api.post("/jobs", json=WELCOME, headers=KEY)).status_code == 201
    assert await _jobs(app) == 1
