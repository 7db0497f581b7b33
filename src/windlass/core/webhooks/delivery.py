"""Deliveries: the job that carries one event to one webhook. Its id follows from both, so it is stored once."""

import hashlib
import hmac
from typing import Any
from uuid import UUID

import msgspec

from windlass.core.codec import encode
from windlass.core.flow.queue import QueueSettings
from windlass.core.ids import JobId
from windlass.core.jobs.job import NewJob
from windlass.core.jobs.retry import Steps
from windlass.core.moments import Micros
from windlass.core.webhooks.signature import Secret
from windlass.core.webhooks.webhook import StoredWebhook

WEBHOOK_TYPE = "windlass.webhook"
WEBHOOK_QUEUE = "windlass.webhooks"
QUEUE_SETTINGS = QueueSettings(fair=True)
"""Webhooks are the tenants of the queue, so a long backlog of one does not delay the others."""
RETRY = Steps("5s", "5m", "30m", "2h", "5h", "10h", "14h", "20h", "24h")
_encode = msgspec.json.Encoder().encode


def delivery_tag(name: str) -> str:
    """The tag of the deliveries of a webhook."""
    return f"webhook:{name}"


def delivery_id(webhook: str, job: JobId, at: Micros) -> JobId:
    """The id of the delivery of a job's end: a UUIDv7 of its moment, always the same."""
    bits = int.from_bytes(hashlib.sha256(f"webhook\0{webhook}\0{job}\0{at}".encode()).digest()[:10])
    number = at // 1000 << 80 | 0x7 << 76 | (bits >> 62 & 0xFFF) << 64 | 0b10 << 62 | bits & (1 << 62) - 1
    return str(UUID(int=number))


def delivery(name: str, webhook: StoredWebhook, id_: JobId, event: dict[str, Any]) -> NewJob:
    """The job that delivers an event to a webhook."""
    payload = {"webhook": name, "id": webhook.id, "event": event, "mac": mac_of(webhook.mac_key, id_, event)}
    return NewJob(
        id=id_,
        type=WEBHOOK_TYPE,
        queue=WEBHOOK_QUEUE,
        payload=encode(payload, "payload"),
        tenant=name,
        tags=(delivery_tag(name),),
        max_attempts=webhook.settings.max_attempts,
    )


def event_and_job(payload: Any) -> tuple[str | None, str | None]:
    """The event and the job in the payload of a delivery; None if a producer made it without them."""
    event = _field(payload, "event")
    kind, job = _field(event, "type"), _field(_field(event, "data"), "job")
    return kind if isinstance(kind, str) else None, job if isinstance(job, str) else None


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def mac_of(key: Secret, id_: JobId, event: dict[str, Any]) -> str:
    """The authentication code that shows that a delivery was made by Windlass and is unchanged."""
    return hmac.new(key.text.encode(), id_.encode() + b"\0" + _encode(event), hashlib.sha256).hexdigest()
