"""The packed record of a job: what scripts change has a fixed place, the rest they carry along unread.

    head A | runner | head B | fields | length of payload | payload | length of input | input | result

The input is what came from parents; only one that has any (Flag.INPUT) has its length.

Head A is what a claim and a completion change, so they rewrite 38 bytes and copy the rest. `version` grows with every
write: who has read a record and decided something replaces it only if it is that version still (replace.lua).
"""

import struct
from enum import IntFlag

import msgspec

from windlass.core.chain import AWAITING
from windlass.core.change import IN_LINE, PARKED
from windlass.core.ids import JobId
from windlass.core.moments import Micros
from windlass.core.rate import Rate
from windlass.core.status import FINISHED, Status
from windlass.core.toll import RATED
from windlass.store.redis.mend import reader, text

A = struct.Struct(">BIIIqqqB")
B = struct.Struct(">HIiHqqqqqHhHHIHIII")
_LENGTH = struct.Struct(">I")
NOBODY = -1  # in the place of a slot


class Letter:
    """A status as it is kept: a letter each, and one for each way of being blocked or scheduled that scripts know."""

    SCHEDULED = ord("s")
    ASIDE = ord("t")
    """Scheduled: it waits for tokens of its key."""
    BLOCKED = ord("b")
    """It waits for its parents."""
    IN_LINE = ord("l")
    PARKED = ord("k")
    PENDING = ord("p")
    RUNNING = ord("r")
    FAILED = ord("f")
    COMPLETED = ord("c")
    DEAD = ord("d")
    CANCELLED = ord("x")


STATUS = {
    Letter.SCHEDULED: Status.SCHEDULED,
    Letter.ASIDE: Status.SCHEDULED,
    Letter.BLOCKED: Status.BLOCKED,
    Letter.IN_LINE: Status.BLOCKED,
    Letter.PARKED: Status.BLOCKED,
    Letter.PENDING: Status.PENDING,
    Letter.RUNNING: Status.RUNNING,
    Letter.FAILED: Status.FAILED,
    Letter.COMPLETED: Status.COMPLETED,
    Letter.DEAD: Status.DEAD,
    Letter.CANCELLED: Status.CANCELLED,
}
REASONS = {Letter.ASIDE: RATED, Letter.BLOCKED: AWAITING, Letter.IN_LINE: IN_LINE, Letter.PARKED: PARKED}
"""What such a letter says by itself."""
_LETTERS = {(status, REASONS.get(letter)): letter for letter, status in STATUS.items()}


def letter_of(status: Status, reason: str | None) -> int:
    """How a status is kept; a reason that is none of ours is kept elsewhere."""
    return _LETTERS.get((status, reason)) or _LETTERS[status, None]


class Flag(IntFlag):
    """What a script must know of a job without reading its fields."""

    KEYED = 1
    """It has an idempotency key."""
    LINED = 2
    """It has a concurrency key."""
    STRICT = 4
    RATED = 8
    """Its concurrency key has a rate."""
    COSTLY = 16
    """A start costs another number of tokens than one."""
    TENANTED = 32
    CHILD = 64
    MORE = 128
    NOTED = 256
    CANCELLING = 512
    """It runs, and somebody wants it stopped."""
    WAITS = 1024
    """Not all of its parents have completed."""
    HEIRS = 2048
    """Others wait for it: they must be told how it ends."""
    INPUT = 4096
    """It has something from its parents."""
    LONE = 8192
    """It has one parent, and no more."""
    TAKER = 16384
    """It takes the result of a parent."""


class Fields(msgspec.Struct, array_like=True, frozen=True):
    """What is said once, at the hand-in. Scripts read some of it, by number from 1: see parts/fields.lua."""

    type: str
    tenant: str | None = None
    idempotency_key: str | None = None
    key_digest: str | None = None
    window: Micros | None = None
    concurrency_key: str | None = None
    line: str | None = None
    """The digest of the concurrency key: of one length, so that it can stand before a place."""
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
    takes: str | None = None

    @property
    def rate(self) -> Rate | None:
        """Of its concurrency key."""
        return None if self.key_rate is None else Rate(*self.key_rate)


