"""The verbs of `app.webhooks`, through the server."""

from typing import Any, Unpack

import msgspec

from windlass.client.handle import Handle
from windlass.client.verbs.filters import check_limit
from windlass.client.verbs.webhooks import DEFAULT_OVERLAP, NewSecret, Webhooks
from windlass.core.jobs.job import Job
from windlass.core.moments import SECOND, Duration, duration
from windlass.core.webhooks.delivery import WEBHOOK_QUEUE, WEBHOOK_TYPE, delivery_tag
from windlass.core.webhooks.webhook import Webhook, WebhookOptions, check_webhook_name, settings_of
from windlass.remote.connection import ThroughServer
from windlass.server.api.webhooks import Delivery, DeliveryList, TestDelivery, WebhookList, WebhookSecret
from windlass.store.records import Page


class RemoteWebhooks(ThroughServer, Webhooks):
    """Webhooks behind a server; the token needs the scope `admin`."""

    async def aadd(self, name: str, url: str, **options: Unpack[WebhookOptions]) -> NewSecret:
        check_webhook_name(name)
        checked = settings_of(**options)
        settings = {**msgspec.structs.asdict(checked), "timeout": checked.timeout / SECOND}
        body = {"name": name, "url": url, **settings}
        return _new(await self._connection.call("POST", "/webhooks", WebhookSecret, body=body))

    async def aget(self, name: str) -> Webhook:
        return await self._connection.get(_path(name), Webhook)

    async def alist(self) -> list[Webhook]:
        return (await self._connection.get("/webhooks", WebhookList)).webhooks

    async def aremove(self, name: str) -> None:
        await self._connection.call("DELETE", _path(name), type(None))

    async def apause(self, name: str) -> Webhook:
        return await self._connection.call("POST", f"{_path(name)}/pause", Webhook)

    async def aresume(self, name: str) -> Webhook:
        return await self._connection.call("POST", f"{_path(name)}/resume", Webhook)

    async def arotate(self, name: str, *, overlap: Duration = DEFAULT_OVERLAP) -> NewSecret:
        body = {"overlap": duration(overlap, "overlap") / SECOND}
        return _new(await self._connection.call("POST", f"{_path(name)}/rotate", WebhookSecret, body=body))

    async def atest(self, name: str) -> Handle[Any]:
        found = await self._connection.call("POST", f"{_path(name)}/test", TestDelivery)
        return self._home._handle(found.id, False, Any)

    async def adeliveries(self, name: str, *, limit: int = 50, cursor: str | None = None) -> Page[Job]:
        """The deliveries of a webhook, without the bodies that were sent."""
        check_limit(limit)
        page = await self._connection.get(f"{_path(name)}/deliveries", DeliveryList, limit=limit, cursor=cursor)
        return Page(tuple(_job(name, each) for each in page.deliveries), page.next_cursor)


def _path(name: str) -> str:
    return f"/webhooks/{check_webhook_name(name)}"


def _new(answer: WebhookSecret) -> NewSecret:
    return NewSecret(answer.webhook, answer.secret)


def _job(name: str, delivery: Delivery) -> Job:
    return Job(
        id=delivery.id,
        queue=WEBHOOK_QUEUE,
        type=WEBHOOK_TYPE,
        status=delivery.status,
        payload={"webhook": name, "event": {"type": delivery.event, "data": {"job": delivery.job}}},
        attempt=delivery.attempt,
        run_at=delivery.created_at,
        created_at=delivery.created_at,
        updated_at=delivery.updated_at,
        tenant=name,
        tags=(delivery_tag(name),),
        result=None if delivery.answer is None else {"status": delivery.answer},
        error=delivery.error,
        reason=delivery.reason,
    )
