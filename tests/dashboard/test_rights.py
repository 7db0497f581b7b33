"""Rights: a token sees and does on pages what it sees and does by REST, and nothing else."""

import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from tests.dashboard.site import make_app
from windlass import App
from windlass.errors import StoreUnavailable
from windlass.server import asgi
from windlass.server.dashboard.site import PAGES, POLICY

Connect = Callable[..., Awaitable[httpx.AsyncClient]]


@pytest.fixture
async def app(address: str) -> AsyncIterator[App]:
    made = make_app(address, threading.Semaphore(0))
    yield made
    await made.aclose()


@pytest.fixture
async def connect(app: App) -> AsyncIterator[Connect]:
    """Makes clients with tokens."""
    served: Starlette = asgi(app)
    clients: list[httpx.AsyncClient] = []

    async def client(*scopes: str, **limits: Any) -> httpx.AsyncClient:
        made = httpx.AsyncClient(transport=httpx.ASGITransport(served), base_url="http://windlass")
        if scopes:
            text = (await app.tokens.acreate("test", scopes, **limits)).text
            made.headers["authorization"] = f"Bearer {text}"
        clients.append(made)
        return made

    async with served.router.lifespan_context(served):
        yield client
        for each in clients:
            await each.aclose()


pytestmark = pytest.mark.parametrize("address", ["sqlite"], indirect=True)


def _filled(path: str) -> str:
    names = {"id": "01a1e88a-0725-743b-b420-c7b4decadc37", "name": "mail", "verb": "retry", "part": "payload"}
    return path.format(**names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.method} {page.path}")
async def test_no_page_answers_without_a_token(connect: Connect, page: Any) -> None:
    stranger = await connect()
    answer = await stranger.request(
        page.method, _filled(page.path), data={"a": "b"} if page.method == "POST" else None
    )
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/login")
    assert "windlass" not in answer.text.lower()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.method} {page.path}")
async def test_every_page_needs_its_scope(connect: Connect, page: Any) -> None:
    others = await connect(*({"enqueue", "work", "read", "payloads"} - {page.scope}))
    answer = await others.request(page.method, _filled(page.path), data={"a": "b"} if page.method == "POST" else None)
    assert answer.status_code == 403
    assert f"this needs the scope {page.scope}" in answer.text


async def test_every_answer_forbids_what_is_not_its_own(connect: Connect) -> None:
    admin = await connect("admin")
    for path in ("/", "/jobs", "/nowhere", "/static/dashboard.js", "/jobs/none"):
        answer = await admin.get(path, headers={"accept": "text/html"})
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "unsafe" not in POLICY
        if "text/html" in answer.headers["content-type"]:
            assert answer.headers["content-security-policy"] == POLICY
            assert "<style" not in answer.text
            assert " style=" not in answer.text
            assert "<script>" not in answer.text
            assert " on" + "click=" not in answer.text


async def test_a_limited_token_sees_only_its_part(app: App, connect: Connect) -> None:
    mine = (await app.aenqueue("mail.welcome", {"payload": 1})).id
    other = (await app.aenqueue("img.resize", {"steps": 1})).id
    limited = await connect("read", "operate", queues=["mail"])
    for path in ("/", "/jobs", "/queues", "/dead", "/schedules", "/types", "/workers", "/actions"):
        answer = await limited.get(path)
        assert answer.status_code == 200, path
        assert "images" not in answer.text, path
        assert other not in answer.text, path
    page = await limited.get("/jobs")
    assert mine in page.text
    assert "1 job" in page.text
    for path in (f"/jobs/{other}", "/queues/images", f"/jobs/{other}/payload.json", f"/jobs?q={other[-8:]}"):
        assert (await limited.get(path)).status_code in (403, 404), path
    for verb in ("cancel", "retry", "run", "delete"):
        answer = await limited.post(f"/jobs/{other}/{verb}", data={"confirmed": "yes"})
        assert answer.status_code == 404, verb
    done = await limited.post("/jobs", data={"verb": "cancel", "id": [other, mine], "confirmed": "yes"})
    assert done.headers["location"] == "/jobs?said=cancel.1.1"
    assert (await app.jobs.aget(other)).status == "pending"
    assert "audit" not in page.text.lower()


