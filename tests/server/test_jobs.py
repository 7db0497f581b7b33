"""/jobs: enqueue, read, list, change, cancel, retry."""

import asyncio
from typing import Any

import pytest

from tests.server.conftest import Client, Connect, enqueue
from tests.support.seed import running
from windlass import App
from windlass.core.jobs.job import Progress
from windlass.store.records import Note

WELCOME = {"type": "mail.welcome", "payload": {"user_id": 1}}


async def test_a_job_is_stored_when_the_answer_comes(api: Client, app: App) -> None:
    answer = await api.post("/jobs", json={**WELCOME, "priority": 7, "tags": ["vip"], "tenant": "acme"})
    assert answer.status_code == 201
    receipt = answer.json()
    assert receipt["status"] == "pending"
    assert receipt["existing"] is False
    assert answer.headers["location"] == f"/api/v1/jobs/{receipt['id']}"
    job = await app.jobs.aget(receipt["id"])
    assert (job.type, job.payload, job.priority, job.tags, job.tenant) == (
        "mail.welcome",
        {"user_id": 1},
        7,
        ("vip",),
        "acme",
    )


async def test_the_same_idempotency_key_returns_the_existing_job(api: Client) -> None:
    body = {**WELCOME, "idempotency_key": "welcome:1"}
    first, second = await api.post("/jobs", json=body), await api.post("/jobs", json=body)
    assert (first.status_code, second.status_code) == (201, 200)
    assert second.json()["id"] == first.json()["id"]
    assert second.json()["existing"] is True


async def test_a_job_for_later_is_scheduled_and_says_when_it_starts(api: Client) -> None:
    answer = await api.post("/jobs", json={**WELCOME, "run_at": "2199-01-01T00:00:00Z"})
    assert answer.json()["status"] == "scheduled"
    assert answer.json()["estimated_start_at"] == "2199-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("body", "status", "code", "field"),
    [
        ({"type": "mail.welcome", "payload": {"user_id": "x"}}, 422, "invalid_payload", "user_id"),
        ({"type": "mail.welcome", "payload": {}}, 422, "invalid_payload", "user_id"),
        ({"type": "mail.welcome", "payload": [1]}, 422, "invalid_payload", "payload"),
        ({"type": "nobody.knows"}, 422, "unknown_task", None),
        ({"type": "../x"}, 422, "invalid_name", "type"),
        ({"payload": {}}, 422, "invalid_option", "body"),
        ({**WELCOME, "priority": 40_000}, 422, "invalid_option", "priority"),
        ({**WELCOME, "priority": "1"}, 422, "invalid_option", "priority"),
        ({**WELCOME, "delay": -1}, 422, "invalid_time", "delay"),
        ({**WELCOME, "run_at": "2026-01-01T00:00:00"}, 422, "invalid_time", "run_at"),
        ({**WELCOME, "max_attempts": 0}, 422, "invalid_option", "max_attempts"),
        ({**WELCOME, "queue": "a b"}, 422, "invalid_name", "queue"),
        ({**WELCOME, "unknown": 1}, 422, "invalid_option", "body"),
        ({"type": "mail.welcome", "payload": {"user_id": 2**63}}, 422, "invalid_payload", None),
        ({"type": "img.resize", "payload": {"path": "x" * 70_000}}, 413, "payload_too_large", "payload"),
    ],
)
async def test_a_wrong_job_is_refused_with_the_field_and_nothing_is_stored(
    api: Client, body: dict[str, Any], status: int, code: str, field: str | None
) -> None:
    answer = await api.post("/jobs", json=body)
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (status, code), problem
    assert answer.headers["content-type"] == "application/problem+json"
    assert field is None or problem["field"] == field
    assert problem["request"] == answer.headers["x-request-id"]
    assert (await api.get("/stats")).json()["totals"]["pending"] == 0


