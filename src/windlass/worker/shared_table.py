"""The jobs that a runner holds, in memory shared with its supervisor: readable when the runner is stuck or dead.

One entry per job. Each byte has one writer, so no lock is needed: `taken` belongs to the supervisor, all else to
the runner. An entry's state is written last when it is filled and first when it is freed.

A prefetched job is taken like this: the supervisor sets `taken` and then reads whether the job has started; the
runner sets `started` and then reads whether it was taken. In any order, at most one of them goes on.
"""

import mmap
import os
import struct
import tempfile
from collections.abc import Iterator
from enum import IntEnum

import msgspec

from windlass.core.ids import JobId
from windlass.core.moments import SECOND, Micros

_ENTRY = struct.Struct("<BBxxIqqq36s")  # state, taken, attempt, since, start_by, deadline, id
_ENTRY_SIZE = 72
_FIRST = 64  # before the entries: valid_until, tick, completed, lease, watched, suspended, eight bytes each


class State(IntEnum):
    """The state of a held job."""

    FREE = 0
    PREFETCHED = 1
    STARTED = 2
    ENDED = 3
    """Its handler returned; the outcome is not durable yet."""


MAX_STEP: Micros = SECOND // 2
"""The supervisor calls `keep_time` more often than this; any longer time between two calls is suspension."""

_FREE, _PREFETCHED, _STARTED, _ENDED = (int(state) for state in State)


class Entry(msgspec.Struct, frozen=True):
    """One held job, as read from the table."""

    index: int
    state: State
    id: JobId
    attempt: int
    since: Micros
    start_by: Micros
    deadline: Micros
    """The end of the handler's timeout, in active time; 0: no timeout."""


class SharedTable:
    """The shared memory of one runner and its supervisor."""

    def __init__(self, descriptor: int, entries: int) -> None:
        self.descriptor = descriptor
        self._entries = entries
        self._memory = mmap.mmap(descriptor, _FIRST + entries * _ENTRY_SIZE)
        # The same memory in words of eight bytes: header and entries are multiples of them.
        self._words = memoryview(self._memory).cast("q")
        self._free = list(range(entries - 1, -1, -1))
        self.serving = 0
        """The number of the lease that the runner has read; used in the runner only."""

    @classmethod
    def create(cls, entries: int) -> "SharedTable":
        """New shared memory, zeroed; its descriptor is handed to the runner."""
        if hasattr(os, "memfd_create"):
            descriptor = os.memfd_create("windlass-runner")
        else:
            with tempfile.TemporaryFile() as file:
                descriptor = os.dup(file.fileno())
        os.ftruncate(descriptor, _FIRST + entries * _ENTRY_SIZE)
        return cls(descriptor, entries)

    def close(self) -> None:
        """Close the descriptor. The memory is freed with its last user: a beat under way may still write to it."""
        os.close(self.descriptor)

    # The header.

    @property
    def valid_until(self) -> Micros:
        """Until when the runner may start jobs, by the boot clock; written by the supervisor."""
        return self._words[0]

    @valid_until.setter
    def valid_until(self, moment: Micros) -> None:
        self._words[0] = moment

    @property
    def tick(self) -> Micros:
        """When the runner's event loop last ran, in active time."""
        return self._words[1]

    @tick.setter
    def tick(self, moment: Micros) -> None:
        self._words[1] = moment

    @property
    def completed(self) -> int:
        """How many attempts this runner has ended."""
        return self._words[2]

    @completed.setter
    def completed(self, count: int) -> None:
        self._words[2] = count

    @property
    def lease(self) -> int:
        """The number of the runner's lease to which `valid_until` belongs; written by the supervisor."""
        return self._words[3]

    @lease.setter
    def lease(self, number: int) -> None:
        self._words[3] = number

    def keep_time(self, now: Micros) -> None:
        """Record that the supervisor runs; it calls this several times a second."""
        words = self._words
        # The sum first: a read in between returns too little active time for a moment, never too much.
        words[5] += max(0, now - words[4] - MAX_STEP) if words[4] else 0
        words[4] = now

    def active_time(self, now: Micros) -> Micros:
        """The boot clock without the time in which the worker was suspended: its machine slept, or it was
        stopped.

        Measured by the supervisor's steps, which no handler can delay. Timeouts of handlers use this time.
        """
        return now - self.suspended(now)

    def suspended(self, now: Micros) -> Micros:
        """The time in which the worker was suspended."""
        words = self._words
        unwatched = now - (words[4] or now) - MAX_STEP
        return words[5] + unwatched if unwatched > 0 else words[5]

    def may_start(self, now: Micros) -> bool:
        """Whether the runner may start or claim jobs under the lease it knows.

        After a suspension the runner may have a new lease that it has not read yet; its jobs belong to the old
        one, and may be rescued already. `valid_until` is read first: it is written last.
        """
        words = self._words
        return now < words[0] and words[3] == self.serving

    # Entries, as the runner writes them.

    def prefetch(self, id_: JobId, attempt: int, since: Micros, start_by: Micros) -> int:
        """A free entry, filled; raises IndexError if there is none (the claim asked for too much)."""
        index = self._free.pop()
        offset = _FIRST + index * _ENTRY_SIZE
        _ENTRY.pack_into(self._memory, offset, _FREE, 0, attempt, since, start_by, 0, id_.encode())
        self._memory[offset] = _PREFETCHED
        return index

    def start(self, index: int, since: Micros, deadline: Micros) -> bool:
        """Mark the job as started; False if the supervisor has taken it away."""
        offset = _FIRST + index * _ENTRY_SIZE
        word = offset >> 3
        self._words[word + 1] = since
        self._words[word + 3] = deadline
        self._memory[offset] = _STARTED
        return self._memory[offset + 1] == 0

    def end(self, index: int) -> None:
        """Mark the job as ended: its handler has returned."""
        self._memory[_FIRST + index * _ENTRY_SIZE] = _ENDED

    def free(self, index: int) -> None:
        """Free the entry of a job that is no longer held."""
        self._memory[_FIRST + index * _ENTRY_SIZE] = _FREE
        self._free.append(index)

    @property
    def room(self) -> int:
        """How many entries are free."""
        return len(self._free)

    # Entries, as the supervisor sees them.

    def take(self, index: int) -> None:
        """Take a prefetched job from the runner; the caller checks a moment later whether it had started."""
        self._memory[_FIRST + index * _ENTRY_SIZE + 1] = 1

    def held(self) -> Iterator[Entry]:
        """Every entry in use."""
        for index in range(self._entries):
            offset = _FIRST + index * _ENTRY_SIZE
            if self._memory[offset] != State.FREE:
                state, _, attempt, since, start_by, deadline, id_ = _ENTRY.unpack_from(self._memory, offset)
                yield Entry(index, State(state), id_.decode(), attempt, since, start_by, deadline)
