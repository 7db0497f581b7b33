"""The duty that makes deliveries of ended jobs.

Ends are read from the history, as the event stream reads them; no job writes anything for a webhook. Each webhook has
a cursor in the store, and webhooks at the same position share one read. The cursor moves after the deliveries are
stored, and stays a minute behind: a coordinator that takes over reads the last minute again. No delivery is stored
twice, since its id follows from its webhook and the end.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from windlass.client.event_data import end_data, end_name
from windlass.client.webhooks.records import Found, all_webhooks
from windlass.core.ids import JobId
from windlass.core.jobs.job import NewJob
from windlass.core.moments import SECOND, Micros
from windlass.core.webhooks.delivery import WEBHOOK_TYPE, delivery, delivery_id
from windlass.store.contract import Store
from windlass.store.documents import DocumentStore
from windlass.store.records import JobEnd

LOOK_SECONDS = 0.5
IDLE_SECONDS = 2.0
"""Pause between two reads of webhooks while there are none."""
PAGE = 500
MAX_PAGES = 4
"""Max time of one turn: other duties run in between."""
REPEATED: Micros = SECOND // 4
"""How much of the past every read repeats: an end appears behind others if its commit takes longer."""
LATE: Micros = 60 * SECOND
"""How much of the past is read again every LATE_EVERY seconds, and by a new coordinator."""
LATE_EVERY = 20.0
MAX_LATE_SHARE = 0.1
"""The share of the time for reading late ends again: where very many jobs end, that is done less often."""
KEEP_EVERY = 5.0
MIN_MADE = 10_000
CURSOR_KIND, CURSOR_ID = "webhook_cursor", "ends"
_decoder = msgspec.json.Decoder(dict[str, Micros])
_moment = time.monotonic


class _Walk(msgspec.Struct):
    """A position in the history, by moment and id."""

    at: Micros
    after: JobId | None = None


class _Reader:
    """The position of some webhooks in the history, and the stored deliveries of the last minutes."""

    def __init__(self, webhooks: set[str], at: Micros) -> None:
        self.webhooks = webhooks
        self.front = _Walk(at)
        self.late: _Walk | None = None
        """The position of the repeated read of the last minute."""
        self.reached = at
        """The position before which everything was read at least once."""
        self.final = at
        """The cursor: everything before it was read when nothing could appear there any more."""
        self.caught_up = False
        self.made: dict[JobId, Micros] = {}
        self._made_limit = MIN_MADE
        self._late_until = at
        self._late_at = _moment()
        self._late_due = self._late_at + LATE_EVERY

    def walk(self) -> _Walk:
        """The next read: late ends if they are due, else new ones."""
        if self.late is None and self.caught_up and _moment() >= self._late_due:
            self._late_at, self._late_until = _moment(), self.reached
            self.late = _Walk(self.final)
        return self.late if self.late is not None and self.caught_up else self.front

    def passed(self, walk: _Walk, ends: Sequence[JobEnd], now: Micros) -> bool:
        """Note that the deliveries of these ends are stored; returns whether to read more at once."""
        if now < self.reached - LATE:
            self._go_back(now)
            return True
        # Ends after now are from before the clock was set back.
        begin, full = walk.at, len(ends) == PAGE and ends[-1].at <= now
        if full:
            walk.at, walk.after = ends[-1].at, ends[-1].id
        if walk is self.late:
            if not full or walk.at >= self._late_until:
                self._end_late()
            return True
        end = walk.at if full else now
        if begin <= self.final:
            self.final = max(self.final, min(end, now - LATE))
        self.caught_up = not full
        self.reached = max(self.reached, end)
        if not full:
            self.front = _Walk(self.reached - REPEATED)
        self._forget()
        return full

    def _go_back(self, now: Micros) -> None:
        """After the clock was set back, jobs end before the position, so read on from a minute before now."""
        self.reached, self.final = now, min(self.final, now - LATE)
        self.front, self.late, self.caught_up = _Walk(now - LATE), None, False

    def _end_late(self) -> None:
        self.late = None
        self.final = max(self.final, self._late_until - LATE)
        took = _moment() - self._late_at
        self._late_due = self._late_at + max(LATE_EVERY, took / MAX_LATE_SHARE)

    def _forget(self) -> None:
        """Drop deliveries that no read can meet again, whenever their number has doubled."""
        if len(self.made) > self._made_limit:
            self.made = {id_: at for id_, at in self.made.items() if at > self.reached - 2 * LATE}
            self._made_limit = max(MIN_MADE, 2 * len(self.made))


class Webhooks:
    """The duty; a turn is bounded."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._readers: list[_Reader] = []
        self._cursors = _Cursors(store.documents)

    async def run(self) -> float:
        """Run one turn; returns the seconds until the next."""
        found = await all_webhooks(self._store.documents)
        active = {each.stored.id: each for each in found if not each.stored.paused}
        if not active:
            self._readers = []
            return IDLE_SECONDS
        await self._arrange(active)
        more = [await self._read(reader, active) for reader in self._readers]
        self._join()
        positions = {id_: each.final for each in self._readers for id_ in each.webhooks}
        await self._cursors.keep(positions, known={each.stored.id for each in found})
        return 0.0 if any(more) else LOOK_SECONDS

    async def _arrange(self, active: Mapping[str, Found]) -> None:
        """Give every active webhook a reader; a new one begins at the webhook's cursor, or at its creation."""
        for reader in self._readers:
            reader.webhooks &= active.keys()
        self._readers = [each for each in self._readers if each.webhooks]
        missing = active.keys() - {id_ for each in self._readers for id_ in each.webhooks}
        positions = await self._cursors.read() if missing else {}
        for id_ in sorted(missing):
            begin = max(positions.get(id_, 0), active[id_].created_at)
            same = next((each for each in self._readers if each.front == _Walk(begin)), None)
            if same is None:
                self._readers.append(_Reader({id_}, begin))
            else:
                same.webhooks.add(id_)

    async def _read(self, reader: _Reader, active: Mapping[str, Found]) -> bool:
        webhooks = [active[id_] for id_ in sorted(reader.webhooks)]
        for _ in range(MAX_PAGES):
            walk = reader.walk()
            page = await self._store.operator.ended(walk.at, walk.after, PAGE)
            jobs = {
                job.id: (job, end.at)
                for end in page.ends
                for job in _deliveries(webhooks, end, page.now, reader.made)
            }
            if jobs:
                await self._store.jobs.enqueue([job for job, _ in jobs.values()])
                reader.made |= {id_: at for id_, (_, at) in jobs.items()}
            self._cursors.moved = self._cursors.moved or bool(page.ends)
            if not reader.passed(walk, page.ends, page.now):
                return False
        return True

    def _join(self) -> None:
        """Merge readers that have both reached the present."""
        present = [each for each in self._readers if each.caught_up and each.late is None]
        for other in present[1:]:
            first = present[0]
            first.webhooks |= other.webhooks
            first.made |= other.made
            first.reached = min(first.reached, other.reached)
            first.final = min(first.final, other.final)
            first.front = _Walk(min(first.front.at, other.front.at))
            self._readers.remove(other)


