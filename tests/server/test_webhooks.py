"""Webhooks over REST: for administrators, within the limits of their tokens."""

from collections.abc import Iterator

import pytest
from starlette.applications import Starlette

from tests.server.conftest import Client, Connect
from windlass import App
from windlass.client.webhooks.records import find_webhook
from windlass.core.groups.ids import GROUP_TYPE
from windlass.core.tokens import Scope
from windlass.core.webhooks.delivery import WEBHOOK_QUEUE, WEBHOOK_TYPE, delivery_tag
from windlass.server import asgi

URL = "https://example.com/hook"


async def test_the_secret_is_in_the_answers_that_make_it_and_in_no_other(api: Client) -> None:
    made = await api.post("/webhooks", json={"name": "ops", "url": URL, "events": ["job.dead"], "queues": ["mail"]})
    assert made.status_code == 201, made.text
    assert made.headers["location"] == "/api/v1/webhooks/ops"
    rotated = await api.post("/webhooks/ops/rotate", json={"overlap": 60})
    secrets = [answer.json()["secret"] for answer in (made, rotated)]
    assert all(secret.startswith("whsec_") for secret in secrets)
    read = [await api.get(f"/{path}") for path in ("webhooks", "webhooks/ops", "webhooks/ops/deliveries", "audit")]
    assert [answer.status_code for answer in read] == [200] * 4
    assert not any("whsec_" in answer.text for answer in read)
    assert read[1].json()["events"] == ["job.dead"]


async def test_a_webhook_is_paused_resumed_tested_and_removed(api: Client, app: App) -> None:
    await api.post("/webhooks", json={"name": "ops", "url": URL})
    assert (await api.post("/webhooks/ops/pause")).json()["paused"] is True
    assert (await api.post("/webhooks/ops/resume")).json()["paused"] is False
    sent = await api.post("/webhooks/ops/test")
    assert sent.status_code == 202
    (delivery,) = (await api.get("/webhooks/ops/deliveries")).json()["deliveries"]
    assert (delivery["id"], delivery["status"], delivery["event"]) == (sent.json()["id"], "pending", "webhook.test")
    assert (await api.delete("/webhooks/ops")).status_code == 204
    gone = await api.get("/webhooks/ops")
    assert (gone.status_code, gone.json()["code"]) == (404, "webhook_not_found")
    actions = [entry.action for entry in await app.audit.alist()]
    assert actions == [f"webhook.{verb}" for verb in ("remove", "test", "resume", "pause", "add")] + ["token.create"]


def wrong() -> Iterator[tuple[dict[str, object], str]]:
    yield {"name": "ops", "url": "https://169.254.169.254/latest"}, "url"
    yield {"name": "ops", "url": "http://example.com/"}, "url"
    yield {"name": "o" * 101, "url": URL}, "name"
    yield {"name": "ops", "url": URL, "events": ["job.failed"]}, "events[0]"
    yield {"name": "ops", "url": URL, "timeout": 300}, "timeout"


@pytest.mark.parametrize(("body", "field"), list(wrong()))
async def test_a_wrong_webhook_is_refused_with_its_field(api: Client, body: dict[str, object], field: str) -> None:
    answer = await api.post("/webhooks", json=body)
    assert (answer.status_code, answer.json()["field"]) == (422, field)
    assert (await api.get("/webhooks")).json() == {"webhooks": []}


async def test_only_administrators_see_webhooks_and_limited_ones_those_within_their_limits(
    api: Client, connect: Connect
) -> None:
    for name, queues in (("all", []), ("mail", ["mail"])):
        assert (await api.post("/webhooks", json={"name": name, "url": URL, "queues": queues})).status_code == 201
    for scope in set(Scope) - {Scope.ADMIN}:
        assert (await (await connect(scope)).get("/webhooks")).status_code == 403
    limited = await connect("admin", queues=["mail"])
    assert [each["name"] for each in (await limited.get("/webhooks")).json()["webhooks"]] == ["mail"]
    assert (await limited.get("/webhooks/all")).status_code == 404
    assert (await limited.post("/webhooks/all/pause")).status_code == 404
    refused = await limited.post("/webhooks", json={"name": "more", "url": URL})
    assert (refused.status_code, refused.json()["code"]) == (403, "outside_limits")
    assert (await limited.post("/webhooks", json={"name": "own", "url": URL, "queues": ["mail"]})).status_code == 201


@pytest.mark.parametrize("event", [{"data": None}, {"data": "x"}, {"type": 1, "data": {"job": []}}])
async def test_a_job_that_only_looks_like_a_delivery_spoils_no_list(
    api: Client, app: App, event: dict[str, object]
) -> None:
    await api.post("/webhooks", json={"name": "ops", "url": URL})
    payload = {"webhook": "ops", "id": "1", "event": event, "mac": "forged"}
    await app.aenqueue(WEBHOOK_TYPE, payload, queue=WEBHOOK_QUEUE, tags=[delivery_tag("ops")])
    found = await api.get("/webhooks/ops/deliveries")
    assert found.status_code == 200, found.text
    assert [(each["event"], each["job"]) for each in found.json()["deliveries"]] == [(None, None)]


@pytest.mark.parametrize("type_", [WEBHOOK_TYPE, GROUP_TYPE])
async def test_a_type_of_ours_is_no_task_of_the_app(api: Client, type_: str) -> None:
    refused = await api.post("/jobs", json={"type": type_, "payload": {}})
    assert (refused.status_code, refused.json()["code"]) == (422, "unknown_task")


@pytest.fixture
def served(app: App) -> Starlette:
    return asgi(app, hide=["password", "card.number"])


async def test_what_the_server_hides_is_hidden_from_webhooks_too(api: Client, app: App) -> None:
    await api.post("/webhooks", json={"name": "ops", "url": URL, "contents": True, "hide": ["token"]})
    found = await find_webhook((await app._ready()).documents, "ops")
    assert found is not None
    assert found.stored.settings.hide == ("token", "card.number", "password")