async def test_a_search_tells_a_limited_token_nothing_of_other_jobs(app: App, connect: Connect) -> None:
    others = [(await app.aenqueue("img.resize", {"steps": 1})).id for _ in range(3)]
    mine = (await app.aenqueue("mail.welcome", {"payload": 1})).id
    limited, admin = await connect("read", queues=["mail"]), await connect("read")
    assert "4 jobs have an id that" in (await admin.get(f"/jobs?q=id:{others[0][:6]}")).text
    for part in (others[0][-10:], others[0], "0000beef"):
        answer = await limited.get(f"/jobs?q=id:{part}")
        assert answer.status_code == 404, part
        assert "jobs have an id" not in answer.text, part
        assert not any(other in answer.text for other in others if other != part), part
    for part in (mine[-12:], mine[:6]):
        assert (await limited.get(f"/jobs?q=id:{part}")).headers["location"] == f"/jobs/{mine}", part


async def test_a_token_that_is_limited_to_types_sees_numbers_of_its_jobs_alone(app: App, connect: Connect) -> None:
    await app.aenqueue("mail.welcome", {"payload": 1})
    other = (await app.aenqueue("img.resize", {"steps": 1}, queue="mail")).id
    limited = await connect("read", "operate", types=["mail.welcome"])
    for path in ("/", "/jobs", "/queues", "/queues/mail", "/dead", "/types", "/workers", "/actions"):
        answer = await limited.get(path)
        assert answer.status_code == 200, path
        assert "img.resize" not in answer.text, path
        assert other not in answer.text, path
    assert "limited to types" in (await limited.get("/")).text
    assert "1 job<" in (await limited.get("/jobs")).text
    assert (await limited.post("/queues/mail/resume", data={"a": "b"})).status_code == 403


async def test_contents_need_the_scope_payloads(app: App, connect: Connect) -> None:
    secret = "the-secret-of-this-test"
    id_ = (await app.aenqueue("mail.welcome", {"payload": secret}, meta={"m": secret}, delay="1h")).id
    reader, operator, seeing = await connect("read"), await connect("operate"), await connect("read", "payloads")
    for client in (reader, operator):
        for path in ("/", "/jobs", f"/jobs/{id_}", "/schedules"):
            assert secret not in (await client.get(path)).text, path
        assert (await client.get(f"/jobs/{id_}/payload.json")).status_code == 403
    assert secret in (await seeing.get(f"/jobs/{id_}")).text
    download = await seeing.get(f"/jobs/{id_}/payload.json")
    assert download.json() == {"payload": secret}
    assert download.headers["content-disposition"].startswith("attachment")
    form = {"queue": "mail", "queue_was": "mail", "priority": "0", "priority_was": "0", "payload": "{}"}
    assert (await operator.post(f"/jobs/{id_}/change", data=form)).status_code == 403
    assert (await app.jobs.aget(id_)).payload == {"payload": secret}


async def test_a_reader_is_offered_no_change(app: App, connect: Connect) -> None:
    id_ = (await app.aenqueue("mail.welcome", {"payload": 1}, delay="1h")).id
    reader = await connect("read", "payloads")
    for path in ("/jobs", f"/jobs/{id_}", "/queues/mail", "/schedules", "/dead"):
        page = (await reader.get(path)).text
        assert 'method="post"' not in page.replace('method="post" action="/jobs" id="jobs"', ""), path
        assert "Cancel" not in page, path


async def test_pages_can_be_read_without_scripts(app: App, connect: Connect) -> None:
    id_ = (await app.aenqueue("mail.welcome", {"payload": {"n": 2**63 - 1}}, delay="1h")).id
    admin = await connect("admin")
    page = (await admin.get(f"/jobs/{id_}")).text
    for text in ("mail.welcome", "9223372036854775807", "Why it does not run", " UTC</time>"):
        assert text in page


