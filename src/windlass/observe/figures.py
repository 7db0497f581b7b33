"""Counts and times of one process, in memory that its supervisor may share: what a killed runner counted is kept.

A row for each queue and type, one for each store verb, and totals, as words of eight bytes. One process writes, under
a lock; others only read. Beyond MAX_ROWS pairs of queue and type everything is counted under `other`.
"""

import mmap
import os
import tempfile
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from windlass.core.moments import SECOND, Micros
from windlass.core.names import MAX_NAME_LENGTH
from windlass.native import rlock
from windlass.observe.reading import (
    CALL_SECONDS,
    COUNTERS,
    MAX_ROWS,
    OTHER,
    RUN_SECONDS,
    TOTALS,
    WAIT_SECONDS,
    CallFigures,
    JobFigures,
    Reading,
    Timing,
)

MAX_VERBS = 96


def _micros(seconds: Sequence[float]) -> tuple[Micros, ...]:
    return tuple(round(each * SECOND) for each in seconds)


_RUN, _WAIT, _CALL = _micros(RUN_SECONDS), _micros(WAIT_SECONDS), _micros(CALL_SECONDS)
# A histogram is its bins, one more for what is longer, and the sum.
_RUN_AT = len(COUNTERS)
_WAIT_AT = _RUN_AT + len(_RUN) + 2
_ROW_WORDS = _WAIT_AT + len(_WAIT) + 2
_CALL_WORDS = len(_CALL) + 3
_HEADER = 8  # rows, verbs, totals
_VERBS_AT = _HEADER + (MAX_ROWS + 1) * _ROW_WORDS
_WORDS = _VERBS_AT + MAX_VERBS * _CALL_WORDS
_NAMES_AT = _WORDS * 8
_ROW_NAMES = 2 * MAX_NAME_LENGTH
_VERB_NAMES_AT = _NAMES_AT + (MAX_ROWS + 1) * _ROW_NAMES
_VERB_NAME = 32
SIZE = _VERB_NAMES_AT + MAX_VERBS * _VERB_NAME