class _Cursors:
    """The cursors of all webhooks, in one document."""

    def __init__(self, documents: DocumentStore) -> None:
        self._documents = documents
        self._kept_at = 0.0
        self.moved = False
        """Whether ends were read since the last write; else a write is not needed."""

    async def read(self) -> dict[str, Micros]:
        """The cursors by webhook."""
        document = (await self._documents.get(CURSOR_KIND, [CURSOR_ID]))[0]
        return {} if document is None else _decoder.decode(document.data)

    async def keep(self, positions: Mapping[str, Micros], known: set[str]) -> None:
        """Write the cursors every KEEP_EVERY seconds; paused webhooks keep theirs, removed ones lose it."""
        if not self.moved or _moment() - self._kept_at < KEEP_EVERY:
            return
        document = (await self._documents.get(CURSOR_KIND, [CURSOR_ID]))[0]
        before = {} if document is None else _decoder.decode(document.data)
        after = {id_: at for id_, at in {**before, **positions}.items() if id_ in known}
        text = msgspec.json.encode(after).decode()
        if document is None:
            await self._documents.add(CURSOR_KIND, CURSOR_ID, text)
        else:
            # If another coordinator writes at this moment, its cursors are as good.
            await self._documents.replace(CURSOR_KIND, CURSOR_ID, text, document.version)
        self._kept_at, self.moved = _moment(), False


def _deliveries(webhooks: Sequence[Found], end: JobEnd, now: Micros, made: Mapping[JobId, Micros]) -> list[NewJob]:
    """The deliveries of an end, without those in `made`."""
    if end.type == WEBHOOK_TYPE:
        return []
    name, event, jobs = end_name(end), None, []
    for each in webhooks:
        # A webhook of a later moment is from before the clock was set back.
        if end.at < each.created_at <= now or not each.stored.settings.selects(name, end.queue, end.type):
            continue
        if (id_ := delivery_id(each.stored.id, end.id, end.at)) not in made:
            event = event or _event(name, end)
            jobs.append(delivery(each.name, each.stored, id_, event))
    return jobs


def _event(name: str, end: JobEnd) -> dict[str, Any]:
    data = end_data(end)
    event: dict[str, Any] = msgspec.to_builtins({"type": name, "timestamp": data.at, "data": data})
    return event