class More(msgspec.Struct, array_like=True, frozen=True):
    """What most jobs do not have."""

    reason: str | None = None
    error: str | None = None
    attempts: str | None = None


read_fields = reader(Fields)
_more = reader(More)
encode = msgspec.msgpack.Encoder().encode


class Record(msgspec.Struct, kw_only=True):
    """A job as it is kept."""

    id: JobId
    letter: int
    version: int = 0
    attempt: int = 0
    claim: int = 0
    updated_at: Micros = 0
    claimed_at: Micros = 0
    started_at: Micros = 0
    """0 is: not."""
    runner: str = ""
    flags: int = 0
    type: int = 0
    """The number of its type in its queue."""
    urgency: int = 0
    lifted: int = 0
    rank: Micros = 0
    """Of one that waits for its parents: its delay, which counts from when the last of them completed."""
    run_at: Micros = 0
    created_at: Micros = 0
    expires_at: Micros = 0
    timeout: Micros = 0
    max_attempts: int = 0
    slot: int = NOBODY
    failures: int = 0
    crashes: int = 0
    rescues: int = 0
    suspicions: int = 0
    hand_backs: int = 0
    snoozes: int = 0
    fields: Fields
    payload: str
    input: str | None = None
    """Which parents have come, with their results, as JSON of [parent, result]."""
    result: str | None = None
    more: More = More()

    @property
    def status(self) -> Status:
        """The word for the letter."""
        return STATUS[self.letter]

    @property
    def reason(self) -> str | None:
        """What the letter says, or what was said."""
        return REASONS.get(self.letter, self.more.reason)

    @property
    def finished(self) -> bool:
        """Whether it has ended."""
        return self.status in FINISHED


def unpack(id_: JobId, value: bytes, more: bytes | None = None) -> Record:
    """A record as a script gave it."""
    letter, version, attempt, claim, updated, claimed, started, length = A.unpack_from(value)
    at = A.size + length
    runner = value[A.size : at].decode()
    numbers = B.unpack_from(value, at)
    at += B.size
    end = at + numbers[-1]
    payload, at_input = _text(value, end)
    input_, at_result = _text(value, at_input) if numbers[0] & Flag.INPUT else (None, at_input)
    return Record(
        id=id_,
        letter=letter,
        version=version,
        attempt=attempt,
        claim=claim,
        updated_at=updated,
        claimed_at=claimed,
        started_at=started,
        runner=runner,
        **dict(zip(_NUMBERS, numbers, strict=False)),
        fields=read_fields(value[at:end]),
        payload=payload,
        input=input_,
        result=text(value[at_result:]) or None,
        more=_more(more) if more else More(),
    )


def _text(value: bytes, at: int) -> tuple[str, int]:
    """A text behind its length, and where it ends."""
    (size,) = _LENGTH.unpack_from(value, at)
    begin = at + _LENGTH.size
    return text(value[begin : begin + size]), begin + size


_NUMBERS = (
    "flags",
    "type",
    "urgency",
    "lifted",
    "rank",
    "run_at",
    "created_at",
    "expires_at",
    "timeout",
    "max_attempts",
    "slot",
    "failures",
    "crashes",
    "rescues",
    "suspicions",
    "hand_backs",
    "snoozes",
)


def pack(record: Record) -> bytes:
    """The record as it is kept."""
    runner, fields, payload = record.runner.encode(), encode(record.fields), record.payload.encode()
    return b"".join(
        (
            A.pack(
                record.letter,
                record.version,
                record.attempt,
                record.claim,
                record.updated_at,
                record.claimed_at,
                record.started_at,
                len(runner),
            ),
            runner,
            B.pack(*(getattr(record, name) for name in _NUMBERS), len(fields)),
            fields,
            _LENGTH.pack(len(payload)),
            payload,
            b"" if record.input is None else _LENGTH.pack(len(given := record.input.encode())) + given,
            (record.result or "").encode(),
        )
    )
