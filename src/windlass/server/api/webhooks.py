"""Webhooks, for administrators."""

from datetime import datetime
from typing import Any

import msgspec

from windlass.client.verbs.webhooks import WebhookNotFound
from windlass.core.jobs.job import Job, JobError
from windlass.core.moments import SECOND
from windlass.core.status import Status
from windlass.core.tokens import Scope
from windlass.core.webhooks.delivery import event_and_job
from windlass.core.webhooks.webhook import DEFAULT_ATTEMPTS, DEFAULT_TIMEOUT, ENDS, Webhook
from windlass.server.decode import make_cursor, read_cursor
from windlass.server.operation import Answer, Call, Operation, OutsideLimits


class NewWebhook(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A webhook to add; of `types`, `*` stands for any characters. `contents` puts payload and result into bodies."""

    name: str
    url: str
    events: tuple[str, ...] = ENDS
    queues: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    contents: bool = False
    hide: tuple[str, ...] = ()
    max_attempts: int = DEFAULT_ATTEMPTS
    timeout: float = DEFAULT_TIMEOUT / SECOND


class Rotation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """For how many seconds the old secret signs beside the new one."""

    overlap: float = 86_400


class WebhookSecret(msgspec.Struct, frozen=True):
    """A webhook and its secret, which is shown once."""

    webhook: Webhook
    secret: str


class WebhookList(msgspec.Struct, frozen=True):
    """All webhooks, by name."""

    webhooks: list[Webhook]


class DeliveryQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A page."""

    limit: int = 50
    cursor: str | None = None


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """A delivery; it is a job, whose id receivers see as `webhook-id`."""

    id: str
    status: Status
    event: str | None
    job: str | None
    """The job that ended."""
    attempt: int
    created_at: datetime
    updated_at: datetime
    answer: int | None
    """The status of the answer that accepted it."""
    error: JobError | None
    reason: str | None


class DeliveryList(msgspec.Struct, frozen=True):
    """The newest first."""

    deliveries: list[Delivery]
    next_cursor: str | None


class TestDelivery(msgspec.Struct, frozen=True):
    """The delivery that a test made."""

    id: str


async def list_webhooks(call: Call) -> Answer:
    """All webhooks; a limited token sees those that stay within its limits."""
    return Answer(WebhookList([each for each in await call.app.webhooks.alist() if _is_seen(call, each)]))


async def add_webhook(call: Call) -> Answer:
    """Add a webhook for jobs that end from now on. Only this answer has its secret.

    Fields that this server hides are hidden from the webhook too.
    """
    body: NewWebhook = call.body
    if not call.caller.rights.includes(body.queues, body.types):
        raise OutsideLimits("this token is limited: the webhook must be limited to queues and types that it may use")
    options = msgspec.structs.asdict(body)
    options["hide"] = tuple(dict.fromkeys((*body.hide, *call.caller.policy.hidden.rules)))
    new = await call.app.webhooks.aadd(options.pop("name"), options.pop("url"), **options)
    return Answer(WebhookSecret(new.webhook, new.secret), 201, {"location": f"/api/v1/webhooks/{body.name}"})


async def get_webhook(call: Call) -> Answer:
    """One webhook, without its secret."""
    return Answer(await _seen(call))


async def remove_webhook(call: Call) -> Answer:
    """Remove a webhook; deliveries that have not been sent are cancelled."""
    await call.app.webhooks.aremove((await _seen(call)).name)
    return Answer(None, 204)


async def pause_webhook(call: Call) -> Answer:
    """Send nothing until the webhook is resumed; ends of the meantime are delivered then."""
    return Answer(await call.app.webhooks.apause((await _seen(call)).name))


async def resume_webhook(call: Call) -> Answer:
    """Deliver again."""
    return Answer(await call.app.webhooks.aresume((await _seen(call)).name))


async def rotate_webhook(call: Call) -> Answer:
    """Make a new secret; the old one also signs for `overlap` seconds."""
    new = await call.app.webhooks.arotate((await _seen(call)).name, overlap=call.body.overlap)
    return Answer(WebhookSecret(new.webhook, new.secret))


async def send_test_event(call: Call) -> Answer:
    """Deliver a `webhook.test` event, once."""
    return Answer(TestDelivery((await call.app.webhooks.atest((await _seen(call)).name)).id), 202)


async def list_deliveries(call: Call) -> Answer:
    """The deliveries of a webhook, without their bodies."""
    query: DeliveryQuery = call.query
    name = (await _seen(call)).name
    cursor = read_cursor(query.cursor, name)
    page = await call.app.webhooks.adeliveries(name, limit=query.limit, cursor=cursor)
    found = [_delivery(each) for each in page.items]
    return Answer(DeliveryList(found, make_cursor(page.next_cursor, name)))


def _delivery(job: Job) -> Delivery:
    event, about = event_and_job(job.payload)
    status = job.result.get("status") if isinstance(job.result, dict) else None
    return Delivery(
        id=job.id,
        status=job.status,
        event=event,
        job=about,
        attempt=job.attempt,
        created_at=job.created_at,
        updated_at=job.updated_at,
        answer=status if isinstance(status, int) else None,
        error=None if job.error is None else JobError(job.error.type, job.error.message),
        reason=job.reason,
    )


async def _seen(call: Call) -> Webhook:
    found = await call.app.webhooks.aget(call.path["name"])
    if not _is_seen(call, found):
        raise WebhookNotFound(found.name)
    return found


def _is_seen(call: Call, webhook: Webhook) -> bool:
    return call.caller.rights.includes(webhook.queues, webhook.types)


def _operation(method: str, path: str, handler: Any, summary: str, **more: Any) -> Operation:
    return Operation(method=method, path=path, scope=Scope.ADMIN, handler=handler, summary=summary, **more)


_PATH = "/webhooks/{name}"
OPERATIONS = (
    _operation("GET", "/webhooks", list_webhooks, "List webhooks", answers={200: WebhookList}),
    _operation("POST", "/webhooks", add_webhook, "Add a webhook", body=NewWebhook, answers={201: WebhookSecret}),
    _operation("GET", _PATH, get_webhook, "Read a webhook", answers={200: Webhook}),
    _operation("DELETE", _PATH, remove_webhook, "Remove a webhook", answers={204: None}),
    _operation("POST", f"{_PATH}/pause", pause_webhook, "Pause a webhook", answers={200: Webhook}),
    _operation("POST", f"{_PATH}/resume", resume_webhook, "Resume a webhook", answers={200: Webhook}),
    _operation(
        "POST",
        f"{_PATH}/rotate",
        rotate_webhook,
        "Give a webhook a new secret",
        body=Rotation,
        optional_body=True,
        answers={200: WebhookSecret},
    ),
    _operation("POST", f"{_PATH}/test", send_test_event, "Test a webhook", answers={202: TestDelivery}),
    _operation(
        "GET",
        f"{_PATH}/deliveries",
        list_deliveries,
        "List the deliveries of a webhook",
        query=DeliveryQuery,
        answers={200: DeliveryList},
    ),
)
