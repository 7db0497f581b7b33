"""Bad input over HTTP: each row has its status and code, and nothing is stored."""

import json
from typing import Any

from tests.server.conftest import Client, Connect, enqueue
from windlass import App

MAIL = {"type": "mail.welcome", "payload": {"user_id": 1}}
IMAGE = "img.resize"
DEEP = b'{"type": "img.resize", "payload": {"path": ' + b"[" * 70 + b"]" * 70 + b"}}"
ID = "01a1e959-d997-70d9-8b7b-43fd9fe3b0dc"

JOBS: list[tuple[str, bytes | dict[str, Any], int, str]] = [
    ("a lone surrogate", b'{"type": "img.resize", "payload": {"path": "\\ud800"}}', 422, "invalid_payload"),
    ("half a pair", b'{"type": "img.resize", "payload": {"path": "\\ud83d\\u0041"}}', 422, "invalid_payload"),
    ("NaN", b'{"type": "img.resize", "payload": {"path": NaN}}', 422, "invalid_payload"),
    ("an infinite number", b'{"type": "mail.welcome", "payload": {"user_id": 1e999}}', 422, "invalid_payload"),
    ("2^63", {"type": "mail.welcome", "payload": {"user_id": 2**63}}, 422, "invalid_payload"),
    (
        "4,301 digits",
        b'{"type": "mail.welcome", "payload": {"user_id": ' + b"1" * 4301 + b"}}",
        422,
        "invalid_payload",
    ),
    ("a key twice", b'{"type": "img.resize", "payload": {"path": "a", "path": "b"}}', 422, "invalid_payload"),
    ("a depth of 70", DEEP, 422, "invalid_payload"),
    ("no object", {"type": IMAGE, "payload": "x"}, 422, "invalid_payload"),
    ("an unknown task", {"type": "nobody.knows"}, 422, "unknown_task"),
    ("a type of Python", {"type": "os.system"}, 422, "unknown_task"),
    ("a type with two dots", {"type": "a b..c"}, 422, "invalid_name"),
    *[
        (f"queue {name!r}", {**MAIL, "queue": name}, 422, "invalid_name")
        for name in (
            "",
            "q" * 129,
            "a b",
            "a\n",
            "{x}",
            "*",
            "../x",
            "'; DROP TABLE",
            '"',
            "\\",
            "😀",
            "a\u202eb",
            "\0",
        )
    ],
    ("a queue with a script", {**MAIL, "queue": "<script>alert(1)</script>"}, 422, "invalid_name"),
    *[
        (f"run_at {text}", {**MAIL, "run_at": text}, 422, code)
        for text, code in (
            ("2026-01-01T00:00:00", "invalid_time"),
            ("0001-01-01T00:00:00Z", "invalid_time"),
            ("9999-12-31T00:00:00Z", "invalid_time"),
            ("10000-01-01T00:00:00Z", "invalid_option"),
            ("infinity", "invalid_option"),
        )
    ],
    ("a delay of -1", {**MAIL, "delay": -1}, 422, "invalid_time"),
    ("a delay of 1e300", {**MAIL, "delay": 1e300}, 422, "invalid_time"),
    ("a delay as text", {**MAIL, "delay": "5"}, 422, "invalid_option"),
    ("a delay that is true", {**MAIL, "delay": True}, 422, "invalid_option"),
    *[
        (f"priority {value!r}", {**MAIL, "priority": value}, 422, "invalid_option")
        for value in (32768, -32769, 1.5, "1", True)
    ],
    *[(f"max_attempts {n}", {**MAIL, "max_attempts": n}, 422, "invalid_option") for n in (0, -1, 10**9, 10**30)],
    *[(f"timeout {n}", {**MAIL, "timeout": n}, 422, "invalid_time") for n in (-1, 10**12)],
    ("an empty key", {**MAIL, "idempotency_key": ""}, 422, "invalid_name"),
    ("a key with NUL", {**MAIL, "idempotency_key": "a\0b"}, 422, "invalid_name"),
    ("an id that is none", {**MAIL, "id": "../"}, 422, "invalid_name"),
    ("an id of 100 kB", {**MAIL, "id": "x" * 100_000}, 422, "invalid_name"),
    ("1,001 tags", {**MAIL, "tags": [f"t{n}" for n in range(1001)]}, 422, "invalid_option"),
    ("a tag of 10 kB", {**MAIL, "tags": ["x" * 10_000]}, 422, "invalid_name"),
    ("a key rate of nothing", {**MAIL, "concurrency_key": "k", "key_rate": "0/s"}, 422, "invalid_option"),
    ("trailing data", json.dumps(MAIL).encode() + b" x", 400, "invalid_json"),
    ("two documents", json.dumps(MAIL).encode() * 2, 400, "invalid_json"),
]
SCHEDULES = [
    *[(cron, 422) for cron in ("* * * *", "60 * * * *", "@reboot", "* " * 5000, "*/0 * * * *", "5-1 * * * *")],
    *[(cron, 422) for cron in ("1,,2 * * * *", "٣ * * * *", "0 0 31 2 *", "0 0 30 2 *")],
]


