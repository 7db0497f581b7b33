"""Tokens: scopes, limits, revocation, and what is answered without one."""

import asyncio
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from tests.server.conftest import Client, Connect, enqueue
from tests.support.addresses import on_sqlite
from windlass import App
from windlass.core.moments import SECOND
from windlass.errors import StoreUnavailable
from windlass.server import access, asgi
from windlass.server.application import OPERATIONS
from windlass.server.operation import PREFIX, Operation
from windlass.server.workers import long_polls

NEEDED = {
    "read": [("GET", "/jobs"), ("GET", "/queues"), ("GET", "/stats"), ("GET", "/workers")],
    "enqueue": [("POST", "/jobs"), ("POST", "/jobs/bulk")],
    "operate": [("POST", "/queues/default/pause"), ("POST", "/jobs/cancel"), ("POST", "/schedules")],
    "admin": [("GET", "/audit")],
}


def _stranger(served: Starlette, **headers: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(served), base_url="http://windlass", headers=headers)


def _filled(path: str) -> str:
    return path.replace("{id}", "01a1e88a-0725-743b-b420-c7b4decadc37").replace("{name}", "default")


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.id)
async def test_every_path_needs_a_token(served: Starlette, operation: Operation) -> None:
    async with _stranger(served) as client:
        answer = await client.request(operation.method, PREFIX + _filled(operation.path))
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
    assert answer.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize("name", ["openapi.json", "docs"])
async def test_the_documentation_needs_a_token_too(served: Starlette, api: Client, name: str) -> None:
    async with _stranger(served) as client:
        assert (await client.get(f"{PREFIX}/{name}")).status_code == 401
    assert (await api.get(f"/{name}")).status_code == 200


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/startupz"])
async def test_probes_answer_anyone_and_say_only_ok(served: Starlette, path: str) -> None:
    async with _stranger(served) as client:
        answer = await client.get(path)
    assert (answer.status_code, answer.text) == (200, "ok\n")


async def test_a_server_that_was_ready_has_started_whatever_becomes_of_its_store(
    app: App, served: Starlette, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away() -> None:
        raise StoreUnavailable("away")

    async with _stranger(served) as client:
        assert (await client.get("/readyz")).status_code == 200
        monkeypatch.setattr(app.workers, "alist", away)
        assert [(await client.get(path)).status_code for path in ("/readyz", "/startupz")] == [503, 200]


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer wl_x", "Basic dXNlcjpwYXNz", "Bearer wl_0123456789ab_" + "0" * 64, "Bearer \x00"]
)
async def test_a_wrong_token_is_refused(served: Starlette, header: str) -> None:
    async with _stranger(served) as client:
        answer = await client.get(f"{PREFIX}/jobs", headers=[(b"authorization", header.encode("latin-1"))])
    assert answer.status_code == 401


@pytest.mark.parametrize("scope", sorted(NEEDED))
async def test_each_scope_opens_its_own_paths_and_no_others(connect: Connect, api: Client, scope: str) -> None:
    await enqueue(api)
    includes = {scope, "operate"} if scope == "read" else {scope}
    others = await connect(*({"read", "enqueue", "operate", "work"} - includes))
    own = await connect(scope)
    for method, path in NEEDED[scope]:
        refused = await others.request(method, path, json={})
        allowed = await own.request(method, path, json={})
        assert (refused.status_code, refused.json()["code"]) == (403, "missing_scope"), path
        assert allowed.status_code not in (401, 403), path


async def test_a_limited_token_sees_and_does_nothing_outside_its_queues(
    api: Client, app: App, connect: Connect
) -> None:
    mine = await enqueue(api)
    other = (await api.post("/jobs", json={"type": "img.resize", "payload": {"path": "x"}})).json()["id"]
    await api.post("/schedules", json={"name": "theirs", "type": "img.resize", "payload": {"path": "x"}, "every": 60})
    limited = await connect("read", "enqueue", "operate", "admin", queues=["default"])
    assert [job["id"] for job in (await limited.get("/jobs")).json()["jobs"]] == [mine]
    assert (await limited.get("/jobs", params={"queue": "images"})).json()["jobs"] == []
    for method, path in [("GET", ""), ("GET", "/why"), ("DELETE", ""), ("POST", "/retry"), ("POST", "/run")]:
        assert (await limited.request(method, f"/jobs/{other}{path}")).status_code == 404, path
    assert (await limited.patch(f"/jobs/{mine}", json={"queue": "images"})).json()["code"] == "outside_limits"
    assert (await limited.post("/jobs", json={"type": "img.resize", "payload": {"path": "x"}})).status_code == 403
    child = {"type": "mail.welcome", "payload": {"user_id": 1}, "parent": other}
    assert (await limited.post("/jobs", json=child)).status_code == 404
    assert [queue["name"] for queue in (await limited.get("/queues")).json()["queues"]] == ["default"]
    assert (await limited.post("/queues/images/pause")).status_code == 404
    assert set((await limited.get("/stats")).json()["queues"]) == {"default"}
    assert set((await limited.get("/scale")).json()["queues"]) == {"default"}
    assert (await limited.get("/stats", params={"since": 60})).status_code == 403
    assert (await limited.get("/schedules")).json()["schedules"] == []
    assert (await limited.post("/schedules/theirs/run")).status_code == 404
    assert (await limited.get("/audit")).json()["entries"] == []
    action = (await limited.post("/jobs/cancel", json={"all": True})).json()
    async with asyncio.timeout(10):
        while action["state"] != "done":
            action = (await limited.get(f"/actions/{action['id']}")).json()
    assert action["changed"] == 1
    assert (await app.jobs.aget(other)).status == "pending"


