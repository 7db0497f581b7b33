"""note: progress, log lines and start of running attempts."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import msgspec

from windlass.core.ids import JobId
from windlass.store.records import Note
from windlass.store.redis.connection.access import Access
from windlass.store.redis.connection.errors import QueueErrors
from windlass.store.redis.operator.read_jobs import find
from windlass.store.redis.operator.replace import MAX_TRIES, contended
from windlass.store.rows import add_note

MAX_NOTED = 100
MAX_BYTES = 500_000
"""Max jobs, and bytes of notes, of one queue in one call."""


class Notes(msgspec.Struct, frozen=True, array_like=True):
    """The notes of a job: progress and log lines, in JSON."""

    progress: str | None = None
    logs: str | None = None


_decoder = msgspec.msgpack.Decoder(Notes)
_encode = msgspec.msgpack.Encoder().encode


class _AttemptNotes:
    """All notes of one attempt in this call, and its stored notes as far as they were read."""

    def __init__(self) -> None:
        self.notes: list[Note] = []
        self.kept = b""
        self.version = -1

    @property
    def started_after(self) -> int:
        starts = [each.started_after for each in self.notes if each.started_after is not None]
        return starts[0] if starts else -1

    def entry(self) -> tuple[JobId, int, int, int]:
        return self.notes[0].id, self.notes[0].attempt, self.started_after, self.version

    def blob(self) -> bytes:
        """The new notes; empty if only the start is recorded."""
        speaking = [each for each in self.notes if each.progress or each.lines]
        if not speaking:
            return b""
        notes = _decoder.decode(self.kept) if self.kept else Notes()
        for each in speaking:
            notes = Notes(*add_note(notes.progress, notes.logs, each))
        return _encode(notes)


async def note(access: Access, notes: Sequence[Note]) -> None:
    """Store each note whose attempt is running; a late one changes nothing."""
    placed = await _placed(access, notes)
    waiting: dict[str, list[_AttemptNotes]] = {
        queue: list(entries.values()) for queue, entries in _by_attempt(placed).items()
    }
    troubles = QueueErrors()
    for _ in range(2 * len(notes) + MAX_TRIES):
        if not waiting and troubles:
            raise troubles[0]
        if not waiting:
            return
        batches = {queue: _portion(entries) for queue, entries in waiting.items()}
        requests = {
            queue: ([each.entry() for each, _ in some], *(blob for _, blob in some))
            for queue, some in batches.items()
        }
        replies, unreached = await access.call_reachable("note", requests)
        troubles += unreached
        waiting = {
            queue: rest
            for queue, entries in waiting.items()
            if queue in replies and (rest := _unanswered(entries, replies[queue]) + entries[len(batches[queue]) :])
        }
    raise contended(access, notes[0].id)


async def _placed(access: Access, notes: Sequence[Note]) -> list[Note]:
    """A supervisor does not know the queues of its runners' jobs: they are looked up; unknown ones have ended."""
    lost = [each.id for each in notes if not each.queue]
    found = await find(access, lost) if lost else {}
    return [
        each if each.queue else msgspec.structs.replace(each, queue=found[each.id].queue)
        for each in notes
        if each.queue or each.id in found
    ]


def _by_attempt(notes: Sequence[Note]) -> dict[str, dict[tuple[JobId, int], _AttemptNotes]]:
    entries: dict[str, dict[tuple[JobId, int], _AttemptNotes]] = defaultdict(lambda: defaultdict(_AttemptNotes))
    for each in notes:
        entries[each.queue][each.id, each.attempt].notes.append(each)
    return entries


def _portion(entries: list[_AttemptNotes]) -> list[tuple[_AttemptNotes, bytes]]:
    """The first entries, as many as one call may have and at least one, each with its new notes."""
    some = [(each, each.blob()) for each in entries[:MAX_NOTED]]
    sizes = accumulate(len(blob) for _, blob in some)
    return [each for each, size in zip(some, sizes, strict=True) if size <= MAX_BYTES] or some[:1]


def _unanswered(entries: list[_AttemptNotes], replies: Sequence[int | list[Any]]) -> list[_AttemptNotes]:
    """Entries that must be sent again, with the stored notes that the reply contains."""
    unheard = []
    for each, reply in zip(entries, replies, strict=False):
        if isinstance(reply, list):
            each.version, each.kept = reply
        if reply != 1:
            unheard.append(each)
    return unheard
