"""Earlier payloads: those that a job had before operators changed it, kept as one document beside the job."""

import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from windlass.client.runtime.offloaded import offload_payload
from windlass.client.verbs.audit import RETENTION, Actor, current_actor
from windlass.client.verbs.group import Home
from windlass.core.codec import INLINE_LIMIT
from windlass.core.ids import JobId, new_id
from windlass.core.jobs.change import JobChange
from windlass.core.jobs.job import Job
from windlass.core.moments import to_datetime
from windlass.core.reference import Reference
from windlass.errors import JobNotFound
from windlass.store.contract import Store
from windlass.store.documents import DocumentStore
from windlass.store.records import Transition

KIND = "payloads"
MAX_KEPT = 10
MAX_SIZE = 4 * INLINE_LIMIT
"""Characters of all earlier payloads of a job; the newest is kept in any case."""


class EarlierPayload(msgspec.Struct, frozen=True, kw_only=True):
    """A payload that a job had until it was changed. One in the blob store is its size and digest."""

    payload: Any
    until: datetime
    actor: Actor


class _Stored(msgspec.Struct, frozen=True):
    payload: msgspec.Raw
    until: int
    actor: Actor
    id: str


_decoder = msgspec.json.Decoder(list[_Stored])


async def change_payload(
    home: Home, store: Store, id: JobId, payload: Mapping[str, Any], fields: dict[str, Any], version: str | None
) -> Transition | None:
    """Change a job's payload, and other fields with it; the old one is kept before it is replaced.

    It is changed at the version that was read, so that no other payload is lost; without a version it tries again.
    """
    while True:
        job = (await store.operator.get([id]))[0]
        if job is None:
            raise JobNotFound(id)
        text = home.registry.check(job.type, payload, home.payload_limit)
        # Keep the old blob, which the job needs until it is changed; the sweep removes it later.
        change = JobChange(**fields, payload=await offload_payload(home.offload(), id, text))
        kept = _of(job, current_actor(home.actor))
        await _rewrite(store.documents, id, kept, add=True)
        moved = (await store.operator.change([id], change, {id: version or job.version}))[0]
        if moved is None or not moved.done:
            await _rewrite(store.documents, id, kept, add=False)
        if moved is None or not moved.stale or version is not None:
            return moved


def _of(job: Job, actor: Actor) -> _Stored:
    value = job.payload.shown if isinstance(job.payload, Reference) else job.payload
    return _Stored(msgspec.Raw(msgspec.json.encode(value)), time.time_ns() // 1000, actor, new_id())


async def _rewrite(documents: DocumentStore, id: JobId, kept: _Stored, *, add: bool) -> None:
    """Add an earlier payload of a job, or remove it again."""
    while True:
        found = (await documents.get(KIND, [id]))[0]
        others = [each for each in (_decoder.decode(found.data) if found else ()) if each.id != kept.id]
        text = _text([*others, kept] if add else others)
        if found is None:
            if await documents.add(KIND, id, text, RETENTION) is None:
                return
        elif await documents.replace(KIND, id, text, found.version):
            return


def _text(kept: Sequence[_Stored]) -> str:
    """The newest earlier payloads that fit, as JSON."""
    kept, size = kept[-MAX_KEPT:], 0
    for back, each in enumerate(reversed(kept)):
        size += len(bytes(each.payload))
        if size > MAX_SIZE and back:
            kept = kept[-back:]
            break
    return msgspec.json.encode(kept).decode()


async def earlier_payloads(documents: DocumentStore, job: Job) -> list[EarlierPayload]:
    """The payloads that a job had, the newest first.

    One that equals its successor is left out: a process died before it changed the job.
    """
    found = (await documents.get(KIND, [job.id]))[0]
    following: Any = job.payload.shown if isinstance(job.payload, Reference) else job.payload
    made: list[EarlierPayload] = []
    for each in reversed(_decoder.decode(found.data) if found else []):
        value = msgspec.json.decode(each.payload)
        if value != following:
            made.append(EarlierPayload(payload=value, until=to_datetime(each.until), actor=each.actor))
        following = value
    return made


async def drop_payloads(documents: DocumentStore, moved: Sequence[Transition | None]) -> None:
    """Delete the earlier payloads of jobs that were just deleted."""
    if gone := [each.id for each in moved if each is not None and each.done]:
        await documents.delete(KIND, gone)
