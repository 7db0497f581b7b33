"""The packed record of a job: fields that scripts change are at fixed offsets, the rest they copy unread.

    head A | runner | head B | head C | fields | length of payload | payload | length | parent results | result

Only a record with Flag.HAS_HEAD_C has head C: aged, with an expiry or a key slot, or tried before. Only one with
Flag.HAS_PARENT_RESULTS has parent results and their length. Fields end with the last value that a job has.

Head A is what a claim and a completion change, so they rewrite 38 bytes and copy the rest. `version` grows with
every write: a decision is written only if the record still has the version that was read (replace_records.lua).
"""

import struct
from enum import IntFlag
from operator import attrgetter

import msgspec

from windlass.core.flow.rate import Rate
from windlass.core.flow.rate_check import THROTTLED
from windlass.core.ids import JobId
from windlass.core.jobs.change import NO_WORKER, WAITING_FOR_KEY
from windlass.core.jobs.dependencies import WAITING_FOR_PARENT
from windlass.core.moments import Micros
from windlass.core.status import FINISHED, Status
from windlass.store.redis.records.unreadable import decode_text, reader

A = struct.Struct(">BIIIqqqB")
B = struct.Struct(">IIiqqqqHI")
C = struct.Struct(">HqhHHIHII")
_LENGTH = struct.Struct(">I")
NO_KEY_SLOT = -1  # instead of a key slot


class Letter:
    """The letter of each status; scripts distinguish kinds of blocked and scheduled."""

    SCHEDULED = ord("s")
    THROTTLED = ord("t")
    """Scheduled: it waits for tokens of its key."""
    BLOCKED = ord("b")
    """It waits for its parents."""
    WAITING_FOR_KEY = ord("l")
    NO_WORKER = ord("k")
    PENDING = ord("p")
    RUNNING = ord("r")
    FAILED = ord("f")
    COMPLETED = ord("c")
    DEAD = ord("d")
    CANCELLED = ord("x")


STATUS = {
    Letter.SCHEDULED: Status.SCHEDULED,
    Letter.THROTTLED: Status.SCHEDULED,
    Letter.BLOCKED: Status.BLOCKED,
    Letter.WAITING_FOR_KEY: Status.BLOCKED,
    Letter.NO_WORKER: Status.BLOCKED,
    Letter.PENDING: Status.PENDING,
    Letter.RUNNING: Status.RUNNING,
    Letter.FAILED: Status.FAILED,
    Letter.COMPLETED: Status.COMPLETED,
    Letter.DEAD: Status.DEAD,
    Letter.CANCELLED: Status.CANCELLED,
}
REASONS = {
    Letter.THROTTLED: THROTTLED,
    Letter.BLOCKED: WAITING_FOR_PARENT,
    Letter.WAITING_FOR_KEY: WAITING_FOR_KEY,
    Letter.NO_WORKER: NO_WORKER,
}
"""The reason that a letter implies."""
_LETTERS = {(status, REASONS.get(letter)): letter for letter, status in STATUS.items()}


def letter_of(status: Status, reason: str | None) -> int:
    """The letter of a status; a reason that is not one of ours is stored in the details."""
    return _LETTERS.get((status, reason)) or _LETTERS[status, None]


class Flag(IntFlag):
    """What scripts need of a job without reading its fields."""

    HAS_IDEMPOTENCY_KEY = 1
    """It has an idempotency key."""
    HAS_CONCURRENCY_KEY = 2
    """It has a concurrency key."""
    STRICT = 4
    RATED = 8
    """Its concurrency key has a rate."""
    COSTLY = 16
    """A start costs another number of tokens than one."""
    HAS_TENANT = 32
    IS_CHILD = 64
    HAS_DETAILS = 128
    HAS_NOTES = 256
    CANCEL_REQUESTED = 512
    """It is running, and has a cancel request."""
    WAITS_FOR_PARENTS = 1024
    """Not all of its parents have completed."""
    HAS_DEPENDENTS = 2048
    """Other jobs wait for it, and must be notified of its end."""
    HAS_PARENT_RESULTS = 4096
    """Its record has parent results."""
    ONE_PARENT = 8192
    """It has exactly one parent."""
    TAKES_RESULT = 16384
    """It takes the result of a parent."""
    ONLY_DEPENDENT = 32768
    """It has one dependent, which is in its fields and not in the index of dependents."""
    HAS_HEAD_C = 65536
    """Only in the packed record."""
    WHEN_ENDED = 131072
    """It waits for its parents to end, completed or not."""


class Fields(msgspec.Struct, array_like=True, frozen=True):
    """Values that are set once, at the enqueue. Scripts read some by number, from 1: see parts/records/record.lua."""

    type: str
    tenant: str | None = None
    idempotency_key: str | None = None
    key_digest: str | None = None
    window: Micros | None = None
    concurrency_key: str | None = None
    concurrency_digest: str | None = None
    """The digest of the concurrency key, of fixed length, so that it can prefix a member."""
    key_limit: int | None = None
    key_strict: bool | None = None
    key_rate: tuple[int, Micros, int] | None = None
    """Tokens, period, burst."""
    rate_cost: int | None = None
    parent: str | None = None
    flow: str | None = None
    parents: str | None = None
    tags: str | None = None
    meta: str | None = None
    schedule: str | None = None
    tick: Micros | None = None
    result_params: str | None = None
    dependent: JobId | None = None
    """The one job of the same enqueue and queue that waits for it: the last value, found by its length."""

    @property
    def rate(self) -> Rate | None:
        """The rate of its concurrency key, if any."""
        return None if self.key_rate is None else Rate(*self.key_rate)