class Figures:
    """The counts of one process."""

    def __init__(self, memory: mmap.mmap | bytearray | None = None, descriptor: int | None = None) -> None:
        self._memory = memoryview(bytearray(SIZE) if memory is None else memory)
        self._words = self._memory[:_NAMES_AT].cast("q")
        self.descriptor = descriptor
        self.is_absorbed = False
        """Whether another process adds them to its own: this one must not show them besides."""
        self._rows: dict[tuple[str, str], int] = {}
        # A signal handler may enqueue in the midst of a count of its own thread: a plain lock would never be free.
        self._lock = rlock()

    @classmethod
    def create_shared(cls) -> "Figures":
        """Figures in new memory, for a process that gets the descriptor."""
        if hasattr(os, "memfd_create"):
            descriptor = os.memfd_create("windlass-figures")
        else:
            with tempfile.TemporaryFile() as file:
                descriptor = os.dup(file.fileno())
        os.ftruncate(descriptor, SIZE)
        return cls.shared(descriptor)

    @classmethod
    def shared(cls, descriptor: int) -> "Figures":
        """Figures in memory that another process has created."""
        return cls(mmap.mmap(descriptor, SIZE), descriptor)

    def close(self) -> None:
        """Close the descriptor; the memory stays as long as this object."""
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None

    # Writing.

    def count(self, name: str, queue: str, type_: str, number: int = 1) -> None:
        """Add to a counter of a queue and type."""
        with self._lock:
            self._words[self._row(queue, type_) + _COLUMN[name]] += number

    def count_started(self, queue: str, type_: str) -> None:
        """Count an attempt that is started. Once per job, so without the lock: only one thread starts attempts."""
        row = self._rows.get((queue, type_))
        if row is None:
            self.count("started", queue, type_)
        else:
            self._words[row + _STARTED] += 1

    def count_total(self, name: str) -> None:
        """Add one to a total."""
        with self._lock:
            self._words[2 + TOTALS.index(name)] += 1

    def observe(self, queue: str, type_: str, times: Sequence[tuple[Micros, Micros]], number: int) -> None:
        """Times waited and run, of a sample that stands for `number` attempts."""
        if not times:
            return
        step, words = number // len(times), self._words
        with self._lock:
            row = self._row(queue, type_)
            weight = number - step * (len(times) - 1)
            for wait, run in times:
                _add_time(words, row + _WAIT_AT, _WAIT, max(0, wait), weight)
                _add_time(words, row + _RUN_AT, _RUN, max(0, run), weight)
                weight = step

    def verb(self, name: str) -> int:
        """The offset of a verb, for `called`."""
        with self._lock:
            known = self._verb_names()
            if name in known:
                return _VERBS_AT + known.index(name) * _CALL_WORDS
            index = len(known)
            _write_name(self._memory, _VERB_NAMES_AT + index * _VERB_NAME, _VERB_NAME, name)
            self._words[1] = index + 1
            return _VERBS_AT + index * _CALL_WORDS

    def called(self, offset: int, length: Micros, *, failed: bool) -> None:
        """A call of a verb took this long."""
        with self._lock:
            _add_time(self._words, offset + 1, _CALL, length, 1)
            if failed:
                self._words[offset] += 1

    def absorb(self, other: "Figures", absorbed: dict[int, int]) -> None:
        """Add what other figures have counted since they were last absorbed; `absorbed` has their words of then."""
        with self._lock:
            for theirs, ours, words in [*self._offsets_of(other)]:
                for word in range(words):
                    number = other._words[theirs + word]
                    self._words[ours + word] += number - absorbed.get(theirs + word, 0)
                    absorbed[theirs + word] = number

    def _offsets_of(self, other: "Figures") -> Iterator[tuple[int, int, int]]:
        """Of each figure: its offset there, its offset here, and its number of words."""
        yield 2, 2, len(TOTALS)
        for pair, row in other._named_rows():
            yield row, self._row(*pair), _ROW_WORDS
        for index, name in enumerate(other._verb_names()):
            yield _VERBS_AT + index * _CALL_WORDS, self.verb(name), _CALL_WORDS

    def _row(self, queue: str, type_: str) -> int:
        row = self._rows.get((queue, type_))
        return self._new_row(queue, type_) if row is None else row

    def _new_row(self, queue: str, type_: str) -> int:
        index = self._words[0]
        if index >= MAX_ROWS:
            if (named_so := self._rows.get((OTHER, OTHER))) is not None:
                return named_so
            queue = type_ = OTHER
            index = MAX_ROWS
        row = _HEADER + index * _ROW_WORDS
        if index < MAX_ROWS or self._words[0] == MAX_ROWS:
            at = _NAMES_AT + index * _ROW_NAMES
            _write_name(self._memory, at, MAX_NAME_LENGTH, queue)
            _write_name(self._memory, at + MAX_NAME_LENGTH, MAX_NAME_LENGTH, type_)
            self._words[0] = index + 1  # last: a reader sees a row only with its names
        if index < MAX_ROWS:
            self._rows[queue, type_] = row
        return row

    # Reading.

    def read(self) -> Reading:
        """Everything, as of now."""
        words = self._words
        jobs = {pair: _job_figures(words, row) for pair, row in self._named_rows()}
        calls = {
            verb: CallFigures(words[offset], _timing(words, offset + 1, len(_CALL)))
            for verb, offset in zip(self._verb_names(), range(_VERBS_AT, _WORDS, _CALL_WORDS), strict=False)
        }
        return Reading(jobs, calls, {name: words[2 + i] for i, name in enumerate(TOTALS)})

    def _named_rows(self) -> Iterator[tuple[tuple[str, str], int]]:
        for index in range(self._words[0]):
            at = _NAMES_AT + index * _ROW_NAMES
            queue = _read_name(self._memory, at, MAX_NAME_LENGTH)
            yield (
                (queue, _read_name(self._memory, at + MAX_NAME_LENGTH, MAX_NAME_LENGTH)),
                _HEADER + index * _ROW_WORDS,
            )

    def _verb_names(self) -> list[str]:
        return [
            _read_name(self._memory, _VERB_NAMES_AT + index * _VERB_NAME, _VERB_NAME)
            for index in range(self._words[1])
        ]


_COLUMN = {name: index for index, name in enumerate(COUNTERS)}
_STARTED = _COLUMN["started"]


def _add_time(words: memoryview, offset: int, bounds: tuple[Micros, ...], length: Micros, weight: int) -> None:
    words[offset + bisect_left(bounds, length)] += weight
    words[offset + len(bounds) + 1] += length * weight


def _timing(words: memoryview, offset: int, bounds: int) -> Timing:
    return Timing(words[offset : offset + bounds + 1].tolist(), words[offset + bounds + 1])


def _job_figures(words: memoryview, row: int) -> JobFigures:
    counters = dict(zip(COUNTERS, words[row : row + len(COUNTERS)].tolist(), strict=True))
    run, wait = _timing(words, row + _RUN_AT, len(_RUN)), _timing(words, row + _WAIT_AT, len(_WAIT))
    return JobFigures(counters, run, wait)


def _write_name(memory: memoryview, at: int, size: int, name: str) -> None:
    memory[at : at + size] = name.encode(errors="replace")[:size].ljust(size, b"\0")


def _read_name(memory: memoryview, at: int, size: int) -> str:
    return bytes(memory[at : at + size]).rstrip(b"\0").decode(errors="replace")
