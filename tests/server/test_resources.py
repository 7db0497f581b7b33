"""Queues, schedules, statistics, scaling, dead groups, audit, OpenAPI."""

import msgspec
from openapi_spec_validator import validate

from tests.server.conftest import Client, enqueue
from windlass import App, Results
from windlass.core.ids import new_runner_id
from windlass.core.jobs.job import JobError
from windlass.core.jobs.outcome import Settlement
from windlass.core.moments import SECOND
from windlass.core.status import Status
from windlass.store.records import ClaimRequest, LeaseRequest, QueueQuota


async def test_a_queue_is_paused_changed_closed_and_purged(api: Client) -> None:
    await enqueue(api)
    paused = (await api.post("/queues/default/pause", json={"seconds": 60})).json()
    assert paused["paused"] is True
    assert paused["paused_until"] is not None
    assert (await api.get("/scale")).json()["value"] == 0
    assert (await api.post("/queues/default/resume")).json()["paused"] is False
    assert (await api.get("/scale")).json() == {
        "value": 1,
        "queues": {"default": {"pending": 1, "running": 0, "paused": False}},
    }
    changed = (await api.patch("/queues/default", json={"rate_limit": "10/s", "max_concurrency": 4})).json()
    assert (changed["settings"]["rate_limit"], changed["changed"]["max_concurrency"]) == ("10/s", 4)
    assert (await api.patch("/queues/default", json={"reset": ["rate_limit"]})).json()["changed"][
        "rate_limit"
    ] is None
    assert (await api.patch("/queues/default", json={"rate_limit": "often"})).json()["field"] == "rate_limit"
    assert (await api.patch("/queues/default", json={})).status_code == 422
    assert (await api.post("/queues/default/close")).json()["closed"] is True
    refused = await api.post("/jobs", json={"type": "mail.welcome", "payload": {"user_id": 1}})
    assert (refused.status_code, refused.json()["code"]) == (409, "queue_closed")
    await api.post("/queues/default/open")
    assert (await api.post("/queues/default/purge")).json() == {"cancelled": 1}
    assert (await api.get("/queues/unknown")).json()["code"] == "queue_not_found"


async def test_a_queue_is_changed_only_at_the_state_that_was_seen(api: Client) -> None:
    await enqueue(api)
    seen = (await api.get("/queues/default")).headers["etag"]
    assert (await api.patch("/queues/default", json={"fair": True}, headers={"if-match": seen})).status_code == 200
    assert (await api.patch("/queues/default", json={"fair": False}, headers={"if-match": seen})).status_code == 412


async def test_a_schedule_is_added_changed_paused_run_and_removed(api: Client) -> None:
    body = {"name": "daily", "type": "mail.welcome", "payload": {"user_id": 1}, "cron": "0 9 * * 1-5"}
    added = await api.post("/schedules", json={**body, "tz": "Europe/Berlin"})
    assert added.status_code == 201
    assert added.json()["settings"]["cron"] == "0 9 * * 1-5"
    assert len(added.json()["upcoming"]) == 5
    assert (await api.post("/schedules", json=body)).json()["field"] == "name"
    assert (await api.post("/schedules", json={**body, "name": "b", "cron": "whenever"})).json()["field"] == "cron"
    changed = (await api.patch("/schedules/daily", json={"catch_up": "none", "payload": {"user_id": 2}})).json()
    assert (changed["settings"]["catch_up"], changed["settings"]["payload"]) == ("none", {"user_id": 2})
    stale = await api.patch("/schedules/daily", json={"paused": True}, headers={"if-match": added.headers["etag"]})
    assert stale.status_code == 412
    assert (await api.patch("/schedules/daily", json={"paused": True})).json()["paused"] is True
    ran = await api.post("/schedules/daily/run")
    assert (await api.get(f"/jobs/{ran.json()['id']}")).json()["payload"] == {"user_id": 2}
    assert (await api.delete("/schedules/daily")).status_code == 204
    assert (await api.get("/schedules/daily")).json()["code"] == "schedule_not_found"


async def test_dead_jobs_are_grouped_by_type_and_error(api: Client, app: App) -> None:
    ids = [await enqueue(api, number, max_attempts=1) for number in range(3)]
    store = await app._ready()
    runner = new_runner_id(lambda count: bytes(range(count)))
    await store.leases.open(LeaseRequest(runner=runner, worker=runner, length=60 * SECOND))
    quota = QueueQuota("default", 10)
    claim = ClaimRequest(runner=runner, claim=1, quotas=(quota,), types=("mail.welcome",), limit=10)
    claimed = await store.jobs.claim(claim)
    kinds = {ids[0]: "smtplib.SMTPError", ids[1]: "smtplib.SMTPError", ids[2]: "ValueError"}
    await store.jobs.settle(
        [
            Settlement(
                id=job.id,
                queue=job.queue,
                attempt=job.attempt,
                status=Status.DEAD,
                outcome="failed",
                error=JobError(kinds[job.id], f"of {job.payload}"),
            )
            for job in claimed
        ]
    )
    found = (await api.get("/dead/groups")).json()
    assert [(each["type"], each["error"], each["count"]) for each in found["groups"]] == [
        ("mail.welcome", "smtplib.SMTPError", 2),
        ("mail.welcome", "ValueError", 1),
    ]
    assert found["complete"] is True


