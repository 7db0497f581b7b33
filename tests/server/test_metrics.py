"""GET /metrics of the server: what it counted and the gauges of its store, for a token that may read everything."""

import httpx
import pytest
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families
from starlette.applications import Starlette

from tests.server.conftest import Client, Connect, enqueue
from tests.server.test_workers import claim, ended, settle
from windlass import App
from windlass.errors import StoreUnavailable
from windlass.observe import process, store_gauges
from windlass.server import access


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_figures", {})


async def value(api: Client, name: str, **labels: str) -> float:
    answer = await api.get("http://windlass/metrics")
    assert answer.status_code == 200, answer.text
    return sum(
        sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


async def test_jobs_enqueued_by_rest_are_counted_and_the_store_is_shown(api: Client) -> None:
    for _ in range(3):
        await enqueue(api)
    assert await value(api, "windlass_jobs_enqueued_total", queue="default", type="mail.welcome") == 3
    assert await value(api, "windlass_queue_jobs", queue="default", status="pending") == 3
    assert await value(api, "windlass_store_up") == 1
    stats = (await api.get("/stats")).json()
    assert await value(api, "windlass_queue_jobs", status="pending") == stats["totals"]["pending"]


async def test_openmetrics_is_the_answer_to_a_request_for_it(api: Client) -> None:
    answer = await api.get("http://windlass/metrics", headers={"accept": "application/openmetrics-text"})
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert "windlass_store_up" in {each.name for each in openmetrics.text_string_to_metric_families(answer.text)}


async def test_a_token_that_may_read_everything_is_needed(connect: Connect, served: Starlette) -> None:
    stranger = httpx.AsyncClient(transport=httpx.ASGITransport(served), base_url="http://windlass")
    async with stranger:
        assert (await stranger.get("/metrics")).status_code == 401
    producer, limited = await connect("enqueue"), await connect("read", queues=["mail"])
    for client, code in ((producer, "missing_scope"), (limited, "outside_limits")):
        answer = await client.get("http://windlass/metrics")
        assert (answer.status_code, answer.json()["code"]) == (403, code)


async def test_without_the_store_a_known_token_still_gets_what_was_counted(
    api: Client, connect: Connect, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = await connect("read")
    await enqueue(api)
    assert await value(api, "windlass_store_up") == 1

    async def away(*_: object) -> None:
        raise StoreUnavailable("the store is away")

    monkeypatch.setattr(access, "FRESH", 0)
    monkeypatch.setattr(access.Access, "_verify_digest", away)
    monkeypatch.setattr(store_gauges, "read_state", away)
    assert await value(api, "windlass_store_up") == 0
    assert await value(api, "windlass_jobs_enqueued_total") == 1
    assert (await other.get("http://windlass/metrics")).status_code == 503
    monkeypatch.setattr(access, "_has_expired", lambda _: True)
    assert (await api.get("http://windlass/metrics")).status_code == 503


async def test_attempts_of_a_rest_worker_are_counted_and_timed(api: Client, connect: Connect) -> None:
    work, done = await connect("work"), ("windlass_jobs_started_total", "windlass_jobs_completed_total")
    await enqueue(api)
    (job,) = await claim(work)
    assert await settle(work, ended(job)) == ["settled"]
    times = ("windlass_job_run_seconds_count", "windlass_job_wait_seconds_count")
    assert [await value(api, name, type="mail.welcome") for name in (*done, *times)] == [1, 1, 1, 1]


async def test_settlements_that_come_too_late_by_rest_are_counted(api: Client, connect: Connect) -> None:
    work = await connect("work")
    await enqueue(api)
    (job,) = await claim(work)
    assert await settle(work, {**ended(job), "attempt": 9}) == ["stale"]
    assert (await work.post("/claims/end", json={"worker": "w1"})).status_code == 204
    late = await work.post("/claims/settle", json={"worker": "w1", "settlements": [ended(job)]})
    assert late.json()["code"] == "lease_lost"
    assert await value(api, "windlass_settlements_stale_total", queue="other") == 2
