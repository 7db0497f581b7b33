"""Webhooks, from the end of a job to the answer of a receiver."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from tests.support.addresses import on_sqlite
from tests.support.receiver import Receiver, answer, receiving
from windlass import App, InvalidOption, Job, JobDead, Status
from windlass.client.runtime.location import NETWORKS_VARIABLE
from windlass.client.verbs.webhooks import WebhookNotFound
from windlass.core.webhooks.delivery import WEBHOOK_QUEUE, WEBHOOK_TYPE

WAIT = 30.0


@pytest.fixture(autouse=True)
def loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NETWORKS_VARIABLE, "127.0.0.0/8")


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as made:
        yield made


async def until(look: Callable[[], Awaitable[Any]]) -> Any:
    async with asyncio.timeout(WAIT):
        while not (found := await look()):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return found


async def delivered(app: App, name: str, status: Status) -> Job:
    """The newest delivery, once it has this status."""

    async def look() -> Job | None:
        found = await app.webhooks.adeliveries(name)
        return found[0] if found and found[0].status is status else None

    job: Job = await until(look)
    return job


async def test_an_ended_job_is_delivered_signed_and_without_its_contents(app: App, receiver: Receiver) -> None:
    @app.task(queue="mail")
    async def double(number: int, secret: str) -> int:
        return 2 * number

    new = await app.webhooks.aadd("ops", receiver.url, events=["job.completed"], queues=["mail"], types=["dou*"])
    async with app.worker(concurrency=2):
        handle = await double.using(tags=["vip"]).aenqueue(21, "sesame")
        assert await handle.aresult(timeout=WAIT) == 42
        (request,) = await receiver.until(1)
        done = await delivered(app, "ops", Status.COMPLETED)
        workers = await until(lambda: serving(app))
    assert request.target == "/hook?from=windlass"
    assert request.headers["webhook-id"] == done.id
    assert request.is_signed_by(new.secret)
    assert not request.is_signed_by(new.secret, request.body + b" ")
    assert request.event["type"] == "job.completed"
    data = request.event["data"]
    assert (data["job"], data["type"], data["queue"], data["tags"]) == (handle.id, "double", "mail", ["vip"])
    assert b"sesame" not in request.body
    assert "result" not in data
    assert done.result["status"] == 204
    assert workers == [WEBHOOK_QUEUE]


async def serving(app: App) -> list[str]:
    return [name for worker in await app.workers.alist() for name in worker.queues if name == WEBHOOK_QUEUE]


@on_sqlite
async def test_what_was_not_selected_and_deliveries_themselves_are_not_delivered(
    app: App, receiver: Receiver
) -> None:
    @app.task
    async def ping() -> None: ...

    @app.task(queue="mail", max_attempts=1)
    async def boom() -> None:
        raise ValueError("no")

    await ping.aenqueue()
    await app.webhooks.aadd("dead", receiver.url, events=["job.dead"], contents=True)
    async with app.worker(concurrency=4):
        await (await ping.aenqueue()).aresult(timeout=WAIT)
        with pytest.raises(JobDead):
            await (await boom.aenqueue()).aresult(timeout=WAIT)
        await receiver.until(1)
        receiver.answers = [answer(410)]
        with pytest.raises(JobDead):
            await (await boom.aenqueue()).aresult(timeout=WAIT)
        refused = await delivered(app, "dead", Status.DEAD)
        with pytest.raises(JobDead):
            await (await boom.aenqueue()).aresult(timeout=WAIT)
        await receiver.until(3)
    assert refused.reason is not None
    assert "410" in refused.reason
    assert [each.event["data"]["type"] for each in receiver.requests] == ["boom"] * 3
    assert receiver.requests[0].event["data"]["error"] == {"type": "ValueError", "message": "no"}


@on_sqlite
async def test_contents_come_only_where_they_are_asked_for_and_without_hidden_fields(
    app: App, receiver: Receiver
) -> None:
    @app.task
    async def pay(card: dict[str, str]) -> dict[str, str]:
        return {"token": "t-1", "state": "paid"}

    await app.webhooks.aadd("pay", receiver.url, contents=True, hide=["card.number", "token"])
    async with app.worker(concurrency=2):
        await (await pay.aenqueue({"number": "4111", "name": "Ada"})).aresult(timeout=WAIT)
        (request,) = await receiver.until(1)
    data = request.event["data"]
    assert data["payload"] == {"card": {"number": "[hidden]", "name": "Ada"}}
    assert data["result"] == {"token": "[hidden]", "state": "paid"}


@on_sqlite
async def test_a_receiver_that_fails_is_tried_again_with_the_same_id_until_it_accepts(
    app: App, receiver: Receiver
) -> None:
    await app.webhooks.aadd("ops", receiver.url)
    location = "location: http://127.0.0.1:1/elsewhere"
    receiver.answers = [
        answer(500),
        answer(302, location),
        b"no HTTP\r\n\r\n",
        answer(103) + answer(200, body=b"x" * 300_000),
    ]
    errors = []
    async with app.worker(concurrency=2):
        test = await app.webhooks.atest("ops")
        with pytest.raises(JobDead):
            await test.aresult(timeout=WAIT)
        for _ in range(2):
            await app.jobs.aretry(test.id)
            with pytest.raises(JobDead) as dead:
                await test.aresult(timeout=WAIT)
            errors.append(str(dead.value))
        await app.jobs.aretry(test.id)
        assert (await test.aresult(timeout=WAIT))["status"] == 200
    assert "302, and redirects are not followed" in errors[0]
    assert "not HTTP" in errors[1]
    assert len(receiver.requests) == 4
    assert {each.headers["webhook-id"] for each in receiver.requests} == {test.id}


@on_sqlite
async def test_a_failed_delivery_waits_as_the_receiver_asks_and_dies_after_its_last_attempt(
    app: App, receiver: Receiver
) -> None:
    @app.task
    async def ping() -> None: ...

    await app.webhooks.aadd("ops", receiver.url, max_attempts=2)
    receiver.answers = [answer(503, "Retry-After: 3000"), answer(500)]
    async with app.worker(concurrency=2):
        await ping.aenqueue()
        failed = await delivered(app, "ops", Status.FAILED)
        assert failed.run_at is not None
        assert 2900 < (failed.run_at - failed.updated_at).total_seconds() < 3100
        await app.jobs.arun_now(failed.id)
        dead = await delivered(app, "ops", Status.DEAD)
    assert dead.error is not None
    assert dead.error.message == "the receiver answered 500"
    assert await app.jobs.acount(status="dead", queue=WEBHOOK_QUEUE) == 1


@on_sqlite
async def test_a_receiver_that_asks_for_no_wait_does_not_use_up_the_attempts(app: App, receiver: Receiver) -> None:
    @app.task
    async def ping() -> None: ...

    await app.webhooks.aadd("ops", receiver.url)
    receiver.answers = [answer(503, "Retry-After: 0"), answer(429, "Retry-After: 1")]
    async with app.worker(concurrency=2):
        await ping.aenqueue()
        for usual in (5, 300):
            failed = await delivered(app, "ops", Status.FAILED)
            assert failed.run_at is not None
            assert (failed.run_at - failed.updated_at).total_seconds() > usual / 2
            await app.jobs.arun_now(failed.id)
            await receiver.until(2)
    assert failed.failures == 2


@on_sqlite
async def test_a_slow_receiver_is_given_its_time_and_no_more(app: App, receiver: Receiver) -> None:
    await app.webhooks.aadd("slow", receiver.url, timeout=0.2)
    receiver.silent = True
    async with app.worker(concurrency=1):
        with pytest.raises(JobDead, match=r"no answer within 0\.2 s"):
            await (await app.webhooks.atest("slow")).aresult(timeout=WAIT)


@on_sqlite
async def test_nothing_is_sent_to_an_address_that_is_not_public(
    app: App, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name leads to a public address when it is added, and to loopback at the attempt."""
    await app.webhooks.aadd("rebound", f"http://rebound.example:{receiver.port}/")

    def rebound(host: str, port: int, **more: Any) -> Any:
        assert host == "rebound.example"
        return [(2, 1, 6, "", ("::ffff:127.0.0.1", port, 0, 0))]

    monkeypatch.setattr(socket, "getaddrinfo", rebound)
    app._location.__dict__["webhook_networks"] = ()
    async with app.worker(concurrency=1):
        with pytest.raises(JobDead, match="this machine"):
            await (await app.webhooks.atest("rebound")).aresult(timeout=WAIT)
    assert receiver.writers == []


