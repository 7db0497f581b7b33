"""The hub of the event stream: the listeners of a server, one read of the store for all of them, and token checks."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Collection

import msgspec

from windlass.client.app import App
from windlass.core.moments import SECOND
from windlass.core.tokens import Rights
from windlass.errors import StoreUnavailable, WindlassError
from windlass.server.events.event import Event, EventFilter, frame
from windlass.server.events.listener import Listener
from windlass.server.events.reader import EventReader, Wanted
from windlass.server.problem import Refused
from windlass.store.clock import since_boot

LOOK_SECONDS = 0.25
"""Between two reads of the store; a slow store is read less often."""
CHECK_SECONDS = 0.5
"""Between two checks of tokens and of the server's stop."""
TOKENS_AT_ONCE = 50
"""Tokens that are checked concurrently, so that thousands are checked within the promised 5 seconds."""
MAX_LISTENERS = 4_000
MAX_WATCHED = 200
"""Jobs whose changes are looked for."""
_log = logging.getLogger("windlass.server")


class StreamGap(msgspec.Struct):
    """Events are missing here: read what you need again."""

    reason: str


class EventHub:
    """All listeners of a server."""

    def __init__(self, app: App, is_stopping: Callable[[], bool]) -> None:
        self._app = app
        self._is_stopping = is_stopping
        self._listeners: set[Listener] = set()
        self._reader: EventReader | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._opening = 0
        """Streams that are being opened: they need the reader, and are no listeners yet."""
        self._beginning = asyncio.Lock()
        self._looking = asyncio.Lock()
        """Held by a look: a listener is added between two looks."""

    async def add(self, listener: Listener, last_id: str | None) -> None:
        """Add a listener; with the id of its last event, the events since then are sent first."""
        if len(self._listeners) >= MAX_LISTENERS:
            raise Refused(
                503,
                "too_many_listeners",
                f"this server has {MAX_LISTENERS:,} listeners, and takes no more",
                limit=MAX_LISTENERS,
            )
        self._opening += 1
        try:
            reader = await self._ready()
            async with self._looking:
                await reader.prepare(_wanted([listener]))
                self._listeners.add(listener)
        finally:
            self._opening -= 1
            self._rest()
        if last_id is None:
            return
        listener.hold()
        try:
            replay = await reader.replay(last_id, reader.sequence)
        except BaseException:
            self.remove(listener)
            raise
        first = (
            [] if replay.complete else [frame("stream.gap", StreamGap("not all events since the last one are kept"))]
        )
        first += [each.frame for each in replay.events if listener.wanted.wants(each, listener.rights)]
        listener.release(b"".join(first))

    def remove(self, listener: Listener) -> None:
        """Close a stream."""
        self._listeners.discard(listener)
        self._rest()

    def _rest(self) -> None:
        """Without a stream, do not read the store."""
        if not self._listeners and not self._opening:
            self._cancel()

    async def stop(self) -> None:
        """End every stream."""
        for listener in self._listeners:
            listener.end("stopping")
        tasks = self._tasks
        self._cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _cancel(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._tasks, self._reader = [], None

    async def _ready(self) -> EventReader:
        async with self._beginning:
            if self._reader is None:
                reader = EventReader(self._app)
                await reader.begin()
                self._reader = reader
                self._tasks = [asyncio.create_task(self._look(reader)), asyncio.create_task(self._check())]
            return self._reader

    async def _look(self, reader: EventReader) -> None:
        while True:
            began = since_boot()
            try:
                async with self._looking:
                    self._deliver(await reader.look(_wanted(self._listeners)))
            except (WindlassError, TimeoutError) as error:
                _log.warning("the event stream cannot read the store: %s", error)
            except Exception:
                _log.exception("the event stream failed")
            took = (since_boot() - began) / SECOND
            await asyncio.sleep(max(LOOK_SECONDS, 4 * took))

    def _deliver(self, events: list[Event]) -> None:
        """Send events; listeners that want the same share the same bytes."""
        if not events:
            return
        alike: dict[tuple[EventFilter, Rights], list[Listener]] = defaultdict(list)
        for listener in self._listeners:
            alike[listener.wanted, listener.rights].append(listener)
        for (wanted, rights), listeners in alike.items():
            if frames := b"".join(each.frame for each in events if wanted.wants(each, rights)):
                for listener in listeners:
                    listener.send(frames)

    async def _check(self) -> None:
        """End streams whose token has ended, and all of them when the server stops."""
        while True:
            if self._is_stopping():
                for listener in self._listeners:
                    listener.end("stopping")
            by_token: dict[str, list[Listener]] = defaultdict(list)
            for listener in self._listeners:
                by_token[listener.token].append(listener)
            groups = list(by_token.values())
            for start in range(0, len(groups), TOKENS_AT_ONCE):
                await asyncio.gather(*map(_recheck, groups[start : start + TOKENS_AT_ONCE]))
            await asyncio.sleep(CHECK_SECONDS)


def _wanted(listeners: Collection[Listener]) -> Wanted:
    """What these listeners want beside ends of jobs."""
    names = {name for each in listeners for name in each.wanted.names}
    jobs = {each.wanted.job for each in listeners if each.wanted.job}
    return Wanted(
        failures="job.failed" in names,
        queues="queue.changed" in names,
        schedules="schedule.changed" in names,
        jobs=frozenset(sorted(jobs)[:MAX_WATCHED]),
    )


async def _recheck(listeners: list[Listener]) -> None:
    for listener in listeners:
        try:
            caller = await listener.recheck()
        except Refused:
            listener.end("revoked")
        except (StoreUnavailable, TimeoutError):
            return  # the store is away: no events are sent either
        except Exception:
            # Also errors of the app around a mounted server: a caller that cannot be checked gets no events.
            _log.exception("the caller of an event stream cannot be checked")
            listener.end("revoked")
        else:
            listener.rights = caller.rights