async def test_a_bad_job_has_its_status_and_code_and_nothing_is_stored(api: Client, app: App) -> None:
    wrong = []
    for name, body, status, code in JOBS:
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        answer = await api.post("/jobs", content=text, headers={"content-type": "application/json"})
        found = answer.status_code, answer.json().get("code")
        if found != (status, code) or answer.headers["content-type"] != "application/problem+json":
            wrong.append((name, found, answer.text[:200]))
    assert wrong == []
    assert sum((await app.stats.acounts()).totals.values()) == 0


async def test_a_changed_payload_is_read_as_strictly_as_a_new_one(api: Client, app: App) -> None:
    id_ = await enqueue(api, delay=60)
    before = await app.jobs.aget(id_)
    payloads = (b'{"user_id": 1, "user_id": 2}', b'{"user_id": 1e999}', rb'{"user_id": 1, "lang": "\ud800"}', b"null")
    for text in payloads:
        for method, path in (("PATCH", ""), ("POST", "/retry")):
            answer = await api.request(
                method,
                f"/jobs/{id_}{path}",
                content=b'{"payload": ' + text + b"}",
                headers={"content-type": "application/json"},
            )
            assert (answer.status_code, answer.json()["code"]) == (422, "invalid_payload"), (text, path, answer.text)
    assert await app.jobs.aget(id_) == before


async def test_what_exceeds_a_limit_is_refused_with_the_limit(api: Client, app: App) -> None:
    large = {"type": IMAGE, "payload": {"path": "x" * 70_000}}
    deep: Any = "x"
    for _ in range(65):
        deep = [deep]
    requests: list[tuple[dict[str, Any], int, str, int]] = [
        (large, 413, "payload", 64 * 1024),
        ({"jobs": [MAIL, large]}, 413, "jobs[1].payload", 64 * 1024),
        ({**MAIL, "meta": {"x": "x" * 70_000}}, 413, "meta", 64 * 1024),
        ({**MAIL, "meta": {"x": deep}}, 422, "meta", 64),
        ({**MAIL, "queue": "q" * 129}, 422, "queue", 128),
        ({**MAIL, "idempotency_key": "k" * 4097}, 422, "idempotency_key", 4096),
        ({**MAIL, "tags": [f"t{n}" for n in range(33)]}, 422, "tags", 32),
        ({"jobs": [MAIL] * 1_001}, 413, "", 1_000),
    ]
    for body, status, field, limit in requests:
        answer = await api.post("/jobs/bulk" if "jobs" in body else "/jobs", json=body)
        found = answer.json()
        assert (answer.status_code, found.get("field", ""), found["limit"]) == (status, field, limit), answer.text
    long = await api.post("/jobs", json=MAIL, headers={"idempotency-key": "k" * 256})
    assert (long.status_code, long.json()["field"], long.json()["limit"]) == (422, "Idempotency-Key", 255)
    assert sum((await app.stats.acounts()).totals.values()) == 0


async def test_odd_input_that_is_legal_is_kept_as_it_is(api: Client) -> None:
    payloads = [
        b'{"path": "\\u0000"}',
        b'{"path": "b\\u2028"}',
    ]
    for text in payloads:
        body = b'{"type": "img.resize", "payload": ' + text + b"}"
        answer = await api.post("/jobs", content=body, headers={"content-type": "application/json"})
        assert answer.status_code == 201, answer.text
        assert (await api.get(f"/jobs/{answer.json()['id']}")).json()["payload"] == json.loads(text)
    big = await enqueue(api, 2**53 + 1)
    assert str(2**53 + 1) in (await api.get(f"/jobs/{big}")).text


