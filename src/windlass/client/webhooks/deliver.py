"""The handler of deliveries, which every worker knows: it signs an event and sends it to its webhook."""

import hmac
import time
from typing import Any

import msgspec

from windlass.client.runtime.offloaded import with_values
from windlass.client.tasks.context import Context, entered
from windlass.client.tasks.link import Home
from windlass.client.webhooks.post import AddressRefused, DeliveryFailed, post
from windlass.client.webhooks.records import find_webhook
from windlass.core.control import Cancel, Dead, Retry, Snooze
from windlass.core.hidden import conceal, parse_hidden
from windlass.core.moments import SECOND, to_micros
from windlass.core.webhooks.delivery import RETRY, mac_of
from windlass.core.webhooks.signature import signed_headers
from windlass.core.webhooks.webhook import StoredWebhook
from windlass.version import __version__

PAUSED_SECONDS = 60
"""How often a delivery checks whether its webhook is still paused."""
MAX_CONTENTS = 1024 * 1024
"""Bytes of a payload or result in a body; a larger one is left out."""
GONE = 410
WAITING = (429, 503)
"""Statuses whose `Retry-After` counts, if it is longer than the usual wait."""


async def deliver(ctx: Context, webhook: str, id: str, event: dict[str, Any], mac: str) -> dict[str, Any]:
    """Send one delivery; the result is the status of the answer and how long it took."""
    home = entered.get().home
    found = await find_webhook((await home._ready()).documents, webhook)
    if found is None or found.stored.id != id:
        raise Cancel("its webhook was removed")
    stored = found.stored
    if not hmac.compare_digest(mac, mac_of(stored.mac_key, ctx.job.id, event)):
        raise Dead("the delivery was not made by a coordinator, or was changed since")
    if stored.paused:
        raise Snooze(PAUSED_SECONDS)
    body = msgspec.json.encode(await _with_contents(home, stored, event) if stored.settings.contents else event)
    began = time.monotonic()
    status = await _send(home, ctx, stored, body)
    return {"status": status, "seconds": round(time.monotonic() - began, 3)}


async def _send(home: Home, ctx: Context, stored: StoredWebhook, body: bytes) -> int:
    job = ctx.job
    secrets = stored.secrets_at(to_micros(job.claimed_at or job.created_at))
    headers = {
        "content-type": "application/json",
        "user-agent": f"windlass/{__version__}",
        **signed_headers(secrets, job.id, int(time.time()), body),
    }
    try:
        answer = await post(stored.url, headers, body, home.webhook_networks, stored.settings.timeout / SECOND)
    except AddressRefused as error:
        raise Dead(str(error)) from None
    if 200 <= answer.status < 300:
        return answer.status
    if answer.status == GONE:
        raise Dead("the receiver answered 410: it wants no more deliveries")
    problem = f"the receiver answered {answer.status}"
    # A shorter time than the policy's would use up the attempts while the receiver is away.
    if answer.retry_after is not None and answer.status in WAITING and answer.retry_after > _usual_wait(job.failures):
        raise Retry(after=answer.retry_after, reason=problem)
    raise DeliveryFailed(problem + (", and redirects are not followed" if 300 <= answer.status < 400 else ""))


def _usual_wait(failures: int) -> float:
    """Seconds that the policy waits after one more failure."""
    return RETRY.waits[min(failures, len(RETRY.waits) - 1)]


async def _with_contents(home: Home, stored: StoredWebhook, event: dict[str, Any]) -> dict[str, Any]:
    """The event with the job's current payload and result; `omitted` names what is missing."""
    if "job" not in event["data"]:
        return event
    data = dict(event["data"])
    found = (await (await home._ready()).operator.get([data["job"]]))[0]
    job = None if found is None else await with_values(home.offload(), found)
    hidden, omitted = parse_hidden(stored.settings.hide), []
    for name in ("payload", "result"):
        value = None if job is None else conceal(getattr(job, name), hidden)
        if job is None or len(msgspec.json.encode(value)) > MAX_CONTENTS:
            omitted.append(name)
        else:
            data[name] = value
    return {**event, "data": {**data, "omitted": omitted} if omitted else data}
