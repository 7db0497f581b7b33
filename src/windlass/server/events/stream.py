"""GET /events: the event stream as an operation of the server."""

import asyncio
import contextlib
from collections.abc import MutableMapping
from functools import partial
from typing import Any

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from windlass.client.event_data import EventData
from windlass.core.moments import SECOND
from windlass.core.tokens import Scope as TokenScope
from windlass.errors import InvalidOption
from windlass.server.events.event import make_filter
from windlass.server.events.hub import EventHub
from windlass.server.events.listener import SEND_SECONDS, Listener
from windlass.server.operation import Answer, Call, Operation
from windlass.store.clock import since_boot

COMMENT_SECONDS = 15.0
"""A comment is sent after this time without an event, so that proxies keep the connection."""
MAX_SECONDS = 86_400.0
START = b"retry: 1000\n\n"
HEADERS = {"x-accel-buffering": "no"}


class EventQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which events to send: by name, queue, type (`*` stands for any characters), or of one job.

    `seconds` ends the stream after a time.
    """

    event: tuple[str, ...] = ()
    queue: tuple[str, ...] = ()
    type: tuple[str, ...] = ()
    job: str = ""
    seconds: float = MAX_SECONDS


async def stream_events(call: Call) -> Answer:
    """Ends of jobs, dead letters, failures, and changes of queues and schedules, as server-sent events.

    `data` of each is EventData. `Last-Event-ID` replays what came after that event, for up to an hour or 10,000 ended
    jobs; `stream.gap` says that more is missing. `stream.ended` says why a stream ends: `slow`, `revoked`, `stopping`
    or `time`.
    """
    query: EventQuery = call.query
    call.caller.need_waiting("the event stream")
    if not 0 <= query.seconds <= MAX_SECONDS:
        raise InvalidOption("seconds", f"must be from 0 to {MAX_SECONDS:.0f}")
    hub: EventHub = call.state.events
    wanted = make_filter(query.event, query.queue, query.type, query.job.lower())
    listener = Listener(call.caller, wanted, partial(call.state.access.recheck, call.request))
    await hub.add(listener, call.headers.get("last-event-id") or None)
    return Answer(EventStream(hub, listener, query.seconds))


class EventStream(Response):
    """The response of one listener."""

    media_type = "text/event-stream"

    def __init__(self, hub: EventHub, listener: Listener, seconds: float) -> None:
        super().__init__(headers=HEADERS)
        del self.headers["content-length"]
        self._hub = hub
        self._listener = listener
        self._until = since_boot() + round(seconds * SECOND)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = asyncio.create_task(_until_gone(receive, self._listener))
        try:
            with contextlib.suppress(TimeoutError, OSError):
                await self._send_all(send)
        finally:
            self._hub.remove(self._listener)
            gone.cancel()

    async def _send_all(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        await _send(send, START)
        self._listener.attach(send)
        while not self._listener.ended:
            left = (self._until - since_boot()) / SECOND
            if left <= 0:
                self._listener.end("time")
            frames = await self._listener.next(min(COMMENT_SECONDS, max(0.0, left)))
            await _send(send, frames or b": \n\n")
        await _send(send, await self._listener.next(0), more=False)


async def _send(send: Send, frames: bytes, *, more: bool = True) -> None:
    message: MutableMapping[str, Any] = {"type": "http.response.body", "body": frames, "more_body": more}
    async with asyncio.timeout(SEND_SECONDS):
        await send(message)


async def _until_gone(receive: Receive, listener: Listener) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    listener.end("time")


OPERATIONS = (
    Operation(
        method="GET",
        path="/events",
        scope=TokenScope.READ,
        handler=stream_events,
        summary="Events as they happen",
        query=EventQuery,
        answers={200: EventData},
        media_type="text/event-stream",
        headers=("Last-Event-ID",),
    ),
)
