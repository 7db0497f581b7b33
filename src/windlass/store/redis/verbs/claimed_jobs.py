"""Claimed jobs, read directly from packed records: this is hot, and makes no Record.

All records of one claim have the same runner, so everything up to the fields is at fixed places.
"""

import struct
from collections.abc import Iterator, Sequence
from functools import lru_cache

from windlass.core.jobs.job import Claimed
from windlass.store.redis.records.record import A, B, Fields, Flag, read_fields
from windlass.store.redis.records.unreadable import decode_text

_LENGTH = struct.Struct(">I")
INPUT = int(Flag.HAS_PARENT_RESULTS)


def to_claimed(queue: str, runner: str, reply: Sequence[bytes]) -> list[Claimed]:
    """The jobs of a claim's answer: an id and a record, by turns."""
    return list(_read(queue, len(runner.encode()), iter(reply)))


def _read(queue: str, runner: int, reply: Iterator[bytes]) -> Iterator[Claimed]:
    layout = _layout(runner)
    numbers, begin, length = layout.unpack_from, layout.size, _LENGTH.unpack_from
    kinds: dict[bytes, Fields] = {}
    """Most jobs are of few kinds: what is said once is read once."""
    for id_, value in zip(reply, reply, strict=True):
        n = numbers(value)
        sort_priority, lifted, _, run_at, created_at, expires_at, timeout, max_attempts = n[10:18]
        failures, crashes, rescues, suspicions, requeues, snoozes, size = n[19:26]
        end = begin + size
        said = value[begin:end]
        fields = kinds.get(said)
        if fields is None:
            fields = kinds[said] = read_fields(said)
        begins = end + 4
        ends = begins + length(value, end)[0]
        yield Claimed(
            id_.decode(),
            queue,
            fields.type,
            decode_text(value[begins:ends]),
            n[2],  # attempt
            max_attempts,
            failures,
            crashes,
            rescues,
            suspicions,
            requeues,
            snoozes,
            -sort_priority - lifted,
            run_at,
            created_at,
            n[5],  # claimed_at
            fields.idempotency_key,
            fields.concurrency_key,
            fields.tenant,
            fields.parent,
            fields.flow,
            timeout,
            expires_at or None,
            fields.tags,
            fields.meta,
            fields.result_params,
            _given(value, ends) if n[8] & INPUT and fields.result_params else None,
            fields.schedule,
            fields.tick,
        )


def _given(value: bytes, at: int) -> str:
    """What came from its parents, of one that takes anything."""
    begins = at + _LENGTH.size
    return decode_text(value[begins : begins + _LENGTH.unpack_from(value, at)[0]])


@lru_cache(maxsize=64)
def _layout(runner: int) -> struct.Struct:
    return struct.Struct(f"{A.format}{runner}x{B.format[1:]}")
