"""A token that is limited to one queue and type sees and changes nothing of others, by any operation."""

import asyncio
from typing import Any

import pytest

from tests.server.conftest import Client, Connect, enqueue
from windlass import App
from windlass.client.verbs import actions
from windlass.core.jobs.job import Job, NewJob
from windlass.core.schedules.schedule import ScheduleSettings, settings
from windlass.server.application import OPERATIONS
from windlass.server.operation import Operation
from windlass.store.records import WorkerInfo

SECRET = "img.resize"
OTHER_QUEUE = "images"
BODIES: dict[str, Any] = {
    "enqueue_job": {"type": SECRET, "payload": {"path": "x"}},
    "enqueue_bulk": {"jobs": [{"type": SECRET, "payload": {"path": "x"}}]},
    "start_action": {"verb": "cancel", "all": True},
    "retry_jobs": {"all": True},
    "cancel_jobs": {"all": True},
    "change_job": {"priority": 3},
    "add_queue": {"name": OTHER_QUEUE},
    "change_queue": {"fair": True},
    "add_schedule": {"name": "mine", "type": SECRET, "payload": {"path": "x"}, "every": 60},
    "change_schedule": {"paused": True},
    "add_webhook": {"name": "mine", "url": "https://example.com/", "queues": [OTHER_QUEUE]},
}


class Others:
    """What belongs to others: jobs, a queue, a schedule, an action, a worker."""

    def __init__(self, app: App, api: Client) -> None:
        self._app = app
        self._api = api

    async def make(self) -> None:
        """Store it."""
        job = {"type": SECRET, "payload": {"path": "hidden-path"}}
        self.id = (await self._api.post("/jobs", json=job)).json()["id"]
        same_queue = {"type": SECRET, "payload": {"path": "hidden-path"}, "queue": "default"}
        self.ids = [self.id, (await self._api.post("/jobs", json=same_queue)).json()["id"]]
        await self._api.post("/schedules", json={"name": "theirs", **job, "every": 60})
        webhook = {"name": "theirs", "url": "https://secret-host/", "queues": [OTHER_QUEUE]}
        assert (await self._api.post("/webhooks", json=webhook)).status_code == 201
        action = (await self._api.post("/actions", json={"verb": "retry", "queue": OTHER_QUEUE})).json()
        self.action = await done(self._api, action)
        worker = WorkerInfo(
            id="w1",
            host="secret-host",
            pid=1,
            version="1",
            queues=(OTHER_QUEUE,),
            types=(SECRET,),
            processes=1,
            slots=1,
        )
        await (await self._app._ready()).workers.beat(worker)

    async def state(self) -> Any:
        """All of it, as the store has it."""
        jobs: list[Job] = [await self._app.jobs.aget(id_) for id_ in self.ids]
        queues = [each for each in await self._app.queues.alist() if each.name != "mail"]
        named = await self._app.schedules.aget("theirs"), await self._app.webhooks.alist()
        return jobs, queues, named, len((await self._app.audit.alist()).items)


async def done(api: Client, action: dict[str, Any]) -> str:
    """The id of an action that has ended."""
    async with asyncio.timeout(20):
        while action["state"] in ("running", "stopping"):
            action = (await api.get(f"/actions/{action['id']}")).json()
    return str(action["id"])


def path_of(operation: Operation, others: Others) -> str:
    """The path with the names of others."""
    owner = operation.path.split("/")[1]
    names = {"jobs": others.id, "actions": others.action, "queues": OTHER_QUEUE}
    name = {**names, "schedules": "theirs", "webhooks": "theirs"}.get(owner, "")
    return operation.path.replace("{id}", name).replace("{name}", name)


@pytest.fixture
async def others(app: App, api: Client) -> Others:
    made = Others(app, api)
    await made.make()
    return made


