"""app.webhooks: addresses that are notified of ended jobs and flows; each verb also with the prefix `a`."""

import os
from collections.abc import Callable
from typing import Any, Unpack

import msgspec

from windlass.client.handle import Handle
from windlass.client.runtime.portal import blocking
from windlass.client.verbs.filters import check_limit
from windlass.client.verbs.group import Verbs
from windlass.client.webhooks.records import KIND, Found, all_webhooks, as_text, find_webhook, public
from windlass.core.ids import new_id
from windlass.core.jobs.job import Job
from windlass.core.moments import Duration, duration, to_datetime
from windlass.core.suggest import suggest
from windlass.core.webhooks.delivery import QUEUE_SETTINGS, WEBHOOK_QUEUE, WEBHOOK_TYPE, delivery, delivery_tag
from windlass.core.webhooks.signature import Secret, new_secret
from windlass.core.webhooks.webhook import (
    MAX_WEBHOOKS,
    TEST,
    StoredWebhook,
    Webhook,
    WebhookOptions,
    check_url,
    check_webhook_name,
    settings_of,
)
from windlass.errors import InvalidOption, WindlassError
from windlass.store.records import JobFilter, Page

DEFAULT_OVERLAP = "24h"


class WebhookNotFound(WindlassError):
    """No webhook has this name."""

    code = "webhook_not_found"

    def __init__(self, name: str, hint: str = "") -> None:
        super().__init__(f"no webhook {name[:128]!r}{hint}")
        self.hint = hint


class NewSecret(msgspec.Struct, frozen=True):
    """A webhook and its new secret, which is shown once."""

    webhook: Webhook
    secret: str

    def __repr__(self) -> str:
        return f"NewSecret({self.webhook!r}, …)"


class Webhooks(Verbs):
    """Add, list, test, pause and remove webhooks, and rotate their secrets."""

    async def aadd(self, name: str, url: str, **options: Unpack[WebhookOptions]) -> NewSecret:
        """Add a webhook for jobs and flows that end from now on. Its secret is in the answer and nowhere else.

        `add("ops", "https://example.com/hook", events=["job.dead"], queues=["mail"], types=["img.*"])`.
        """
        check_webhook_name(name)
        text = new_secret(os.urandom)
        stored = StoredWebhook(
            id=os.urandom(8).hex(),
            url=check_url(url, self._home.webhook_networks),
            settings=settings_of(**options),
            secrets=(Secret(text),),
            mac_key=Secret(os.urandom(32).hex()),
        )
        store = await self._home._ready()
        if len(await all_webhooks(store.documents)) >= MAX_WEBHOOKS:
            raise InvalidOption("webhooks", f"there are {MAX_WEBHOOKS} already; remove some", limit=MAX_WEBHOOKS)
        # First the queue: a worker serves it from then on.
        await store.queues.declare({WEBHOOK_QUEUE: QUEUE_SETTINGS})
        if await store.documents.add(KIND, name, as_text(stored)) is not None:
            raise InvalidOption("name", f"there is a webhook {name!r} already; remove it first")
        added = await self.aget(name)
        await self._audit("webhook.add", name, after=added)
        return NewSecret(added, text)

    async def aget(self, name: str) -> Webhook:
        """One webhook, without its secret."""
        return public(await self._found(name))

    async def alist(self) -> list[Webhook]:
        """All webhooks, by name."""
        return [public(each) for each in await all_webhooks((await self._home._ready()).documents)]

    async def aremove(self, name: str) -> None:
        """Remove a webhook; deliveries that have not been sent are cancelled when they are due."""
        before = await self.aget(name)
        await (await self._home._ready()).documents.delete(KIND, [name])
        await self._audit("webhook.remove", name, before=before)

    async def apause(self, name: str) -> Webhook:
        """Send nothing until it is resumed. What ends meanwhile is delivered then, as far as it is still kept."""
        return await self._change(name, "webhook.pause", lambda stored: msgspec.structs.replace(stored, paused=True))

    async def aresume(self, name: str) -> Webhook:
        """Deliver again, first what ended while it was paused."""
        return await self._change(
            name, "webhook.resume", lambda stored: msgspec.structs.replace(stored, paused=False)
        )

    async def arotate(self, name: str, *, overlap: Duration = DEFAULT_OVERLAP) -> NewSecret:
        """Give a webhook a new secret. For the overlap deliveries are signed by the old one too; 0 ends it now."""
        length, text = duration(overlap, "overlap"), new_secret(os.urandom)
        now = (await (await self._home._ready()).operator.ended(None, None, 1)).now
        rotated = await self._change(name, "webhook.rotate", lambda stored: stored.rotated(text, now, length))
        return NewSecret(rotated, text)

    async def atest(self, name: str) -> Handle[Any]:
        """Deliver a `webhook.test` event, once; the handle's result is the status of the answer."""
        found, id_ = await self._found(name), new_id()
        store = await self._home._ready()
        now = to_datetime((await store.operator.ended(None, None, 1)).now)
        event = msgspec.to_builtins({"type": TEST, "timestamp": now, "data": {"webhook": name}})
        job = msgspec.structs.replace(delivery(name, found.stored, id_, event), max_attempts=1)
        handle = (await self._home._enqueue_jobs([job], [self._home._returns(WEBHOOK_TYPE)]))[0]
        await self._audit("webhook.test", name, after={"job": handle.id})
        return handle

    async def adeliveries(self, name: str, *, limit: int = 50, cursor: str | None = None) -> Page[Job]:
        """The deliveries of a webhook, the newest first: jobs, whose `result` has the status of the answer.

        A page may be short if other webhooks have many more; `next_cursor` continues the list.
        """
        check_limit(limit)
        await self._found(name)
        wanted = JobFilter(queue=WEBHOOK_QUEUE, tag=delivery_tag(name))
        return await (await self._home._ready()).operator.list(wanted, limit, cursor)

    async def _change(self, name: str, action: str, change: Callable[[StoredWebhook], StoredWebhook]) -> Webhook:
        """Compare-and-set, repeated after a concurrent change."""
        documents = (await self._home._ready()).documents
        while True:
            found = await self._found(name)
            if await documents.replace(KIND, name, as_text(change(found.stored)), found.version):
                await self._audit(action, name)
                return await self.aget(name)

    async def _found(self, name: str) -> Found:
        documents = (await self._home._ready()).documents
        found = await find_webhook(documents, check_webhook_name(name))
        if found is None:
            raise WebhookNotFound(name, suggest(name, [each.name for each in await all_webhooks(documents)]))
        return found

    add = blocking(aadd)
    get = blocking(aget)
    list = blocking(alist)
    remove = blocking(aremove)
    pause = blocking(apause)
    resume = blocking(aresume)
    rotate = blocking(arotate)
    test = blocking(atest)
    deliveries = blocking(adeliveries)
