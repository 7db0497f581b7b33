"""The audit: which operator did what, kept in the store for 90 days."""

import getpass
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from functools import cache
from typing import Any

import msgspec

from windlass.core.codec import check_size
from windlass.core.ids import new_id
from windlass.core.log_events import OperatorActed
from windlass.core.moments import DAY, Micros, to_datetime
from windlass.errors import PayloadTooLarge
from windlass.observe.logs import log_event
from windlass.store.documents import Document, DocumentStore
from windlass.store.records import Page

KIND = "audit"
RETENTION: Micros = 90 * DAY
MAX_ENTRIES = 100_000
"""Older entries are dropped by the coordinator."""
_TRIMMED = 1_000


class Actor(msgspec.Struct, frozen=True):
    """A person or program that acts, and where: `python`, `cli`, `rest`, `dashboard`."""

    name: str
    source: str = "python"
    address: str | None = None
    """Of its connection, if there is one."""


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One action of an operator. Payloads are not part of it."""

    id: str
    at: datetime
    actor: Actor
    action: str
    """A noun and a verb: `queue.pause`, `job.cancel`."""
    target: str
    before: Any = None
    after: Any = None


class _Stored(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    actor: Actor
    action: str
    target: str
    before: Any = None
    after: Any = None


_acting: ContextVar[Actor | None] = ContextVar("windlass_actor", default=None)
_decoder = msgspec.json.Decoder(_Stored)


@contextmanager
def acting(actor: Actor) -> Iterator[None]:
    """Inside, operators' verbs on this event loop are recorded as this actor's."""
    token = _acting.set(actor)
    try:
        yield
    finally:
        _acting.reset(token)


def current_actor(otherwise: Actor) -> Actor:
    """The actor of this context, or `otherwise`."""
    return _acting.get() or otherwise


@cache
def process_actor(source: str = "python") -> Actor:
    """The user of this process."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = f"uid {os.getuid()}"  # a container without this user
    return Actor(name, source)


async def record_action(
    documents: DocumentStore, otherwise: Actor, action: str, target: str, before: Any, after: Any
) -> None:
    """Store an entry, by the actor of this context or `otherwise`."""
    entry = _Stored(actor=current_actor(otherwise), action=action, target=target, before=before, after=after)
    text = msgspec.json.encode(entry).decode()
    try:
        check_size(text, "audit entry")
    except PayloadTooLarge:
        text = msgspec.json.encode(_Stored(actor=entry.actor, action=action, target=target)).decode()
    await documents.add(KIND, new_id(), text, RETENTION)
    actor = entry.actor
    log_event(OperatorActed(actor=actor.name, source=actor.source, action=action, target=target))


async def read_entries(documents: DocumentStore, limit: int, cursor: str | None) -> Page[AuditEntry]:
    """The newest entries first."""
    found = await documents.list(KIND, limit, cursor)
    return Page(tuple(map(_entry, found)), found[-1].id if len(found) == limit else None)


async def trim_entries(documents: DocumentStore) -> None:
    """Drop entries beyond MAX_ENTRIES, the oldest first."""
    while await documents.trim(KIND, MAX_ENTRIES, _TRIMMED):
        pass


def _entry(document: Document) -> AuditEntry:
    stored = _decoder.decode(document.data)
    at = to_datetime(document.created_at)
    return AuditEntry(id=document.id, at=at, **msgspec.structs.asdict(stored))