async def test_nothing_of_others_is_seen_or_changed_by_any_operation(
    app: App, api: Client, connect: Connect, others: Others
) -> None:
    await enqueue(api, queue="mail")
    limited = await connect("admin", queues=["mail"], types=["mail.welcome"])
    before = await others.state()
    started: list[dict[str, Any]] = []
    for operation in [each for each in OPERATIONS if not each.path.startswith("/claims")]:  # see test_workers.py
        answer = await limited.request(
            operation.method,
            path_of(operation, others),
            json=BODIES.get(operation.id, {} if operation.body else None),
            params={"stream_events": {"seconds": 0}, "find_job": {"part": others.id[-12:]}}.get(operation.id),
        )
        assert answer.status_code in (200, 202, 403, 404), (operation.id, answer.text)
        named = "{" in operation.path
        assert not named or answer.status_code in (403, 404), (operation.id, answer.text)
        if answer.status_code < 400:
            for word in (SECRET, OTHER_QUEUE, "theirs", "hidden-path", "secret-host", *others.ids, others.action):
                assert word not in answer.text, (operation.id, answer.text)
        if answer.status_code == 202:
            started.append(answer.json())
    for action in started:
        await done(limited, action)
        assert (await limited.get(f"/actions/{action['id']}")).json()["seen"] <= 1
    after = await others.state()
    assert after[:3] == before[:3]
    # Only its own actions are new in the audit.
    assert after[3] == before[3] + len(started)


NAMING_OTHERS: dict[str, tuple[str, str, Any]] = {
    "a queue that is not there": ("GET", "/queues/mail", None),
    "a change of it": ("PATCH", "/queues/mail", {"fair": True}),
    "a schedule that is not there": ("GET", "/schedules/their", None),
    "a webhook that is not there": ("GET", "/webhooks/their", None),
    "a change of that": ("PATCH", "/schedules/their", {"paused": True}),
    "a run of that": ("POST", "/schedules/their/run", None),
    "a type that is not there": ("POST", "/jobs", {"type": "mail.later", "queue": "mail"}),
    "arguments of a type of others": ("POST", "/jobs", {"type": SECRET, "queue": "mail"}),
    "arguments of a task in a queue of others": ("POST", "/jobs", {"type": SECRET, "payload": {"wrong": 1}}),
    "a schedule of a type of others": ("POST", "/schedules", {"name": "new", "type": SECRET, "every": 60}),
}


@pytest.mark.parametrize("case", NAMING_OTHERS)
async def test_no_error_message_names_what_belongs_to_others(
    api: Client, connect: Connect, others: Others, case: str
) -> None:
    method, path, body = NAMING_OTHERS[case]
    limited = await connect("admin", queues=["mail"], types=["mail.later", "mail.welcome"])
    answer = await limited.request(method, path, json=body)
    assert answer.status_code in (403, 404, 422)
    asked = str(body)
    for word in (SECRET, OTHER_QUEUE, "theirs", "path"):
        assert word in asked or word not in answer.json()["title"], answer.text


async def test_a_token_without_limits_is_told_what_may_be_meant(api: Client, others: Others) -> None:
    for path, said in (
        ("/queues/image", "no queue 'image'; did you mean 'images'?"),
        ("/schedules/their", "no schedule 'their'; did you mean 'theirs'? There are theirs"),
    ):
        answer = await api.get(path)
        assert answer.status_code == 404
        assert answer.json()["title"].startswith(said)


async def test_an_alias_of_a_type_is_open_to_a_token_for_that_type(app: App, connect: Connect) -> None:
    @app.task(type="mail.bye", aliases=["bye"])
    def bye(name: str) -> None: ...

    limited = await connect("enqueue", types=["mail.bye"])
    assert (await limited.post("/jobs", json={"type": "bye", "payload": {"name": "ann"}})).status_code == 201


