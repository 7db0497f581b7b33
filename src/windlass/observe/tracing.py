"""The trace that jobs belong to: carried in their `meta`, as `traceparent` and `tracestate` of W3C Trace Context.

Nothing here needs OpenTelemetry: `windlass.contrib.otel` makes the spans, and a server passes on what requests bring.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

import msgspec

from windlass.core.codec import INLINE_LIMIT, size_of
from windlass.core.jobs.job import NewJob

Carrier = dict[str, str]
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
MAX_STATE_LENGTH = 512
_outgoing: ContextVar[Carrier | None] = ContextVar("windlass_trace", default=None)
trace_ids: ContextVar[tuple[str, str] | None] = ContextVar("windlass_trace_ids", default=None)
"""Trace and span of the attempt that runs here, for its log records."""


class _Carried(msgspec.Struct):
    traceparent: str = ""
    tracestate: str = ""


@contextmanager
def carrying(carrier: Carrier) -> Iterator[None]:
    """Inside, jobs that are enqueued belong to this trace."""
    token = _outgoing.set(carrier or None)
    try:
        yield
    finally:
        _outgoing.reset(token)


def incoming(headers: Mapping[str, str]) -> Carrier:
    """The trace that a request brings; empty if it brings none, or nonsense."""
    parent, state = headers.get("traceparent", ""), headers.get("tracestate", "")
    if not _TRACEPARENT.fullmatch(parent):
        return {}
    fits = 0 < len(state) <= MAX_STATE_LENGTH and state.isascii() and state.isprintable()
    return {"traceparent": parent, "tracestate": state} if fits else {"traceparent": parent}


def with_trace(jobs: list[NewJob]) -> list[NewJob]:
    """The jobs, with the trace of this context in their meta, unless they have one or no room for it."""
    carrier = _outgoing.get()
    return jobs if carrier is None else [_carried(job, carrier) for job in jobs]


def carrier_of(meta: str | None) -> Carrier:
    """The trace that a job belongs to; empty if there is none."""
    if not meta or "traceparent" not in meta:
        return {}
    try:
        found = msgspec.json.decode(meta, type=_Carried)
    except msgspec.DecodeError:
        return {}
    return incoming({"traceparent": found.traceparent, "tracestate": found.tracestate})


def trace_of(meta: object) -> str | None:
    """The id of the trace that a job with this meta belongs to."""
    parent = meta.get("traceparent") if isinstance(meta, dict) else None
    found = incoming({"traceparent": parent}) if isinstance(parent, str) else {}
    return found["traceparent"].split("-")[1] if found else None


def _carried(job: NewJob, carrier: Carrier) -> NewJob:
    meta: dict[str, object] = msgspec.json.decode(job.meta) if job.meta else {}
    text = msgspec.json.encode({**carrier, **meta}).decode()
    if "traceparent" in meta or size_of(text) > INLINE_LIMIT:
        return job
    return msgspec.structs.replace(job, meta=text)
