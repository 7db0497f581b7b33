"""What a server keeps from every caller: changes if it is read-only, and fields that are hidden by configuration."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from tests.support.addresses import on_sqlite
from windlass import App, JobDead
from windlass.core.codec import decode
from windlass.core.hidden import HIDDEN
from windlass.server import asgi
from windlass.server.application import OPERATIONS

SECRET = "hunter2-of-this-test"
ORDER = {"user": 1, "password": SECRET, "card": {"number": SECRET, "kind": "visa"}}


@asynccontextmanager
async def _client(app: App, *scopes: str, **settings: Any) -> AsyncIterator[httpx.AsyncClient]:
    served = asgi(app, **settings)
    token = (await app.tokens.acreate("test", scopes)).text
    headers = {"authorization": f"Bearer {token}"}
    transport = httpx.ASGITransport(served, raise_app_exceptions=False)
    async with (
        served.router.lifespan_context(served),
        httpx.AsyncClient(transport=transport, base_url="http://windlass/api/v1", headers=headers) as made,
    ):
        yield made


@pytest.fixture
async def app(address: str) -> AsyncIterator[App]:
    made = App(address)
    yield made
    await made.aclose()


def _filled(path: str) -> str:
    return path.format(id="01a1e88a-0725-743b-b420-c7b4decadc37", name="mail", worker="w", part="payload")


@on_sqlite
async def test_a_read_only_server_refuses_every_change(app: App) -> None:
    id_ = (await app.aenqueue("mail", {"n": 1}, delay=60)).id
    async with _client(app, "admin", read_only=True) as admin:
        for each in OPERATIONS:
            path = _filled(each.path) + ("?seconds=0" if each.media_type == "text/event-stream" else "")
            answer = await admin.request(each.method, path, json={} if each.method != "GET" else None)
            if each.method != "GET":
                assert (answer.status_code, answer.json()["code"]) == (403, "read_only"), each.path
            elif each.scope != "work":
                assert answer.status_code in (200, 404, 422), each.path
        assert (await admin.get(f"/jobs/{id_}")).json()["payload"] == {"n": 1}
    assert (await app.jobs.aget(id_)).status == "scheduled"


async def test_hidden_fields_are_in_no_answer(app: App) -> None:
    id_ = (await app.aenqueue("pay", ORDER, delay=60, meta={"password": SECRET})).id
    await app.jobs.achange(id_, payload={**ORDER, "user": 2})
    async with _client(app, "admin") as admin:
        nightly = {"name": "nightly", "type": "pay", "payload": ORDER, "every": 3600}
        assert (await admin.post("/schedules", json=nightly)).status_code == 201
    async with _client(app, "admin", hide=["PASSWORD", "card.number"]) as admin:
        job = (await admin.get(f"/jobs/{id_}")).json()
        assert job["payload"] == {"user": 2, "password": HIDDEN, "card": {"number": HIDDEN, "kind": "visa"}}
        assert job["meta"] == {"password": HIDDEN}
        for path in (
            f"/jobs/{id_}",
            "/jobs",
            f"/jobs/{id_}/links",
            f"/jobs/{id_}/payloads",
            f"/jobs/{id_}/why",
            "/schedules",
            "/audit",
        ):
            answer = await admin.get(path)
            assert answer.status_code == 200, path
            assert SECRET not in answer.text, path
        assert (await admin.get(f"/jobs/{id_}/payloads")).json()["payloads"][0]["payload"]["user"] == 1
    assert (await app.jobs.aget(id_)).payload == {**ORDER, "user": 2}


async def test_an_edited_payload_keeps_its_hidden_fields(app: App) -> None:
    id_ = (await app.aenqueue("pay", ORDER, delay=60)).id
    async with _client(app, "admin", hide=["password", "card.number"]) as admin:
        seen = (await admin.get(f"/jobs/{id_}")).json()["payload"]
        answer = await admin.patch(f"/jobs/{id_}", json={"payload": {**seen, "user": 7}})
        assert answer.status_code == 200
        assert SECRET not in answer.text
        assert (await app.jobs.aget(id_)).payload == {**ORDER, "user": 7}
        moved = {"user": 7, "other": {"password": HIDDEN}}
        refused = await admin.patch(f"/jobs/{id_}", json={"payload": moved})
        assert (refused.status_code, refused.json()["field"]) == (422, "other.password")
        copied = await admin.post("/jobs", json={"type": "pay", "payload": seen})
        assert (copied.status_code, copied.json()["field"]) == (422, "password")


async def test_a_copied_job_stores_no_placeholder_in_its_meta(app: App) -> None:
    id_ = (await app.aenqueue("pay", {"n": 1}, delay=60, meta={"password": SECRET, "team": "a"})).id
    async with _client(app, "admin", hide=["password"]) as admin:
        meta = (await admin.get(f"/jobs/{id_}")).json()["meta"]
        copied = await admin.post("/jobs", json={"type": "pay", "meta": meta})
        assert (copied.status_code, copied.json()["field"]) == (422, "meta.password")
        both = await admin.post("/jobs/bulk", json={"jobs": [{"type": "pay"}, {"type": "pay", "meta": meta}]})
        assert (both.status_code, both.json()["field"]) == (422, "jobs[1].meta.password")
        assert sum((await app.stats.acounts()).totals.values()) == 1, "nothing was stored"
        given = await admin.post("/jobs", json={"type": "pay", "meta": {"password": "new", "note": HIDDEN}})
        assert given.status_code == 201, "a field that is not hidden may have any text"
    assert (await app.jobs.aget(given.json()["id"])).meta == {"password": "new", "note": HIDDEN}


@on_sqlite
async def test_earlier_payloads_need_the_scope_payloads(app: App) -> None:
    id_ = (await app.aenqueue("pay", ORDER, delay=60)).id
    async with _client(app, "operate") as operator:
        assert (await operator.patch(f"/jobs/{id_}", json={"payload": {}})).status_code == 200
        answer = await operator.get(f"/jobs/{id_}/payloads")
        assert (answer.status_code, answer.json()["code"]) == (403, "missing_scope")
    async with _client(app, "read", "payloads") as reader:
        (kept,) = (await reader.get(f"/jobs/{id_}/payloads")).json()["payloads"]
        assert kept["payload"] == ORDER
        assert kept["actor"]["source"] == "rest"


async def test_a_failed_job_is_retried_with_another_payload_and_the_old_one_is_kept(app: App) -> None:
    @app.task(type="charge", max_attempts=1)
    async def charge(amount: int) -> None:
        raise ValueError(amount)

    async with app.worker(), _client(app, "admin") as admin:
        handle = await charge.aenqueue(1)
        id_ = handle.id
        with pytest.raises(JobDead):
            await handle.aresult(30)
        wrong = await admin.post(f"/jobs/{id_}/retry", json={"payload": {"amount": "x"}})
        assert (wrong.status_code, wrong.json()["field"]) == (422, "amount")
        answer = await admin.post(f"/jobs/{id_}/retry", json={"payload": {"amount": 2}})
        assert answer.json()["payload"] == {"amount": 2}
        kept = (await admin.get(f"/jobs/{id_}/payloads")).json()["payloads"]
        assert [each["payload"] for each in kept] == [{"amount": 1}]
        with pytest.raises(JobDead, match="2"):
            await handle.aresult(30)


async def test_a_changed_schedule_keeps_the_hidden_fields_of_its_job(app: App) -> None:
    given = {"type": "pay", "payload": ORDER, "meta": {"password": SECRET, "team": "a"}}
    async with _client(app, "admin", hide=["password", "card.number"]) as admin:
        assert (await admin.post("/schedules", json={"name": "nightly", "every": 60, **given})).status_code == 201
        shown = (await admin.get("/schedules/nightly")).json()["settings"]
        assert shown["meta"] == {"password": HIDDEN, "team": "a"}
        patch = {**{name: shown[name] for name in given}, "priority": 3}
        assert (await admin.patch("/schedules/nightly", json=patch)).status_code == 200
        other = await admin.patch("/schedules/nightly", json={**patch, "type": "bill", "payload": {}})
        assert (other.status_code, other.json()["field"]) == (422, "password")
    job = (await app.schedules.aget("nightly")).rules.job
    assert (decode(job.payload), decode(job.meta or "{}"), job.priority) == (ORDER, given["meta"], 3)


async def test_hidden_fields_are_not_searched(app: App) -> None:
    await app.aenqueue("pay", ORDER, delay=60)
    async with _client(app, "admin", hide=["password", "card.number"]) as admin:
        for path in ("password", "card.number", "Password", "card.number.x"):
            answer = await admin.get("/jobs", params={"q": f"payload.{path}:{SECRET}"})
            assert (answer.status_code, answer.json()["field"]) == (422, f"payload.{path}")
        assert len((await admin.get("/jobs", params={"q": "payload.card.kind:visa"})).json()["jobs"]) == 1


@on_sqlite
async def test_a_hidden_field_with_a_number_in_its_path_is_not_searched(app: App) -> None:
    await app.aenqueue("pay", {"1": {"token": SECRET}, "users": {"42": [{"pin": SECRET}]}, "77": SECRET}, delay=60)
    async with _client(app, "admin", hide=["*.token", "users.42.pin", "77"]) as admin:
        assert SECRET not in (await admin.get("/jobs")).text
        for path in ("1.token", "users.42.pin", "users.42.0.pin", "77"):
            answer = await admin.get("/jobs", params={"q": f"payload.{path}:{SECRET}"})
            assert (answer.status_code, answer.json()["field"]) == (422, f"payload.{path}"), path


async def test_where_a_search_ends_says_nothing_of_hidden_fields(app: App) -> None:
    for n in range(12):
        await app.aenqueue("pay", {"note": f"note {n % 2}", "password": SECRET}, delay=60)
    async with _client(app, "admin", hide=["password"]) as admin:
        for guess in (SECRET, "another"):
            page = (await admin.get("/jobs", params={"q": f"payload.note:{guess}", "limit": 1})).json()
            assert page == {"jobs": [], "next_cursor": None, "searched_since": None}
        found: list[str] = []
        cursor: str | None = ""
        while cursor is not None:
            query: dict[str, str] = {"q": 'payload.note:"note 1"', "limit": "4", "cursor": cursor}
            page = (await admin.get("/jobs", params=query)).json()
            found += [job["id"] for job in page["jobs"]]
            cursor = page["next_cursor"]
        assert len(found) == len(set(found)) == 6