async def test_its_own_queue_and_type_are_open_to_it(api: Client, connect: Connect, others: Others) -> None:
    mine = await enqueue(api, queue="mail")
    limited = await connect("admin", queues=["mail"], types=["mail.welcome"])
    assert [job["id"] for job in (await limited.get("/jobs")).json()["jobs"]] == [mine]
    assert (await limited.get("/jobs/count")).json() == {"count": 1, "exact": True}
    assert (await limited.get("/jobs/count", params={"queue": OTHER_QUEUE})).json()["count"] == 0
    assert (await limited.get(f"/jobs/{mine}/why")).status_code == 200
    assert (await limited.patch(f"/jobs/{mine}", json={"priority": 4})).json()["priority"] == 4
    assert [each["name"] for each in (await limited.get("/queues")).json()["queues"]] == ["mail"]
    schedule = {"name": "own", "type": "mail.welcome", "payload": {"user_id": 1}, "queue": "mail", "every": 60}
    assert (await limited.post("/jobs", json={**schedule, "name": None})).status_code == 422
    assert (await limited.delete(f"/jobs/{mine}")).status_code == 200


async def test_a_job_is_neither_moved_out_of_nor_joined_to_what_others_own(
    api: Client, connect: Connect, others: Others
) -> None:
    mine = await enqueue(api, queue="mail")
    limited = await connect("operate", "enqueue", queues=["mail"], types=["mail.welcome"])
    own = {"type": "mail.welcome", "payload": {"user_id": 1}, "queue": "mail"}
    for method, path, body, status in (
        ("PATCH", f"/jobs/{mine}", {"queue": OTHER_QUEUE}, 403),
        ("POST", "/jobs", {**own, "parent": others.id}, 404),
        ("POST", "/jobs", {**own, "id": others.id}, 403),
        ("POST", "/jobs", {**own, "queue": OTHER_QUEUE}, 403),
        ("POST", "/jobs", {**own, "idempotency_key": "k", "on_conflict": "replace"}, 403),
        ("POST", "/schedules", {"name": "s", **own, "queue": OTHER_QUEUE, "every": 60}, 403),
        ("POST", "/queues/mail/purge", None, 403),
        ("POST", "/queues/mail/pause", None, 403),
    ):
        answer = await limited.request(method, path, json=body)
        assert answer.status_code == status, (path, body, answer.text)
    assert (await api.get(f"/jobs/{mine}")).json()["status"] == "pending"


@pytest.mark.parametrize("way", ["existing", "raise"])
async def test_the_holder_of_a_key_is_not_named_to_a_token_that_does_not_see_it(
    api: Client, connect: Connect, way: str
) -> None:
    held = {"type": SECRET, "payload": {"path": "x"}, "queue": "mail", "idempotency_key": "k"}
    holder = (await api.post("/jobs", json=held)).json()["id"]
    limited = await connect("enqueue", "read", types=["mail.welcome"])
    own = {"type": "mail.welcome", "payload": {"user_id": 1}, "queue": "mail"}
    job = {**own, "idempotency_key": "k", "on_conflict": way}
    single = await limited.post("/jobs", json=job)
    bulk = await limited.post("/jobs/bulk", json={"jobs": [own, job]})
    assert (single.status_code, single.json()["code"]) == (403, "outside_limits")
    assert bulk.status_code == (201 if way == "existing" else 403)
    assert holder not in single.text + bulk.text
    if way == "existing":
        stored, hidden = bulk.json()["jobs"]
        assert (stored["existing"], hidden["existing"]) == (False, True)
        assert (await limited.get(f"/jobs/{hidden['id']}")).status_code == 404


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [("DELETE", "", None), ("PATCH", "", {"priority": 3}), ("POST", "/run", None)],
    ids=["cancel", "change", "run"],
)
async def test_a_job_that_moves_away_after_the_check_is_not_changed(
    app: App, api: Client, connect: Connect, monkeypatch: pytest.MonkeyPatch, method: str, path: str, body: Any
) -> None:
    mine = await enqueue(api, queue="mail", delay=60)
    limited = await connect("operate", queues=["mail"])
    read = app.jobs.aget

    async def read_and_move(*words: Any, **options: Any) -> Job:
        job = await read(*words, **options)
        monkeypatch.setattr(app.jobs, "aget", read)
        await app.jobs.achange(mine, queue=OTHER_QUEUE)
        return job

    monkeypatch.setattr(app.jobs, "aget", read_and_move)
    answer = await limited.request(method, f"/jobs/{mine}{path}", json=body)
    assert (answer.status_code, answer.json()["code"]) == (404, "job_not_found")
    job = await app.jobs.aget(mine)
    assert (job.queue, job.status, job.priority) == (OTHER_QUEUE, "scheduled", 0)