async def test_what_operators_do_is_in_the_audit_and_enqueues_are_not(api: Client, app: App) -> None:
    id_ = await enqueue(api, meta={"secret": "s3cr3t"})
    await api.patch(f"/jobs/{id_}", json={"payload": {"user_id": 99_887_766}})
    await api.delete(f"/jobs/{id_}")
    await api.post("/queues/default/pause")
    await app.queues.aresume("default")
    answer = await api.get("/audit", params={"limit": 4})
    entries = answer.json()["entries"]
    assert [(each["action"], each["target"], each["actor"]["source"]) for each in entries] == [
        ("queue.resume", "default", "python"),
        ("queue.pause", "default", "rest"),
        ("job.cancel", id_, "rest"),
        ("job.change", id_, "rest"),
    ]
    assert entries[1]["actor"]["name"] == "test"
    assert [(each["before"]["paused"], each["after"]["paused"]) for each in entries[:2]] == [
        (True, False),
        (False, True),
    ]
    assert entries[2]["before"]["status"] == "pending"
    assert entries[2]["after"]["status"] == "cancelled"
    assert entries[3]["before"]["status"] == entries[3]["after"]["status"] == "pending"
    assert entries[3]["after"]["changed"] == ["payload"]
    assert "99887766" not in answer.text
    rest = (await api.get("/audit", params={"cursor": answer.json()["next_cursor"]})).json()["entries"]
    assert [each["action"] for each in rest] == ["token.create"]


async def test_the_audit_has_the_state_of_a_job_before_and_after_each_verb(api: Client, app: App) -> None:
    id_ = await enqueue(api, delay=3600, priority=1)
    await api.patch(f"/jobs/{id_}", json={"priority": 7})
    await api.post(f"/jobs/{id_}/run")
    await app.jobs.acancel(id_)
    await api.post(f"/jobs/{id_}/retry")
    await app.jobs.acancel(id_)
    await app.jobs.adelete(id_)
    entries = (await api.get("/audit", params={"limit": 6})).json()["entries"]
    states = {
        each["action"]: tuple(each[side] and each[side]["status"] for side in ("before", "after")) for each in entries
    }
    assert states == {
        "job.delete": ("cancelled", None),
        "job.cancel": ("pending", "cancelled"),
        "job.retry": ("cancelled", "pending"),
        "job.run": ("scheduled", "pending"),
        "job.change": ("scheduled", "scheduled"),
    }
    assert (entries[-1]["before"]["priority"], entries[-1]["after"]["priority"]) == (1, 7)


async def test_types_show_the_schema_of_their_payload(api: Client) -> None:
    types = {each["type"]: each for each in (await api.get("/types")).json()["types"]}
    schema = types["mail.welcome"]["schema"]
    assert schema["required"] == ["user_id"]
    assert schema["properties"]["user_id"] == {"type": "integer"}
    assert schema["additionalProperties"] is False


async def test_types_show_a_callback_that_takes_the_results_of_a_group(api: Client, app: App) -> None:
    @app.task(type="merge")
    def merge(sizes: Results[int], name: str = "") -> int:
        return len(sizes)

    answer = await api.get("/types")
    assert answer.status_code == 200, answer.text
    (schema,) = [each["schema"] for each in answer.json()["types"] if each["type"] == "merge"]
    assert schema["properties"] == {"sizes": {"title": "Results"}, "name": {"type": "string"}}
    assert schema["required"] == ["sizes"]


async def test_stats_agree_with_the_client_and_have_samples_on_request(api: Client, app: App) -> None:
    await enqueue(api)
    found = (await api.get("/stats", params={"since": 3600, "recent": 60})).json()
    assert found["queues"] == msgspec.to_builtins((await app.stats.acounts()).queues)
    assert found["totals"]["pending"] == 1
    assert found["timeline"]["by"] == "queue"
    assert found["recent"]["meters"] == []
    assert found["oldest"]["default"] >= 0


async def test_the_openapi_document_is_valid_and_names_every_type_it_uses(api: Client) -> None:
    document = (await api.get("/openapi.json")).json()
    validate(document)
    assert document["openapi"] == "3.1.0"
    assert "/api/v1/jobs/{id}" in document["paths"]
    page = (await api.get("/docs")).text
    assert "/api/v1/jobs/bulk" in page
    assert "://" not in page.replace("https://json-schema.org", "")