async def test_a_token_limited_to_types_sees_only_those(api: Client, connect: Connect) -> None:
    mine = await enqueue(api)
    await api.post("/jobs", json={"type": "img.resize", "payload": {"path": "x"}, "queue": "default"})
    limited = await connect("read", "enqueue", types=["mail.welcome"])
    assert [job["id"] for job in (await limited.get("/jobs")).json()["jobs"]] == [mine]
    assert [each["type"] for each in (await limited.get("/types")).json()["types"]] == ["mail.welcome"]
    refused = await limited.post("/jobs", json={"type": "img.resize", "payload": {"path": "x"}})
    assert refused.json()["code"] == "outside_limits"


async def test_a_revoked_token_ends_and_a_rotated_one_has_a_new_text(
    app: App, served: Starlette, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "FRESH", 0)
    new = await app.tokens.acreate("t", ["read"])
    async with _stranger(served) as client:

        async def status(text: str) -> int:
            headers = {"authorization": f"Bearer {text}"}
            return (await client.get(f"{PREFIX}/jobs", headers=headers)).status_code

        assert await status(new.text) == 200
        rotated = await app.tokens.arotate(new.token.id)
        assert [await status(new.text), await status(rotated.text)] == [401, 200]
        await app.tokens.arevoke(new.token.id)
        assert await status(rotated.text) == 401


def test_a_check_of_a_token_is_believed_for_less_than_five_seconds() -> None:
    assert access.FRESH < 5_000_000


async def test_many_wrong_tokens_from_one_address_are_held_back(served: Starlette, api: Client) -> None:
    await api.get("/jobs")
    async with _stranger(served) as client:
        answers = [
            await client.get(f"{PREFIX}/jobs", headers={"authorization": f"Bearer wl_{n:012x}_{'0' * 64}"})
            for n in range(12)
        ]
    assert [each.status_code for each in answers] == [401] * 10 + [429] * 2
    assert int(answers[-1].headers["retry-after"]) >= 1
    assert (await api.get("/jobs")).status_code == 200, "a token that is known goes on"


async def test_each_token_has_its_own_rate(app: App) -> None:
    served = asgi(app, rate="3/m")
    texts = [(await app.tokens.acreate(name, ["read"])).text for name in ("a", "b")]
    async with served.router.lifespan_context(served), _stranger(served) as client:

        async def status(text: str) -> int:
            return (await client.get(f"{PREFIX}/jobs", headers={"authorization": f"Bearer {text}"})).status_code

        assert [await status(texts[0]) for _ in range(4)] == [200, 200, 200, 429]
        assert await status(texts[1]) == 200


async def test_no_answer_and_no_record_holds_the_text_of_a_token(app: App, api: Client) -> None:
    new = await app.tokens.acreate("secret-keeper", ["read"])
    secret = new.text.rpartition("_")[2]
    store = await app._ready()
    documents = [*await store.documents.list("token", 10), *await store.documents.list("audit", 10)]
    assert documents
    assert not any(secret in each.data for each in documents)
    assert secret not in (await api.get("/audit")).text


async def test_every_answer_has_safe_headers(api: Client) -> None:
    for answer in (await api.get("/jobs"), await api.get("/nowhere"), await api.put("/jobs")):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "access-control-allow-origin" not in answer.headers


async def test_the_id_of_a_request_is_the_callers_if_it_is_a_plain_word(api: Client) -> None:
    given = await api.get("/jobs", headers={"x-request-id": "abc-1"})
    odd: Any = await api.get("/jobs", headers={"x-request-id": "a b\tc"})
    assert given.headers["x-request-id"] == "abc-1"
    assert odd.headers["x-request-id"] != "a b\tc"


@on_sqlite
async def test_a_waiting_claim_ends_within_five_seconds_after_its_token_is_revoked(
    app: App, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert access.FRESH + long_polls.CHECK_SECONDS * SECOND <= 5 * SECOND
    monkeypatch.setattr(long_polls, "CHECK_SECONDS", 0.05)
    monkeypatch.setattr(access, "FRESH", 0)
    body = {"worker": "w1", "claim": 1, "queues": ["default"], "types": ["mail.welcome"], "wait": 30}
    waiting = asyncio.create_task((await connect("work")).post("/claims", json=body))
    await asyncio.sleep(0.3)
    for token in await app.tokens.alist():
        await app.tokens.arevoke(token.id)
    assert (await waiting).status_code == 401