@on_sqlite
async def test_after_a_rotation_both_secrets_sign_until_the_overlap_is_over(app: App, receiver: Receiver) -> None:
    first = await app.webhooks.aadd("ops", receiver.url)
    second = await app.webhooks.arotate("ops")
    async with app.worker(concurrency=1):
        await (await app.webhooks.atest("ops")).aresult(timeout=WAIT)
        third = await app.webhooks.arotate("ops", overlap=0)
        await (await app.webhooks.atest("ops")).aresult(timeout=WAIT)
    both, alone = receiver.requests
    assert both.is_signed_by(first.secret)
    assert both.is_signed_by(second.secret)
    assert alone.is_signed_by(third.secret)
    assert not alone.is_signed_by(first.secret)
    assert not alone.is_signed_by(second.secret)
    assert second.webhook.old_secret_until is not None
    assert third.webhook.old_secret_until is None


@on_sqlite
async def test_no_other_producer_can_have_an_event_signed(app: App, receiver: Receiver) -> None:
    await app.webhooks.aadd("ops", receiver.url)
    async with app.worker(concurrency=1):
        true = await app.webhooks.atest("ops")
        await true.aresult(timeout=WAIT)
        payload = (await app.jobs.aget(true.id)).payload
        for event in (payload["event"], {"type": "job.completed", "data": {}}):
            forged = await app.aenqueue(WEBHOOK_TYPE, {**payload, "event": event}, queue=WEBHOOK_QUEUE)
            with pytest.raises(JobDead, match="was not made by a coordinator"):
                await forged.aresult(timeout=WAIT)
    assert len(receiver.requests) == 1