class Details(msgspec.Struct, array_like=True, frozen=True):
    """Fields that most jobs do not have."""

    reason: str | None = None
    error: str | None = None
    attempts: str | None = None


read_fields = reader(Fields)
_details = reader(Details)
encode = msgspec.msgpack.Encoder().encode


class Record(msgspec.Struct, kw_only=True):
    """A job as it is stored."""

    id: JobId
    letter: int
    version: int = 0
    attempt: int = 0
    claim: int = 0
    updated_at: Micros = 0
    claimed_at: Micros = 0
    started_at: Micros = 0
    """0: not started."""
    runner: str = ""
    flags: int = 0
    type: int = 0
    """The number of its type in its queue."""
    sort_priority: int = 0
    aged_by: int = 0
    rank: Micros = 0
    """While it waits for its parents: its delay after the last of them has completed."""
    run_at: Micros = 0
    created_at: Micros = 0
    expires_at: Micros = 0
    timeout: Micros = 0
    max_attempts: int = 0
    key_slot: int = NO_KEY_SLOT
    failures: int = 0
    crashes: int = 0
    rescues: int = 0
    suspicions: int = 0
    requeues: int = 0
    snoozes: int = 0
    fields: Fields
    payload: str
    parent_results: str | None = None
    """Completed parents with their results, as JSON of [parent, result]."""
    result: str | None = None
    details: Details = Details()

    @property
    def status(self) -> Status:
        """The status of the letter."""
        return STATUS[self.letter]

    @property
    def reason(self) -> str | None:
        """The reason that the letter implies, or the stored one."""
        return REASONS.get(self.letter, self.details.reason)

    @property
    def finished(self) -> bool:
        """Whether it is finished."""
        return self.status in FINISHED


_HEAD = ("letter", "version", "attempt", "claim", "updated_at", "claimed_at", "started_at")
_NUMBERS = ("flags", "type", "sort_priority", "rank", "run_at", "created_at", "timeout", "max_attempts")
_RARE = (
    *("aged_by", "expires_at", "key_slot"),
    *("failures", "crashes", "rescues", "suspicions", "requeues", "snoozes"),
)
_head_of, _numbers_of, _rare_of = attrgetter(*_HEAD), attrgetter(*_NUMBERS[1:]), attrgetter(*_RARE)
NO_RARE = (0, 0, NO_KEY_SLOT, 0, 0, 0, 0, 0, 0)
"""Head C of a record that has none."""
_HAS_HEAD_C = int(Flag.HAS_HEAD_C)
_NILS = b"\xc0" * (len(Fields.__struct_fields__) - 1)


def encode_fields(fields: Fields) -> bytes:
    """Fields as they are stored, up to the last value."""
    encoded = encode(fields)
    if encoded.endswith(_NILS):  # most jobs have only the type
        return b"\x91" + encoded[3 : -len(_NILS)]
    values = list(msgspec.structs.astuple(fields))
    while values[-1] is None:
        values.pop()
    return encode(values)


def unpack(id_: JobId, value: bytes, more: bytes | None = None) -> Record:
    """A record from the bytes that a script returned."""
    *head, length = A.unpack_from(value)
    at = A.size + length
    runner = value[A.size : at].decode()
    flags, *numbers, size = B.unpack_from(value, at)
    at += B.size
    rare = NO_RARE
    if flags & _HAS_HEAD_C:
        flags, rare, at = flags ^ _HAS_HEAD_C, C.unpack_from(value, at), at + C.size
    end = at + size
    payload, at_parent_results = _text(value, end)
    parent_results, at_result = (
        _text(value, at_parent_results) if flags & Flag.HAS_PARENT_RESULTS else (None, at_parent_results)
    )
    return Record(
        id=id_,
        **dict(zip(_HEAD, head, strict=True)),
        runner=runner,
        **dict(zip(_NUMBERS, (flags, *numbers), strict=True)),
        **dict(zip(_RARE, rare, strict=True)),
        fields=read_fields(value[at:end]),
        payload=payload,
        parent_results=parent_results,
        result=decode_text(value[at_result:]) or None,
        details=_details(more) if more else Details(),
    )


def _text(value: bytes, at: int) -> tuple[str, int]:
    """The text after the length at `at`, and where it ends."""
    (size,) = _LENGTH.unpack_from(value, at)
    begin = at + _LENGTH.size
    return decode_text(value[begin : begin + size]), begin + size


def pack(record: Record) -> bytes:
    """The record as it is stored."""
    runner, fields, payload = record.runner.encode(), encode_fields(record.fields), record.payload.encode()
    given, rare = record.parent_results, _rare_of(record)
    has_rare = rare != NO_RARE
    return b"".join(
        (
            A.pack(*_head_of(record), len(runner)),
            runner,
            B.pack(record.flags | (_HAS_HEAD_C if has_rare else 0), *_numbers_of(record), len(fields)),
            C.pack(*rare) if has_rare else b"",
            fields,
            _LENGTH.pack(len(payload)),
            payload,
            b"" if given is None else _LENGTH.pack(len(given.encode())) + given.encode(),
            (record.result or "").encode(),
        )
    )