@pytest.mark.parametrize(
    ("text", "status", "code"),
    [
        (b"{", 400, "invalid_json"),
        (b"", 400, "invalid_json"),
        (b"\xef\xbb\xbf{}", 400, "invalid_json"),
        (b'{"type": "\xff"}', 400, "invalid_json"),
        ('{"type": "x"}'.encode("utf-16"), 400, "invalid_json"),
        (b'{"type": "mail.welcome", "payload": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 422, "invalid_payload"),
        (b'{"type": "mail.welcome", "payload": {"user_id": 1, "user_id": 2}}', 422, "invalid_payload"),
        (b'{"type": "mail.welcome", "payload": {"user_id": NaN}}', 422, "invalid_payload"),
        (b'{"type": "mail.welcome", "payload": {"user_id": 1, "lang": "\xff"}}', 400, "invalid_json"),
        (b'{"type": "mail.welcome", "payload": {"user_id": 1' + b"0" * 5_000 + b"}}", 422, "invalid_payload"),
        (b"[]", 422, "invalid_option"),
    ],
)
async def test_a_body_that_is_no_proper_json_is_refused(api: Client, text: bytes, status: int, code: str) -> None:
    answer = await api.post("/jobs", content=text, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert (await api.get("/stats")).json()["totals"]["pending"] == 0


async def test_other_media_types_and_compressed_bodies_are_refused(api: Client) -> None:
    plain = await api.post("/jobs", content=b"{}", headers={"content-type": "text/plain"})
    packed = {"content-type": "application/json", "content-encoding": "gzip"}
    assert (plain.status_code, plain.json()["code"]) == (415, "unsupported_media_type")
    answer = await api.post("/jobs", content=b"{}", headers=packed)
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_encoding")


async def test_a_body_over_the_limit_is_refused_before_it_is_read(api: Client) -> None:
    read = 0

    async def endless() -> Any:
        nonlocal read
        for _ in range(1_000):
            read += 1
            yield b" " * 1_000_000

    answer = await api.post("/jobs", content=endless(), headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")
    assert answer.json()["limit"] == 16 * 1024 * 1024


async def test_bulk_is_all_or_nothing_and_names_the_wrong_one(api: Client) -> None:
    jobs = [{"type": "mail.welcome", "payload": {"user_id": number}} for number in range(100)]
    stored = await api.post("/jobs/bulk", json={"jobs": jobs})
    assert stored.status_code == 201
    assert len({each["id"] for each in stored.json()["jobs"]}) == 100
    refused = await api.post("/jobs/bulk", json={"jobs": [*jobs, {"type": "mail.welcome", "payload": {}}]})
    assert (refused.status_code, refused.json()["field"]) == (422, "jobs[100].user_id")
    assert (await api.post("/jobs/bulk", json={"jobs": []})).status_code == 422
    many = await api.post("/jobs/bulk", json={"jobs": jobs * 11})
    assert (many.status_code, many.json()["limit"]) == (413, 1000)
    assert (await api.get("/stats")).json()["totals"]["pending"] == 100


async def test_a_list_goes_on_by_a_cursor_that_is_bound_to_its_filter(api: Client) -> None:
    ids = [await enqueue(api, number) for number in range(5)]
    first = (await api.get("/jobs", params={"limit": 3})).json()
    rest = (await api.get("/jobs", params={"limit": 3, "cursor": first["next_cursor"]})).json()
    assert [job["id"] for job in first["jobs"] + rest["jobs"]] == ids[::-1]
    assert rest["next_cursor"] is None
    other = await api.get("/jobs", params={"limit": 3, "queue": "images", "cursor": first["next_cursor"]})
    assert (other.status_code, other.json()["code"]) == (400, "invalid_cursor")
    assert (await api.get("/jobs", params={"cursor": "rubbish!"})).status_code == 400
    assert (await api.get("/jobs", params={"status": "pending,dead", "type": "mail.welcome"})).json()["jobs"]
    assert (await api.get("/jobs", params={"status": "sleeping"})).status_code == 422
    assert (await api.get("/jobs", params={"colour": "red"})).json()["field"] == "colour"


async def test_a_job_is_changed_only_at_the_state_that_was_seen(api: Client) -> None:
    id_ = await enqueue(api)
    seen = await api.get(f"/jobs/{id_}")
    changed = await api.patch(f"/jobs/{id_}", json={"priority": 5}, headers={"if-match": seen.headers["etag"]})
    assert (changed.status_code, changed.json()["priority"]) == (200, 5)
    again = await api.patch(f"/jobs/{id_}", json={"priority": 6}, headers={"if-match": seen.headers["etag"]})
    assert (again.status_code, again.json()["code"]) == (412, "changed_since")
    assert (await api.get(f"/jobs/{id_}")).json()["priority"] == 5


async def test_a_waiting_job_is_cancelled_retried_run_and_purged(api: Client) -> None:
    id_ = await enqueue(api, delay=3600)
    assert (await api.post(f"/jobs/{id_}/run")).json()["status"] == "pending"
    assert (await api.delete(f"/jobs/{id_}")).json()["status"] == "cancelled"
    assert (await api.patch(f"/jobs/{id_}", json={"priority": 1})).json()["code"] == "not_allowed_now"
    assert (await api.post(f"/jobs/{id_}/retry")).json()["status"] == "pending"
    assert (await api.delete(f"/jobs/{id_}", params={"purge": True})).status_code == 409
    await api.delete(f"/jobs/{id_}")
    assert (await api.delete(f"/jobs/{id_}", params={"purge": True})).status_code == 204
    assert (await api.get(f"/jobs/{id_}")).json()["code"] == "job_not_found"
    assert (await api.get("/jobs/no-id-at-all")).status_code == 404


async def test_why_says_what_a_job_waits_for(api: Client) -> None:
    id_ = await enqueue(api)
    reasons = (await api.get(f"/jobs/{id_}/why")).json()["reasons"]
    assert reasons[0]["code"] == "no_worker"


async def test_all_matching_jobs_are_cancelled_by_an_action(api: Client) -> None:
    for number in range(3):
        await enqueue(api, number)
    kept = (await api.post("/jobs", json={"type": "img.resize", "payload": {"path": "x"}})).json()["id"]
    started = await api.post("/jobs/cancel", json={"type": "mail.welcome"})
    assert started.status_code == 202
    action = started.json()
    async with asyncio.timeout(10):
        while action["state"] != "done":
            action = (await api.get(f"/actions/{action['id']}")).json()
    assert (action["seen"], action["changed"]) == (3, 3)
    assert (await api.get(f"/jobs/{kept}")).json()["status"] == "pending"
    assert (await api.post("/jobs/cancel", json={})).json()["field"] == "filter"
    assert [each["id"] for each in (await api.get("/actions")).json()["actions"]] == [action["id"]]


async def test_contents_are_hidden_without_the_scope_for_them(api: Client, connect: Connect) -> None:
    id_ = await enqueue(api, meta={"secret": "s3cr3t"})
    reader = await connect("read")
    seen = await reader.get(f"/jobs/{id_}")
    listed = await reader.get("/jobs")
    assert seen.json()["payload"] is None
    assert seen.json()["hidden"] == ["payload", "result", "logs", "meta", "progress.note"]
    assert "s3cr3t" not in seen.text + listed.text
    both = await connect("read", "payloads")
    assert (await both.get(f"/jobs/{id_}")).json()["payload"] == {"user_id": 1}


async def test_the_note_of_a_progress_is_hidden_with_the_log_lines(app: App, connect: Connect) -> None:
    job = await running(await app._ready())
    progress = Progress(1, 2, "s3cr3t note")
    note = Note(id=job.id, queue=job.queue, attempt=1, progress=progress)
    await (await app._ready()).jobs.note([note])
    seen = {}
    for scopes in (("read",), ("operate",), ("read", "payloads")):
        client = await connect(*scopes)
        paths = (f"/jobs/{job.id}", f"/jobs/{job.id}/why", f"http://windlass/jobs/{job.id}")
        seen[scopes[-1]] = ["s3cr3t" in (await client.get(path)).text for path in paths]
    assert (seen["read"], seen["operate"]) == ([False] * 3, [False] * 3)
    assert seen["payloads"] == [True] * 3


async def test_a_search_finds_by_type_error_and_payload(app: App, api: Client, connect: Connect) -> None:
    one = await enqueue(api, 42, tags=["vip"])
    two = await enqueue(api, 43)
    answer = await api.get("/jobs", params={"q": "type:mail.* payload.user_id:42"})
    assert [job["id"] for job in answer.json()["jobs"]] == [one]
    answer = await api.get("/jobs", params={"q": "type:*welcome", "limit": 1})
    assert [job["id"] for job in answer.json()["jobs"]] == [two]
    again = {"q": "type:*welcome", "limit": 1, "cursor": answer.json()["next_cursor"]}
    assert [job["id"] for job in (await api.get("/jobs", params=again)).json()["jobs"]] == [one]
    other = await api.get("/jobs", params={**again, "q": "type:mail*"})
    assert (other.status_code, other.json()["field"]) == (400, "cursor")
    reader = await connect("read")
    refused = await reader.get("/jobs", params={"q": "payload.user_id:42"})
    assert (refused.status_code, refused.json()["code"]) == (403, "missing_scope")
    limited = await connect("admin", queues=["other"])
    assert (await limited.get("/jobs", params={"q": "payload.user_id:42"})).json()["jobs"] == []


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"q": "colour:red"}, "q"),
        ({"q": "status:none"}, "q"),
        ({"q": "id:beef1"}, "q"),
        ({"q": "type:a", "type": "b"}, "type"),
        ({"q": "payload.a.:1"}, "q"),
        ({"sort": "failure"}, "sort"),
        ({"sort": "failure", "status": "pending"}, "sort"),
        ({"sort": "age"}, "sort"),
        ({"q": "type:a*", "limit": 0}, "limit"),
    ],
)
async def test_a_search_that_cannot_be_read_names_the_field(api: Client, query: dict[str, Any], field: str) -> None:
    answer = await api.get("/jobs", params=query)
    assert (answer.status_code, answer.json()["field"]) == (422, field)