@on_sqlite
async def test_a_removed_webhook_gets_nothing_more(app: App, receiver: Receiver) -> None:
    await app.webhooks.aadd("ops", receiver.url)
    waiting = await app.webhooks.atest("ops")
    await app.webhooks.aremove("ops")
    await app.webhooks.aadd("ops", receiver.url)
    async with app.worker(concurrency=1):
        job = await until(lambda: ended(app, waiting.id))
    assert (job.status, job.reason) == (Status.CANCELLED, "its webhook was removed")
    assert receiver.requests == []


async def ended(app: App, id_: str) -> Job | None:
    job = await app.jobs.aget(id_)
    return job if job.finished else None


@on_sqlite
async def test_secrets_are_in_no_answer_no_audit_and_no_log(app: App, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    new = await app.webhooks.aadd("ops", "https://example.com/hook")
    again = await app.webhooks.arotate("ops")
    await app.webhooks.apause("ops")
    shown = [await app.webhooks.aget("ops"), await app.webhooks.alist(), await app.audit.alist(), new, caplog.text]
    for text in map(repr, shown):
        assert "whsec_" not in text
    assert new.secret.startswith("whsec_")
    assert again.secret != new.secret
    actions = [entry.action for entry in (await app.audit.alist()).items]
    assert actions == ["webhook.pause", "webhook.rotate", "webhook.add"]


@on_sqlite
async def test_wrong_webhooks_are_refused_and_nothing_is_stored(app: App) -> None:
    for url in (
        "ftp://example.com",
        "https://user:secret@example.com",
        "https://10.0.0.1/",
        "https://[fe80::1]/",
        "",
    ):
        with pytest.raises(InvalidOption, match="url"):
            await app.webhooks.aadd("ops", url)
    with pytest.raises(InvalidOption, match=r"events\[0\]"):
        await app.webhooks.aadd("ops", "https://example.com/", events=["job.started"])
    with pytest.raises(WebhookNotFound):
        await app.webhooks.aget("ops")
    assert await app.webhooks.alist() == []
    await app.webhooks.aadd("ops", "https://example.com/")
    with pytest.raises(InvalidOption, match="already"):
        await app.webhooks.aadd("ops", "https://example.com/")
