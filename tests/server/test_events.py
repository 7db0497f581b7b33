"""The event stream: who hears of what, from where on, and how a stream ends."""

import asyncio
import contextlib
import json
from typing import Any

import pytest
from starlette.applications import Starlette

from tests.server.conftest import Client, enqueue
from tests.server.streams import ENDS, Stream, listening
from tests.support.addresses import on_sqlite
from tests.support.seed import claim_one, completed, dead, failed, open_lease, settle
from windlass import App
from windlass.core.ids import new_id
from windlass.core.jobs.job import Claimed, LogLine, Progress
from windlass.core.moments import SECOND, to_datetime
from windlass.core.tokens import Rights, Scope
from windlass.errors import StoreUnavailable
from windlass.server import access, asgi
from windlass.server.events import hub, listener, reader
from windlass.server.events.event import make_filter
from windlass.server.operation import Caller
from windlass.store.records import Note


@pytest.fixture(params=["by its task", "by the hub"])
def writes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hub writes to connections of uvicorn by itself."""
    if request.param == "by the hub":
        monkeypatch.setattr(Stream, "__module__", "uvicorn.protocols.http.test")


async def run(app: App, api: Client, number: int, **options: Any) -> Claimed:
    """A job that a runner holds."""
    store = await app._ready()
    runner = await open_lease(store, f"r{number}")
    id_ = await enqueue(api, number, **options)
    queue, type_ = options.get("queue", "default"), options.get("type", "mail.welcome")
    job = await claim_one(store, runner, queues=(queue,), types=(type_,))
    assert job.id == id_
    return job


@pytest.mark.usefixtures("writes")
async def test_ends_of_jobs_are_reported_as_they_happen(app: App, served: Starlette, api: Client) -> None:
    before = await enqueue(api, 0)
    await api.delete(f"/jobs/{before}")
    async with listening(app, served) as stream:
        assert (stream.status, stream.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
        assert (stream.headers["x-accel-buffering"], stream.headers["cache-control"]) == ("no", "no-store")
        store = await app._ready()
        good, bad = await run(app, api, 1, tags=["vip"]), await run(app, api, 2, queue="bills")
        await settle(store, completed(good))
        assert await stream.jobs(1) == [("job.completed", good.id)]
        await settle(store, dead(bad, "hopeless"))
        reported = await stream.next()
        assert (reported.name, reported.data["status"], reported.data["queue"]) == ("job.dead", "dead", "bills")
        assert reported.data["error"] == {"type": "Dead", "message": "hopeless"}
        unwanted = await enqueue(api, 3)
        await api.delete(f"/jobs/{unwanted}")
        assert await stream.jobs(1) == [("job.cancelled", unwanted)]
        assert stream.events.empty()


async def test_a_filter_chooses_events_queues_and_types(app: App, served: Starlette, api: Client) -> None:
    async with (
        listening(app, served, queue="bills") as bills,
        listening(app, served, type="mail.*,other.*") as types,
        listening(app, served, event="job.dead") as letters,
    ):
        one = await enqueue(api, 1, queue="bills", type="img.resize", payload={"path": "a"})
        two = await enqueue(api, 2)
        await api.delete(f"/jobs/{one}")
        await api.delete(f"/jobs/{two}")
        three = await run(app, api, 3, queue="bills")
        await settle(await app._ready(), dead(three))
        assert await bills.jobs(2) == [("job.cancelled", one), ("job.dead", three.id)]
        assert await types.jobs(2) == [("job.cancelled", two), ("job.dead", three.id)]
        assert await letters.jobs(1) == [("job.dead", three.id)]


async def test_a_limited_token_hears_only_of_what_it_covers(app: App, served: Starlette, api: Client) -> None:
    limits = {"queues": ["bills"], "types": ["mail.welcome"]}
    async with (
        listening(app, served, "read", limits=limits, event=f"{ENDS},queue.changed") as stream,
        listening(app, served, "read", limits=limits, queue="mail") as other,
    ):
        hidden = [
            await enqueue(api, 1),
            await enqueue(api, 2, type="img.resize", payload={"path": "a"}, queue="bills"),
        ]
        shown = await enqueue(api, 3, queue="bills")
        assert (await stream.next()).data["queue"] == "bills", "it is used for the first time"
        for id_ in (*hidden, shown):
            await api.delete(f"/jobs/{id_}")
        await api.post("/queues/default/pause")
        await api.post("/queues/bills/pause")
        assert await stream.jobs(1) == [("job.cancelled", shown)]
        reported = await stream.next()
        assert (reported.name, reported.data["queue"], reported.data["paused"]) == ("queue.changed", "bills", True)
        assert stream.events.empty()
        assert other.events.empty()


async def test_failures_that_will_be_retried_are_reported_while_a_stream_is_open(
    app: App, served: Starlette, api: Client
) -> None:
    store = await app._ready()
    await settle(store, failed(await run(app, api, 1)))
    async with listening(app, served, event="job.failed") as stream:
        job = await run(app, api, 2)
        await settle(store, failed(job, "once"))
        reported = await stream.next()
        assert (reported.name, reported.data["job"], reported.data["error"]["message"]) == (
            "job.failed",
            job.id,
            "once",
        )
        assert stream.events.empty()


async def test_changes_of_queues_and_schedules_are_reported(app: App, served: Starlette, api: Client) -> None:
    async with listening(app, served, event="queue.changed,schedule.changed") as stream:
        await enqueue(api, 1, queue="fresh")
        body = {"name": "nightly", "type": "mail.welcome", "payload": {"user_id": 1}, "cron": "0 3 * * *"}
        assert (await api.post("/schedules", json=body)).status_code == 201
        reported = {reported.name: reported.data for reported in [await stream.next(), await stream.next()]}
        assert reported["queue.changed"]["queue"] == "fresh"
        assert reported["schedule.changed"]["schedule"] == "nightly"
        await api.patch("/schedules/nightly", json={"paused": True})
        changed = await stream.next()
        assert (changed.data["schedule"], changed.data["paused"]) == ("nightly", True)
        version = (await api.get("/schedules/nightly")).headers["etag"]
        assert f'"{changed.data["version"]}"' == version
        await api.delete("/schedules/nightly")
        assert "version" not in (await stream.next()).data


@pytest.mark.usefixtures("writes")
async def test_after_a_broken_connection_nothing_is_missed_and_nothing_comes_twice(
    app: App, served: Starlette, api: Client
) -> None:
    async with listening(app, served) as other, listening(app, served) as stream:
        ids = [await enqueue(api, number) for number in range(6)]
        for id_ in ids[:2]:
            await api.delete(f"/jobs/{id_}")
        last = [await stream.next() for _ in range(2)][-1].id
        await other.jobs(2)
        for id_ in ids[2:4]:
            await api.delete(f"/jobs/{id_}")
        await other.jobs(2)
        async with listening(app, served, last=last) as again:
            for id_ in ids[4:]:
                await api.delete(f"/jobs/{id_}")
            assert await again.jobs(4) == [("job.cancelled", id_) for id_ in ids[2:]]


async def test_changes_that_one_look_found_are_replayed_after_the_first_of_them(
    app: App, served: Starlette, api: Client
) -> None:
    wanted = {"event": "queue.changed"}
    async with listening(app, served, **wanted) as other, listening(app, served, **wanted) as stream:
        for name in ("first", "second"):
            await enqueue(api, 1, queue=name)
        reported = [await stream.next() for _ in range(2)]
        await other.next()
        async with listening(app, served, last=reported[0].id, **wanted) as again:
            assert await asyncio.wait_for(again.next(), 10) == reported[1]


async def test_another_server_goes_on_from_the_id_of_an_event(app: App, served: Starlette, api: Client) -> None:
    ids = [await enqueue(api, number) for number in range(3)]
    async with listening(app, served) as stream:
        await api.delete(f"/jobs/{ids[0]}")
        last = (await stream.next()).id
    await api.delete(f"/jobs/{ids[1]}")
    other = asgi(app)
    async with listening(app, other, last=last) as again:
        assert await again.jobs(1) == [("job.cancelled", ids[1])]
        await api.delete(f"/jobs/{ids[2]}")
        assert await again.jobs(1) == [("job.cancelled", ids[2])]


async def test_a_replay_is_bounded_and_says_what_is_missing(
    app: App, served: Starlette, api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "PAGE", 2)
    monkeypatch.setattr(reader, "MAX_REPLAYED", 2)
    ids = [await enqueue(api, number) for number in range(6)]
    for id_ in ids:
        await api.delete(f"/jobs/{id_}")
    async with listening(app, served, last=f"{(await _now(app)) - 30 * SECOND}.{new_id()}.dead") as stream:
        assert (await stream.next()).name == "stream.gap"
        assert await stream.jobs(2) == [("job.cancelled", id_) for id_ in ids[:2]]
    async with listening(app, served, last=f"1.{new_id()}.dead") as stream:
        assert (await stream.next()).name == "stream.gap"


async def _now(app: App) -> int:
    return (await (await app._ready()).operator.ended(None, None, 1)).now


async def test_one_look_at_the_store_serves_all_listeners(
    app: App, served: Starlette, api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0
    look = reader.EventReader.look

    async def counted(self: reader.EventReader, wanted: reader.Wanted) -> Any:
        nonlocal looks
        looks += 1
        return await look(self, wanted)

    monkeypatch.setattr(reader.EventReader, "look", counted)
    monkeypatch.setattr(hub, "LOOK_SECONDS", 3600.0)
    token = (await app.tokens.acreate("many", ["read"])).text
    async with contextlib.AsyncExitStack() as many:
        for _ in range(20):
            await many.enter_async_context(listening(app, served, token=token))
        assert looks == 1
    assert not [task for task in asyncio.all_tasks() if "EventHub._" in repr(task.get_coro())], "no task listens"


def _listener() -> listener.Listener:
    caller = Caller("id", "name", Rights(scopes=frozenset({Scope.READ})))

    async def recheck() -> Caller:
        return caller

    return listener.Listener(caller, make_filter((), (), (), ""), recheck)


@on_sqlite
async def test_a_stream_that_opens_while_the_last_one_closes_gets_events(
    app: App, api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare, begun, closed = reader.EventReader.prepare, asyncio.Event(), asyncio.Event()

    async def slow(self: reader.EventReader, wanted: reader.Wanted) -> None:
        begun.set()
        await closed.wait()
        await prepare(self, wanted)

    streams, first, second = hub.EventHub(app, lambda: False), _listener(), _listener()
    await streams.add(first, None)
    monkeypatch.setattr(reader.EventReader, "prepare", slow)
    opening = asyncio.create_task(streams.add(second, None))
    await begun.wait()
    streams.remove(first)
    closed.set()
    await opening
    id_ = await enqueue(api)
    await api.delete(f"/jobs/{id_}")
    assert id_.encode() in await second.next(10)
    await streams.stop()


@on_sqlite
async def test_a_stream_that_cannot_be_opened_leaves_the_store_alone(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object) -> None:
        raise StoreUnavailable("no answer")

    streams = hub.EventHub(app, lambda: False)
    monkeypatch.setattr(reader.EventReader, "prepare", away)
    with pytest.raises(StoreUnavailable):
        await streams.add(_listener(), None)
    assert streams._tasks == []


@on_sqlite
async def test_a_revoked_token_ends_its_stream(app: App, served: Starlette, monkeypatch: pytest.MonkeyPatch) -> None:
    assert access.FRESH / SECOND + hub.CHECK_SECONDS < 5
    monkeypatch.setattr(access, "FRESH", 0)
    new = await app.tokens.acreate("gone", ["read"])
    async with listening(app, served, token=new.text) as stream, listening(app, served) as other:
        await app.tokens.arevoke(new.token.id)
        reported = await stream.next()
        assert (reported.name, reported.data) == ("stream.ended", {"reason": "revoked"})
        assert other.events.empty()


@on_sqlite
@pytest.mark.usefixtures("writes")
async def test_a_slow_listener_is_dropped_with_a_message(
    app: App, served: Starlette, api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "MAX_BEHIND", 2_000)
    async with listening(app, served) as slow, listening(app, served) as fast:
        slow.tap.clear()
        for number in range(12):
            id_ = await enqueue(api, number)
            await api.delete(f"/jobs/{id_}")
            assert await fast.jobs(1) == [("job.cancelled", id_)]
        slow.tap.set()
        names: list[str] = []
        while not names or names[-1] != "stream.ended":
            names.append((reported := await slow.next()).name)
        assert reported.data == {"reason": "slow"}
        assert len(names) < 12


@on_sqlite
async def test_a_stop_of_the_server_ends_streams(app: App, served: Starlette) -> None:
    async with listening(app, served) as stream:
        served.state.probes.stopping = True
        assert (await stream.next()).data == {"reason": "stopping"}


@on_sqlite
async def test_a_stream_has_an_end_that_its_client_chose(app: App, served: Starlette) -> None:
    async with listening(app, served, seconds=0) as stream:
        assert (await stream.next()).data == {"reason": "time"}


async def test_progress_and_lines_of_a_watched_job_are_reported(app: App, served: Starlette, api: Client) -> None:
    store = await app._ready()
    job = await run(app, api, 1)
    async with (
        listening(app, served, job=job.id) as stream,
        listening(app, served, "read", job=job.id, limits={"queues": ["other"]}) as other,
    ):
        at = to_datetime(await _now(app))
        note = Note(id=job.id, queue="default", attempt=1, progress=Progress(1, 3, "secret", at))
        await store.jobs.note([note])
        reported = await stream.next()
        assert (reported.name, reported.data["progress"]["done"]) == ("job.changed", 1)
        assert "secret" not in json.dumps(reported.data)
        line = LogLine(at, 1, "a line")
        await store.jobs.note([Note(id=job.id, queue="default", attempt=1, lines=(line,))])
        assert (await stream.next()).name == "job.changed"
        await settle(store, completed(job))
        assert {(await stream.next()).name, (await stream.next()).name} == {"job.changed", "job.completed"}
        assert other.events.empty()


@on_sqlite
@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("event=job.born", "event"),
        ("job=x", "job"),
        ("event=job.changed", "job"),
        ("seconds=-1", "seconds"),
        ("seconds=nan", "seconds"),
        ("colour=red", "colour"),
    ],
)
async def test_a_wrong_request_is_refused_with_the_field(api: Client, query: str, field: str) -> None:
    answer = await api.get(f"/events?{query}")
    assert (answer.status_code, answer.json()["field"]) == (422, field)


@on_sqlite
@pytest.mark.parametrize("id_", ["x", "-1.x.dead", "123", "9" * 30 + ".x.dead"])
async def test_an_id_that_is_none_is_refused(api: Client, id_: str) -> None:
    answer = await api.get("/events", headers={"last-event-id": id_})
    assert (answer.status_code, answer.json()["field"]) == (400, "Last-Event-ID")


@on_sqlite
async def test_the_hub_writes_without_waking_a_task_and_leaves_a_slow_connection_to_it(
    app: App, served: Starlette, api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Stream, "__module__", "uvicorn.protocols.http.test")
    tasks: list[Any] = []
    send = Stream.send

    async def noted(self: Stream, message: Any) -> None:
        tasks.append(asyncio.current_task())
        await send(self, message)

    monkeypatch.setattr(Stream, "send", noted)
    async with listening(app, served) as stream:
        own = tasks[0]
        first, second, third = [await enqueue(api, number) for number in range(3)]
        await api.delete(f"/jobs/{first}")
        assert await stream.jobs(1) == [("job.cancelled", first)]
        assert tasks[-1] is not own
        stream.tap.clear()
        await api.delete(f"/jobs/{second}")
        async with asyncio.timeout(30):
            while len(tasks) < 4:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        await api.delete(f"/jobs/{third}")
        stream.tap.set()
        assert await stream.jobs(2) == [("job.cancelled", second), ("job.cancelled", third)]
