"""What a server keeps from every page: changes if it is read-only, and fields that are hidden by configuration."""

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from tests.dashboard.site import make_app
from tests.support.addresses import on_sqlite
from windlass import App
from windlass.errors import InvalidOption
from windlass.server import asgi
from windlass.server.dashboard.site import PAGES

SECRET = "hunter2-of-this-test"
LOOKS = ("/", "/jobs", "/queues", "/queues/mail", "/dead", "/schedules", "/schedules/nightly", "/workers", "/types")
MORE = ("/types/mail.welcome", "/actions", "/audit", "/settings")
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
pytestmark = on_sqlite


@pytest.fixture
async def app(address: str) -> AsyncIterator[App]:
    made = make_app(address, threading.Semaphore(0))
    yield made
    await made.aclose()


@asynccontextmanager
async def _client(app: App, *scopes: str, **settings: Any) -> AsyncIterator[httpx.AsyncClient]:
    served = asgi(app, **settings)
    token = (await app.tokens.acreate("test", scopes)).text
    headers = {"authorization": f"Bearer {token}"}
    async with (
        served.router.lifespan_context(served),
        httpx.AsyncClient(transport=httpx.ASGITransport(served), base_url="http://windlass", headers=headers) as made,
    ):
        yield made


async def test_a_read_only_server_has_no_buttons_and_says_so(app: App) -> None:
    id_ = (await app.aenqueue("mail.welcome", {"payload": 1}, delay="1h")).id
    async with _client(app, "admin", read_only=True) as admin:
        for path in (*LOOKS, *MORE, f"/jobs/{id_}"):
            answer = await admin.get(path)
            assert answer.status_code == 200, path
            forms = answer.text.replace('method="post" action="/jobs" id="jobs"', "")
            assert 'method="post"' not in forms, path
            assert ">read-only</span>" in answer.text, path
            assert "Enqueue…" not in answer.text, path
        for page in PAGES:
            if page.method == "POST":
                path = page.path.format(id=id_, name="mail", verb="run")
                answer = await admin.post(path, data={"confirmed": "yes", "seen": ""})
                assert answer.status_code == 403, path
                assert "this server is read-only" in answer.text, path
        assert (await admin.get("/enqueue")).status_code == 403
    assert (await app.jobs.aget(id_)).status == "scheduled"
    assert [each.action for each in (await app.audit.alist()).items if each.action.startswith("job")] == []


async def test_hidden_fields_are_on_no_page(app: App) -> None:
    payload = {"payload": {"user": 1, "password": SECRET, "card": {"number": SECRET}}}
    id_ = (await app.aenqueue("mail.welcome", payload, delay="1h", meta={"password": SECRET})).id
    await app.jobs.achange(id_, payload={"payload": {**payload["payload"], "user": 2}})
    await app.schedules.aset("nightly", app.tasks["mail.welcome"].job(payload["payload"]))
    async with _client(app, "admin", hide=["password", "payload.card.number"]) as admin:
        paths = (f"/jobs/{id_}", f"/jobs/{id_}/payload.json", f"/jobs/{id_}/meta.json", f"/enqueue?job={id_}")
        for path in (*LOOKS, *MORE, *paths):
            answer = await admin.get(path)
            assert answer.status_code == 200, path
            assert SECRET not in answer.text, path
        page = (await admin.get(f"/jobs/{id_}")).text
        assert "[hidden]" in page
        shown = (await admin.get(f"/jobs/{id_}/payload.json")).text
        form = {"queue": "mail", "queue_was": "mail", "priority": "0", "priority_was": "0", "payload_was": ""}
        answer = await admin.post(f"/jobs/{id_}/change", data={**form, "payload": shown.replace("2", "3")})
        assert answer.status_code == 303
        copied = await admin.post("/enqueue", data={"type": "mail.welcome", "arg.payload": shown})
        assert copied.status_code == 422
        assert "is hidden: give its value" in copied.text
    assert (await app.jobs.aget(id_)).payload == {"payload": {**payload["payload"], "user": 3}}