async def test_a_job_that_changes_within_the_limits_after_the_check_is_changed(
    app: App, api: Client, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = await enqueue(api, queue="mail")
    limited = await connect("operate", queues=["mail"])
    read = app.jobs.aget

    async def read_and_change(*words: Any, **options: Any) -> Job:
        job = await read(*words, **options)
        monkeypatch.setattr(app.jobs, "aget", read)
        await app.jobs.achange(mine, priority=5)
        return job

    monkeypatch.setattr(app.jobs, "aget", read_and_change)
    answer = await limited.delete(f"/jobs/{mine}")
    assert (answer.status_code, answer.json()["status"], answer.json()["priority"]) == (200, "cancelled", 5)


async def test_an_action_does_not_change_a_job_that_moves_away_after_its_check(
    app: App, api: Client, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    moves, stays = await enqueue(api, queue="mail"), await enqueue(api, queue="mail")
    limited = await connect("operate", queues=["mail"])
    covered = actions._covered

    async def check_and_move(*words: Any) -> Any:
        found = await covered(*words)
        monkeypatch.setattr(actions, "_covered", covered)
        await app.jobs.achange(moves, queue=OTHER_QUEUE)
        await app.jobs.achange(stays, priority=5)
        return found

    monkeypatch.setattr(actions, "_covered", check_and_move)
    action = (await limited.post("/jobs/cancel", json={"all": True})).json()
    ended = (await limited.get(f"/actions/{await done(limited, action)}")).json()
    assert (ended["seen"], ended["changed"]) == (1, 1)
    assert [(await app.jobs.aget(id_)).status for id_ in (moves, stays)] == ["pending", "cancelled"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [("PATCH", "", {"paused": True}), ("POST", "/run", None), ("DELETE", "", None)],
    ids=["change", "run", "remove"],
)
async def test_a_schedule_that_is_given_to_others_after_the_check_is_not_used(
    app: App, connect: Connect, monkeypatch: pytest.MonkeyPatch, method: str, path: str, body: Any
) -> None:
    store = await app._ready()
    mine = settings(NewJob(id="", type="mail.welcome", payload='{"user_id":1}', queue="mail"), every=60)
    theirs = settings(NewJob(id="", type=SECRET, payload='{"path":"x"}', queue=OTHER_QUEUE), every=60)
    await store.schedules.declare({"shared": mine})
    limited = await connect("operate", queues=["mail"])
    read = app.schedules.aget

    async def read_and_give(name: str) -> Any:
        schedule = await read(name)
        monkeypatch.setattr(app.schedules, "aget", read)
        await store.schedules.declare({"shared": theirs})
        return schedule

    monkeypatch.setattr(app.schedules, "aget", read_and_give)
    answer = await limited.request(method, f"/schedules/shared{path}", json=body)
    assert (answer.status_code, answer.json()["code"]) == (412, "changed_since")
    schedule = await app.schedules.aget("shared")
    assert (schedule.paused, schedule.rules.job.queue) == (False, OTHER_QUEUE)
    assert sum((await app.stats.acounts()).totals.values()) == 0


async def test_why_a_job_waits_names_no_job_of_others(app: App, api: Client, connect: Connect) -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    @app.task(type="others.work", queue="mail")
    async def work() -> None:
        started.set()
        await ended.wait()

    await app.queues.aset("mail", max_concurrency=1)
    holder = (await app.aenqueue("others.work", {}, queue="mail", concurrency_key="k")).id
    async with app.worker(concurrency=1, queues=["mail"]):
        await asyncio.wait_for(started.wait(), 20)
        limited = await connect("read", types=["mail.welcome"])
        for options, code in (({"concurrency_key": "k"}, "key_held"), ({}, "concurrency_limit")):
            mine = await enqueue(api, 1, queue="mail", **options)
            full, reported = await api.get(f"/jobs/{mine}/why"), await limited.get(f"/jobs/{mine}/why")
            for answer in (full, reported):
                assert code in [each["code"] for each in answer.json()["reasons"]], answer.text
            assert holder in full.text
            assert holder not in reported.text
            assert holder not in (await limited.get(f"http://windlass/jobs/{mine}")).text
        ended.set()


async def test_samples_and_counts_of_other_types_are_refused(api: Client, connect: Connect, others: Others) -> None:
    limited = await connect("read", types=["mail.welcome"])
    queries: list[dict[str, str]] = [{}, {"since": "60"}, {"since": "60", "type": SECRET}]
    for query in (*queries, {"since": "60", "queue": OTHER_QUEUE}):
        assert (await limited.get("/stats", params=query)).json()["code"] == "outside_limits", query
    assert (await limited.get("/scale")).json()["code"] == "outside_limits"
    assert all(not each["jobs"] for each in (await limited.get("/queues")).json()["queues"])
    by_queue = await connect("read", queues=["mail"])
    assert (await by_queue.get("/stats", params={"since": 60, "queue": OTHER_QUEUE})).status_code == 403
    assert [each["type"] for each in (await by_queue.get("/types")).json()["types"]] == []


async def test_a_schedule_that_a_reset_would_give_to_others_is_not_seen(
    app: App, api: Client, connect: Connect
) -> None:
    store = await app._ready()
    theirs = settings(NewJob(id="", type=SECRET, payload='{"path":"x"}', queue=OTHER_QUEUE), every=60)
    await store.schedules.declare({"shared": theirs})
    mine = settings(NewJob(id="", type="mail.welcome", payload='{"user_id":1}', queue="mail"), every=60)
    await store.schedules.change("shared", mine, ScheduleSettings())
    limited = await connect("operate", queues=["mail"])
    assert (await limited.get("/schedules")).json()["schedules"] == []
    assert (await limited.patch("/schedules/shared", json={"reset": ["job"]})).status_code == 404


@pytest.mark.parametrize("limits", [{"queues": ["mail"]}, {"types": ["mail.welcome"]}], ids=["queues", "types"])
async def test_where_a_list_ends_says_nothing_of_jobs_outside(
    app: App, connect: Connect, limits: dict[str, list[str]]
) -> None:
    for _ in range(12):
        await app.aenqueue("secret.job", {"password": "hunter2"}, queue=OTHER_QUEUE, tags=["vip"], delay=60)
    mine = (await app.aenqueue("mail.welcome", {"user_id": 1}, queue="mail", delay=60)).id
    for _ in range(12):
        await app.aenqueue("secret.job", {"password": "hunter2"}, queue=OTHER_QUEUE, tags=["vip"], delay=60)
    limited = await connect("read", "payloads", **limits)
    for query in ({"q": "payload.password:hunter2"}, {"tag": "vip"}, {"q": "type:secret.*"}, {"status": "dead"}):
        page = (await limited.get("/jobs", params={"limit": 1, **query})).json()
        assert page == {"jobs": [], "next_cursor": None, "searched_since": None}, query
    for query in ({}, {"status": "scheduled"}, {"q": "payload.user_id:1"}):
        page = (await limited.get("/jobs", params={"limit": 2, **query})).json()
        assert ([job["id"] for job in page["jobs"]], page["next_cursor"]) == ([mine], None), query