async def test_a_batch_has_1_to_1000_jobs_and_is_stored_whole_or_not(api: Client, app: App) -> None:
    for jobs, status, code in (
        ([], 422, "invalid_option"),
        ([MAIL] * 1_001, 413, "too_many_jobs"),
        ([MAIL] * 99 + [{**MAIL, "priority": 10**6}], 422, "invalid_option"),
        (
            [{**MAIL, "id": ID, "idempotency_key": "a"}, {**MAIL, "on_conflict": "raise", "idempotency_key": "a"}],
            409,
            "key_conflict",
        ),
    ):
        answer = await api.post("/jobs/bulk", json={"jobs": jobs})
        assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
        if len(jobs) == 100:
            assert answer.json()["field"] == "jobs[99].priority"
    assert sum((await app.stats.acounts()).totals.values()) == 0


async def test_a_bad_schedule_is_refused_at_once(api: Client) -> None:
    for cron, status in SCHEDULES:
        answer = await api.post("/schedules", json={"name": "s", **MAIL, "cron": cron})
        assert (answer.status_code, answer.json()["field"]) == (status, "cron"), answer.text[:300]
    for zone in ("Mars/Base", "../../etc/passwd"):
        answer = await api.post("/schedules", json={"name": "s", **MAIL, "cron": "0 9 * * *", "tz": zone})
        assert (answer.status_code, answer.json()["field"]) == (422, "tz"), answer.text
    assert (await api.get("/schedules")).json()["schedules"] == []


async def test_a_bad_query_is_refused_with_its_parameter(api: Client) -> None:
    for query, status in (
        ("limit=99999999", 422),
        ("limit=-1", 422),
        ("limit=abc", 422),
        ("limit=1e9", 422),
        ("cursor=forged", 400),
        ("sort=;--", 422),
        ("status=lost", 422),
        ("queue=a%20b", 422),
        ("type=%00", 422),
        ("limit=1&limit=2", 422),
    ):
        answer = await api.get(f"/jobs?{query}")
        assert answer.status_code == status, (query, answer.text)
        assert answer.json()["field"].partition("[")[0] == query.partition("=")[0], answer.text
    for path in ("/jobs/..%2f", "/jobs/x", "/queues/a%20b", "/queues/%3Cscript%3E", "/schedules/a%0ab"):
        assert (await api.get(path)).status_code in (404, 422), path


async def test_credentials_belong_into_a_header_and_no_other_method_hides_in_one(
    api: Client, connect: Connect, app: App
) -> None:
    token = (await app.tokens.acreate("t", ["admin"])).text
    reader = await connect("read")
    id_ = await enqueue(api)
    for query in (f"token={token}", f"access_token={token}", f"api_key={token}"):
        refused = await api.get(f"/jobs?{query}", headers={"authorization": ""})
        assert refused.status_code == 401
        assert token not in refused.text
    assert (await reader.post("/jobs", json=MAIL)).json()["code"] == "missing_scope"
    override = {"x-http-method-override": "DELETE", "x-method-override": "DELETE"}
    assert (await reader.get(f"/jobs/{id_}", headers=override)).status_code == 200
    assert (await api.get(f"/jobs/{id_}", headers=override)).json()["status"] == "pending"
    options = await api.options("/jobs", headers={"origin": "https://evil.example"})
    assert (options.status_code, options.headers["allow"]) == (405, "GET, HEAD, POST")


async def test_a_reason_is_bounded_text(api: Client) -> None:
    id_ = await enqueue(api)
    for reason in ("x" * 1_001, "a\0b"):
        one = await api.delete(f"/jobs/{id_}", params={"reason": reason})
        many = await api.post("/jobs/cancel", json={"queue": "default", "reason": reason})
        kind = await api.post("/jobs/cancel", json={"queue": "default", "error": reason})
        for answer, field in ((one, "reason"), (many, "reason"), (kind, "error")):
            assert (answer.status_code, answer.json()["field"]) == (422, field), answer.text[:200]
    assert (await api.get("/actions")).json()["actions"] == []
    assert (await api.get(f"/jobs/{id_}")).json()["status"] == "pending"