async def test_contents_are_on_no_page_without_the_scope_payloads(app: App) -> None:
    id_ = (await app.aenqueue("mail.welcome", {"payload": SECRET}, delay="1h")).id
    await app.jobs.achange(id_, payload={"payload": SECRET * 2})
    await app.schedules.aset("nightly", app.tasks["mail.welcome"].job(SECRET))
    async with _client(app, "operate", "enqueue") as operator:
        for path in (*LOOKS, "/types/mail.welcome", "/settings", f"/jobs/{id_}", f"/enqueue?job={id_}"):
            answer = await operator.get(path)
            assert answer.status_code == 200, path
            assert SECRET not in answer.text, path
        assert "Its payload is not copied" in (await operator.get(f"/enqueue?job={id_}")).text
        assert (await operator.get(f"/jobs/{id_}/payload.json")).status_code == 403


async def test_a_form_that_is_sent_twice_makes_one_job(app: App) -> None:
    async with _client(app, "admin") as admin:
        page = (await admin.get("/enqueue?type=img.resize")).text
        nonce = page.partition('name="nonce" value="')[2].partition('"')[0]
        form = {"type": "img.resize", "nonce": nonce, "arg.steps": "1", "delay": "1h"}
        first, second = await admin.post("/enqueue", data=form), await admin.post("/enqueue", data=form)
        assert first.headers["location"] == second.headers["location"]
        edited = await admin.post("/enqueue", data={**form, "arg.steps": "2"})
        assert edited.headers["location"] != first.headers["location"]
    assert await app.jobs.acount() == 2


async def test_a_server_without_the_app_takes_any_json_object(address: str) -> None:
    plain = App(address)
    async with _client(plain, "admin") as admin:
        page = (await admin.get("/enqueue?type=any.thing")).text
        assert "runs without your app" in page
        for wrong in ("[1]", "{", '{"a": NaN}', '{"a": 9223372036854775808}', '{"a": 1, "a": 2}'):
            answer = await admin.post("/enqueue", data={"type": "any.thing", "payload": wrong})
            assert answer.status_code == 422, wrong
            assert 'aria-invalid="true"' in answer.text, wrong
        assert await plain.jobs.acount() == 0
        right = await admin.post("/enqueue", data={"type": "any.thing", "payload": '{"a": [9223372036854775807]}'})
        assert right.status_code == 303
    assert (await plain.jobs.alist()).items[0].payload == {"a": [2**63 - 1]}
    await plain.aclose()


async def test_a_job_links_to_its_trace(app: App) -> None:
    meta = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
    traced = (await app.aenqueue("mail.welcome", {"payload": 1}, delay="1h", meta=meta)).id
    broken = (await app.aenqueue("mail.welcome", {"payload": 1}, delay="1h", meta={"traceparent": "javascript:1"})).id
    async with _client(app, "read", trace_url="https://traces.example/{trace}?x=<1>") as reader:
        page = (await reader.get(f"/jobs/{traced}")).text
        assert f'href="https://traces.example/{TRACE}?x=&lt;1&gt;"' in page
        assert "traces.example" not in (await reader.get(f"/jobs/{broken}")).text
    async with _client(app, "read") as reader:
        assert TRACE in (await reader.get(f"/jobs/{traced}")).text
    for wrong in ("javascript:{trace}", "https://traces.example/", "https://t/{trace}\n"):
        with pytest.raises(InvalidOption, match="trace_url"):
            asgi(app, trace_url=wrong)


async def test_a_limited_token_sees_types_and_schedules_of_its_part_alone(app: App) -> None:
    await app.aenqueue("img.resize", {"steps": 1}, delay="1h")
    served = asgi(app)
    text = (await app.tokens.acreate("test", ["read", "enqueue"], queues=["images"])).text
    headers = {"authorization": f"Bearer {text}"}
    transport = httpx.ASGITransport(served)
    async with httpx.AsyncClient(transport=transport, base_url="http://windlass", headers=headers) as limited:
        assert (await limited.get("/types/img.resize")).status_code == 200
        assert (await limited.get("/types/mail.welcome")).status_code == 404
        assert (await limited.get("/schedules/nightly")).status_code == 404
        assert 'value="img.resize"' in (choice := (await limited.get("/enqueue")).text)
        assert 'value="mail.welcome"' not in choice
        refused = await limited.post("/enqueue", data={"type": "mail.welcome", "payload": "{}"})
        assert refused.status_code == 403
        assert "wl_" not in (await limited.get("/settings")).text
