"""The same calls on an app and on one behind a server: the same values, the same errors, option by option."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import msgspec
import pytest

from windlass import App, Exponential, Fixed, Linear, NewJob, Steps, chain
from windlass.core.jobs.job import Job
from windlass.core.webhooks.delivery import event_and_job
from windlass.core.webhooks.webhook import Webhook
from windlass.errors import InvalidInput, InvalidPayload, WindlassError
from windlass.remote import RemoteApp
from windlass.server import asgi

Call = Callable[[App], Awaitable[Any]]
OWN = {"id", "created_at", "updated_at", "run_at", "expires_at", "version"}
"""What differs between two jobs however they came."""
OLD = "01a1e88a-0725-743b-b420-c7b4decadc37"


class Faces(NamedTuple):
    """An app, and one behind the server of another store."""

    local: App
    remote: App
    behind: App


def _with_tasks(app: App) -> App:
    @app.task(type="mail.welcome")
    def welcome(user_id: int = 1) -> str:
        return str(user_id)

    @app.task(type="img.resize", queue="images", retry=Fixed(base=0))
    def resize(path: str = "") -> None:
        raise ValueError(path)

    return app


@pytest.fixture(params=["the server knows the tasks", "the server knows no task"])
async def faces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> AsyncIterator[Faces]:
    local, behind = (App(f"sqlite:///{tmp_path}/{name}.db?durability=relaxed") for name in ("local", "behind"))
    _with_tasks(local)
    if request.param == "the server knows the tasks":
        _with_tasks(behind)
    served = asgi(behind)
    token = (await behind.tokens.acreate("test", ["admin"])).text
    remote = _with_tasks(RemoteApp("http://windlass", token=token))
    client = httpx.AsyncClient(
        transport=httpx.ASGITransport(served),
        base_url="http://windlass",
        headers={"authorization": f"Bearer {token}"},
    )
    monkeypatch.setattr(remote._connection, "_client", lambda: client)  # type: ignore[attr-defined]
    async with served.router.lifespan_context(served), client:
        yield Faces(local, remote, behind)
    await local.aclose()


async def _outcome(call: Call, app: App) -> Any:
    try:
        return await call(app)
    except WindlassError as error:
        field = error.field if isinstance(error, InvalidInput) else None
        return type(error).__name__, field, str(error)


async def _check(faces: Faces, call: Call) -> Any:
    """The outcome, which is the same."""
    expected = await _outcome(call, faces.local)
    assert await _outcome(call, faces.remote) == expected
    return expected


def _job(app: App, type_: str = "mail.welcome", /, *args: Any, **options: Any) -> NewJob:
    return app.tasks[type_].using(**options).job(*args)


QUEUE_OPTIONS: list[dict[str, Any]] = [
    {"retry": Exponential(attempts=5, base=3, factor=4)},
    {"retry": Linear(base="30s", cap="5m")},
    {"retry": Fixed(base=timedelta(seconds=7), jitter=0)},
    {"retry": Steps(1, 5, "30s")},
    {"timeout": timedelta(minutes=5), "ageing": timedelta(seconds=30)},
    {"retention": {"completed": timedelta(days=1), "dead": "7d"}},
    {"timeout": "none", "max_concurrency": "none", "rate_limit": "none", "ageing": "none"},
    {"max_concurrency": 3, "rate_limit": "10/s", "fair": True, "weights": {"a": 2.5}, "max_attempts": 7},
    {"reset": ["retry"], "fair": False},
    {},
    {"retry": "often"},
    {"retry": None},
    {"timeout": 0},
    {"timeout": "soon"},
    {"max_concurrency": 0},
    {"rate_limit": "fast"},
    {"retention": {"running": 5}},
    {"reset": ["colour"]},
    {"colour": "red"},
]


@pytest.mark.parametrize("options", QUEUE_OPTIONS, ids=str)
async def test_a_queue_takes_the_same_settings(faces: Faces, options: dict[str, Any]) -> None:
    await _check(faces, lambda app: app.queues.aset("default", **options))
    await _check(faces, lambda app: app.queues.aget("default"))


QUEUE_CALLS: dict[str, Call] = {
    "get": lambda app: app.queues.aget("images"),
    "get an unknown one": lambda app: app.queues.aget("imges"),
    "pause one that only the app names": lambda app: app.queues.apause("images"),
    "set one that only the app names": lambda app: app.queues.aset("images", fair=True),
    "close an unknown one": lambda app: app.queues.aclose("other"),
    "pause for no time": lambda app: app.queues.apause("default", -1),
    "reset": lambda app: app.queues.areset("default"),
    "reset what is no setting": lambda app: app.queues.areset("default", "colour"),
    "purge": lambda app: app.queues.apurge("default"),
    "change another version": lambda app: app.queues.aresume("default", version="x"),
    "a wrong name": lambda app: app.queues.aadd("a b"),
}


@pytest.mark.parametrize("call", QUEUE_CALLS.values(), ids=QUEUE_CALLS)
async def test_verbs_on_queues_are_the_same(faces: Faces, call: Call) -> None:
    await _check(faces, call)


JOB_OPTIONS: list[dict[str, Any]] = [
    {"queue": "other", "priority": 3},
    {"tags": ["a", "b"], "tenant": "t"},
    {"max_attempts": 9},
    {"timeout": timedelta(seconds=90)},
    {"timeout": None},
    {"expires": "10m"},
    {"concurrency_key": "k", "key_limit": 2, "key_order": "any", "rate_cost": 3},
    {"concurrency_key": "k", "key_order": "strict", "key_rate": "5/m"},
    {"meta": {"a": [1, {"b": None}]}},
    {"retry": Steps(1, 2)},
    {"retry": Exponential(base=2), "max_attempts": 8, "meta": {"a": 1}},
]
OF_ONE_JOB: list[dict[str, Any]] = [
    {"delay": timedelta(hours=1)},
    {"run_at": datetime(2040, 1, 1, tzinfo=UTC)},
    {"idempotency_key": "k", "idempotency_window": "1h", "on_conflict": "replace"},
    {"expires": datetime(2040, 1, 1, tzinfo=UTC)},
]


def _plain(job: Job) -> dict[str, Any]:
    found = msgspec.to_builtins(job)
    later = {"later": job.run_at > datetime.now(UTC), "expires": job.expires_at is not None}
    return {name: value for name, value in found.items() if name not in OWN} | later


@pytest.mark.parametrize("options", [{}, *JOB_OPTIONS, *OF_ONE_JOB], ids=str)
async def test_a_job_takes_the_same_options(faces: Faces, options: dict[str, Any]) -> None:
    async def stored(app: App) -> dict[str, Any]:
        (handle,) = await app.aenqueue_many([_job(app, **options)])
        return _plain(await app.jobs.aget(handle.id))

    await _check(faces, stored)


@pytest.mark.parametrize("options", [{}, *JOB_OPTIONS, *OF_ONE_JOB, {"parent": OLD}], ids=str)
async def test_the_job_of_a_schedule_takes_the_same_options(faces: Faces, options: dict[str, Any]) -> None:
    async def added(app: App) -> Any:
        return (await app.schedules.aadd("s", _job(app, **options), every="5m")).changed

    async def changed(app: App) -> Any:
        job = _job(app, "img.resize", "a.png", **options)
        return (await app.schedules.aset("s", job, jitter=timedelta(seconds=3))).changed

    async def read(app: App) -> Any:
        return [(each.name, each.declared, each.changed, each.rules) for each in await app.schedules.alist()]

    await _check(faces, added)
    await _check(faces, changed)
    await _check(faces, read)


SCHEDULE_CALLS: dict[str, Call] = {
    "add it again": lambda app: app.schedules.aadd("s", _job(app), every=60),
    "add without times": lambda app: app.schedules.aadd("t", _job(app)),
    "add with a wrong cron": lambda app: app.schedules.aadd("t", _job(app), cron="never"),
    "add what is no job": lambda app: app.schedules.aadd("t", "mail"),  # type: ignore[arg-type]
    "set nothing": lambda app: app.schedules.aset("s"),
    "set no setting": lambda app: app.schedules.aset("s", colour="red"),  # type: ignore[call-arg]
    "set an unknown one": lambda app: app.schedules.aset("none", overlap=False),
    "reset": lambda app: app.schedules.areset("s"),
    "reset in a set": lambda app: app.schedules.aset("s", reset=["jitter"], overlap=False),
    "get an unknown one": lambda app: app.schedules.aget("t"),
    "run an unknown one": lambda app: app.schedules.arun("t"),
    "remove an unknown one": lambda app: app.schedules.aremove("t"),
}


@pytest.mark.parametrize("call", SCHEDULE_CALLS.values(), ids=SCHEDULE_CALLS)
async def test_verbs_on_schedules_are_the_same(faces: Faces, call: Call) -> None:
    for app in faces[:2]:
        await app.schedules.aadd("s", _job(app), cron="0 9 * * *", tz="Europe/Berlin")
    outcome = await _check(faces, call)
    assert isinstance(outcome, tuple), "an error"


async def test_a_change_of_the_payload_alone_keeps_the_rest_of_the_job(faces: Faces) -> None:
    await faces.remote.schedules.aadd("s", _job(faces.remote, tags=["a"], retry=Steps(1)), every=60)
    before = (await faces.behind.schedules.aget("s")).rules.job
    patch = {"payload": {"user_id": 7}}
    await faces.remote.schedules._patch("s", patch, None)  # type: ignore[attr-defined]
    after = (await faces.behind.schedules.aget("s")).rules.job
    assert after == msgspec.structs.replace(before, payload='{"user_id":7}')


JOB_CALLS: dict[str, Call] = {
    "get no id": lambda app: app.jobs.aget("nothing"),
    "get an unknown one": lambda app: app.jobs.aget(OLD),
    "links of too many": lambda app: app.jobs.alinks(OLD, limit=0),
    "failures of too many": lambda app: app.jobs.afailures(0),
    "list too many": lambda app: app.jobs.alist(limit=1001),
    "list a wrong status": lambda app: app.jobs.alist(status="done"),
    "change nothing": lambda app: app.jobs.achange(OLD),
    "change to a wrong priority": lambda app: app.jobs.achange(OLD, priority="high"),  # type: ignore[arg-type]
    "change to a naive time": lambda app: app.jobs.achange(OLD, run_at=datetime(2040, 1, 1)),
    "change to two times": lambda app: app.jobs.achange(OLD, run_at=datetime(2040, 1, 1, tzinfo=UTC), delay=1),
    "change an unknown one": lambda app: app.jobs.achange(OLD, priority=1),
    "cancel for no reason": lambda app: app.jobs.acancel(OLD, ""),
    "cancel an unknown one": lambda app: app.jobs.acancel(OLD),
    "cancel all without a filter": lambda app: app.jobs.acancel_all(),
    "delete all of a type": lambda app: app.jobs.adelete_all(type="none"),
    "find by too little": lambda app: app.jobs.afind("a"),
    "find nothing": lambda app: app.jobs.afind("abcdef"),
    "count": lambda app: app.jobs.acount(status="dead"),
    "a flow that is not there": lambda app: app.flows.aget("none"),
    "recent of too long": lambda app: app.stats.arecent("2h"),
    "recent of a wrong queue": lambda app: app.stats.arecent(queue="a b"),
    "a timeline by the wrong": lambda app: app.stats.atimeline(by="hour"),  # type: ignore[arg-type]
    "a timeline in wrong steps": lambda app: app.stats.atimeline(step="day"),  # type: ignore[arg-type]
    "a timeline of no points": lambda app: app.stats.atimeline(points=0),
    "a timeline of too long": lambda app: app.stats.atimeline("9d", step="minute"),
}


@pytest.mark.parametrize("call", JOB_CALLS.values(), ids=JOB_CALLS)
async def test_verbs_on_jobs_and_statistics_are_the_same(faces: Faces, call: Call) -> None:
    await _check(faces, call)


async def test_a_payload_that_is_no_json_is_refused(faces: Faces) -> None:
    for app in faces[:2]:
        (handle,) = await app.aenqueue_many([_job(app)])
        with pytest.raises(InvalidPayload):
            await app.jobs.achange(handle.id, payload={"user_id": object()})


async def test_a_timeline_has_the_same_steps(faces: Faces) -> None:
    async def length(app: App) -> float:
        return (await app.stats.atimeline("1d", step="hour")).seconds

    await _check(faces, length)


async def test_failures_come_in_the_order_of_failing(faces: Faces) -> None:
    for app in (faces.local, faces.behind):
        works = _with_tasks(App(app.store))
        handles = [
            await works.aenqueue("img.resize", {"path": path}, priority=priority, max_attempts=1)
            for path, priority in (("a", 1), ("b", 5), ("c", 3))
        ]
        async with works.worker(concurrency=1):
            await asyncio.gather(*(each.aresult(60) for each in handles), return_exceptions=True)
        await works.aclose()
    expected = [{"path": path} for path in "acb"]
    for app in faces[:2]:
        assert [job.payload for job in await app.jobs.afailures()] == expected
        assert [job.payload for job in await app.jobs.afailures(2)] == expected[:2]


async def test_the_chain_of_a_job_is_cut_at_the_same_limit(faces: Faces) -> None:
    for stored, seen in ((faces.local, faces.local), (faces.behind, faces.remote)):
        made = _with_tasks(App(stored.store))
        last = await chain(*(_job(made, "mail.welcome", number) for number in range(4))).aenqueue()
        links = await made.jobs.alinks(last.id)
        cut = await seen.jobs.alinks(links[1].id, limit=1)
        assert ([job.payload["user_id"] for job in cut], cut.begins, cut.ends) == ([0, 1, 2], True, False)
        await made.aclose()


async def test_an_id_is_found_by_its_end_and_its_beginning(faces: Faces) -> None:
    for app in faces[:2]:
        (first,) = await app.aenqueue_many([_job(app)])
        assert await app.jobs.afind(first.id[:24]) == first.id
        await app.aenqueue_many([_job(app) for _ in range(3)])
        assert await app.jobs.afind(first.id[-10:]) == first.id


URL = "https://example.com/hook"
WEBHOOK_CALLS: dict[str, Call] = {
    "get": lambda app: app.webhooks.aget("ops"),
    "list": lambda app: app.webhooks.alist(),
    "pause": lambda app: app.webhooks.apause("ops"),
    "resume": lambda app: app.webhooks.aresume("ops"),
    "remove": lambda app: app.webhooks.aremove("ops"),
    "get an unknown one": lambda app: app.webhooks.aget("opps"),
    "get no name": lambda app: app.webhooks.aget("a/b"),
    "add it again": lambda app: app.webhooks.aadd("ops", URL),
    "add a private address": lambda app: app.webhooks.aadd("more", "https://10.0.0.1/"),
    "add no event": lambda app: app.webhooks.aadd("more", URL, events=["job.failed"]),
    "add no option": lambda app: app.webhooks.aadd("more", URL, colour="red"),  # type: ignore[call-arg]
    "rotate for a wrong time": lambda app: app.webhooks.arotate("ops", overlap="soon"),
    "deliveries of too many": lambda app: app.webhooks.adeliveries("ops", limit=0),
}


@pytest.mark.parametrize("call", WEBHOOK_CALLS.values(), ids=WEBHOOK_CALLS)
async def test_verbs_on_webhooks_are_the_same(faces: Faces, call: Call) -> None:
    options = {"events": ["job.dead"], "queues": ["mail"], "timeout": timedelta(seconds=3), "hide": ["card.number"]}

    def timeless(found: Any) -> Any:
        if isinstance(found, list):
            return [*map(timeless, found)]
        return msgspec.structs.replace(found, created_at=OLD) if isinstance(found, Webhook) else found

    for app in faces[:2]:
        new = await app.webhooks.aadd("ops", URL, **options)  # type: ignore[arg-type]
        assert new.secret.startswith("whsec_")
    await _check(faces, lambda app: _then(call(app), timeless))


async def _then(value: Awaitable[Any], change: Callable[[Any], Any]) -> Any:
    return change(await value)


async def test_a_delivery_is_shown_as_far_as_a_server_tells_of_it(faces: Faces) -> None:
    new = await faces.remote.webhooks.aadd("ops", URL)
    assert (await faces.remote.webhooks.arotate("ops", overlap=0)).secret != new.secret
    handle = await faces.remote.webhooks.atest("ops")
    (seen,) = await faces.remote.webhooks.adeliveries("ops")
    (stored,) = await faces.behind.webhooks.adeliveries("ops")
    assert (seen.id, seen.status, seen.tags, event_and_job(seen.payload)) == (
        handle.id,
        stored.status,
        stored.tags,
        event_and_job(stored.payload),
    )


async def test_the_audit_is_the_same(faces: Faces) -> None:
    for app in faces[:2]:
        await app.queues.apause("default")
        await app.queues.aresume("default")
        found = await app.audit.alist(1)
        assert [each.action for each in found] == ["queue.resume"]
        more = await app.audit.alist(1, found.next_cursor)
        assert [(each.action, each.target) for each in more] == [("queue.pause", "default")]
    await _check(faces, lambda app: app.audit.alist(0))


async def test_a_folder_for_blobs_here_is_not_used_for_jobs_behind_a_server(
    faces: Faces, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINDLASS_BLOBS", str(tmp_path / "blobs"))
    remote = RemoteApp("http://windlass", token="wl_x")
    assert (remote.blobs, remote.offload()) == (None, None)
