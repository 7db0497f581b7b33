"""Webhooks as documents of the store."""

import msgspec

from windlass.core.moments import SECOND, Micros, to_datetime
from windlass.core.webhooks.webhook import MAX_WEBHOOKS, StoredWebhook, Webhook
from windlass.store.documents import Document, DocumentStore

KIND = "webhook"
_decoder = msgspec.json.Decoder(StoredWebhook)


class Found(msgspec.Struct, frozen=True):
    """A webhook with its name, its age, and the version of its document."""

    name: str
    stored: StoredWebhook
    created_at: Micros
    version: int


async def find_webhook(documents: DocumentStore, name: str) -> Found | None:
    """One webhook."""
    document = (await documents.get(KIND, [name]))[0]
    return None if document is None else _found(document)


async def all_webhooks(documents: DocumentStore) -> list[Found]:
    """All webhooks, by name."""
    return [_found(each) for each in reversed(await documents.list(KIND, MAX_WEBHOOKS))]


def as_text(stored: StoredWebhook) -> str:
    """The data of a document."""
    return msgspec.json.encode(stored).decode()


def public(found: Found) -> Webhook:
    """A webhook without its secrets."""
    stored, settings = found.stored, found.stored.settings
    old = [each.until for each in stored.secrets if each.until is not None]
    return Webhook(
        name=found.name,
        url=stored.url,
        events=settings.events,
        queues=settings.queues,
        types=settings.types,
        contents=settings.contents,
        hide=settings.hide,
        max_attempts=settings.max_attempts,
        timeout=settings.timeout / SECOND,
        paused=stored.paused,
        created_at=to_datetime(found.created_at),
        old_secret_until=to_datetime(max(old)) if old else None,
    )


def _found(document: Document) -> Found:
    return Found(document.id, _decoder.decode(document.data), document.created_at, document.version)