async def test_cursors_lead_through_all_jobs_once(app: App, connect: Connect) -> None:
    ids = {(await app.aenqueue("mail.welcome", {"payload": n}, delay="1h")).id for n in range(120)}
    admin = await connect("admin")
    seen: list[str] = []
    path = "/jobs?status=scheduled"
    while path:
        page = (await admin.get(path)).text
        seen += [part.partition('"')[0] for part in page.split('name="id" value="')[1:]]
        following = page.partition('rel="next"')[0].rpartition('href="')[2].partition('"')[0]
        path = following.replace("&amp;", "&") if 'rel="next"' in page else ""
    assert len(seen) == 120
    assert set(seen) == ids


async def test_a_search_in_payloads_needs_their_scope_and_shows_only_what_is_covered(
    app: App, connect: Connect
) -> None:
    jobs = {
        queue: await app.aenqueue("mail.welcome", {"payload": {"user": 7}}, queue=queue) for queue in ("mail", "x")
    }
    query = "/jobs?payload.payload.user=7&type=mail.*"
    everything = (await (await connect("admin")).get(query)).text
    assert all(job.id in everything for job in jobs.values())
    assert "No index covers this search" in everything
    assert "all that match" not in everything
    reader = (await (await connect("read")).get(query)).text
    assert "this needs the scope payloads" in reader
    assert not any(job.id in reader for job in jobs.values())
    limited = (await (await connect("read", "payloads", queues=["mail"])).get(query)).text
    assert jobs["mail"].id in limited
    assert jobs["x"].id not in limited


async def test_suggestions_name_what_there_is_and_the_caller_may_know(app: App, connect: Connect) -> None:
    await app.aenqueue("mail.welcome", {"payload": 1}, queue="mail", tags=["vip"])
    await app.aenqueue("mail.welcome", {"payload": 1}, queue="secret", tags=["inner"])
    client = await connect("admin")
    limited = await connect("read", queues=["mail"])

    async def suggested(client: httpx.AsyncClient, text: str) -> list[str]:
        return list((await client.get("/suggestions", params={"q": text})).json())

    assert await suggested(client, "sta") == ["status:"]
    assert await suggested(client, "status:de") == ["status:dead"]
    assert await suggested(client, "tag:vip type:mail.w") == ["tag:vip type:mail.welcome"]
    assert await suggested(client, "tag:") == ["tag:inner", "tag:vip"]
    assert await suggested(client, "queue:s") == ["queue:secret"]
    assert await suggested(limited, "tag:") == ["tag:vip"]
    assert await suggested(limited, "queue:s") == []
    assert await suggested(limited, "pay") == []


async def test_a_form_shows_no_arguments_of_tasks_outside_the_limits(connect: Connect) -> None:
    for limits in ({"types": ["mail.welcome"]}, {"queues": ["mail"]}):
        limited = await connect("enqueue", "read", **limits)
        assert 'name="arg.how"' not in (await limited.get("/enqueue?type=bill.charge")).text
        assert 'name="arg.payload"' in (await limited.get("/enqueue?type=mail.welcome")).text
    free = await connect("enqueue", "read")
    assert 'name="arg.how"' in (await free.get("/enqueue?type=bill.charge")).text


async def test_a_page_names_no_address_of_a_store_that_is_away(
    app: App, connect: Connect, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def away(*_: object, **__: object) -> None:
        raise StoreUnavailable("no answer from db.internal:5432")

    reader = await connect("read")
    monkeypatch.setattr(app.jobs, "alist", away, raising=False)
    answer = await reader.get("/jobs")
    assert answer.status_code == 503
    assert "db.internal" not in answer.text
    assert f"no answer from db.internal:5432 (request {answer.headers['x-request-id']})" in caplog.text


async def test_a_verb_that_no_chosen_status_allows_acts_on_no_other_status(app: App, connect: Connect) -> None:
    operator = await connect("operate")
    await app.aenqueue("mail.welcome", {"payload": 1})
    for status in ("completed", "unknown"):
        answer = await operator.post("/jobs", data={"verb": "cancel", "which": "matching", "status": status})
        assert answer.status_code == 422, status
        assert "cancel applies to jobs that are blocked" in answer.text
