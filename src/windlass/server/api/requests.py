"""Idempotency-Key: a repeated request gets the first answer, for 24 hours, whatever became of its jobs.

The record is stored before the jobs, whose ids derive from it: a server that dies in between leaves a record that the
next attempt takes over, with the same ids, so no job is doubled. A request that was refused has stored nothing: its
key is free for a corrected one.
"""

import contextlib
import hashlib
import time
from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

import msgspec

from windlass.core.moments import DAY, SECOND, Micros
from windlass.errors import StoreUnavailable, WindlassError
from windlass.server.operation import REQUEST_SECONDS, Answer, Call
from windlass.server.problem import Refused, problem_of
from windlass.store.documents import DocumentStore

IDEMPOTENCY_KEY = "Idempotency-Key"
KIND = "request"
RETENTION: Micros = DAY
MAX_KEY = 255
Work = Callable[[Sequence[str | None]], Awaitable[Answer]]
"""Called with an id for each job; None: a new one."""


class _Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """A request: when its ids were made, the digest of its body, until when it is in progress, and its answer.

    The body is empty after a refusal: nothing was stored.
    """

    at: Micros
    body: str
    until: Micros
    status: int = 0
    answer: msgspec.Raw = msgspec.Raw(b"null")


_decoder = msgspec.json.Decoder(_Record)


async def once(call: Call, jobs: int, work: Work) -> Answer:
    """Run the work with ids for its jobs; with an Idempotency-Key, once for each key and body."""
    key = call.headers.get(IDEMPOTENCY_KEY.lower())
    if key is None:
        return await work([None] * jobs)  # the store need not look for new ids of this process
    if not 1 <= len(key) <= MAX_KEY or not key.isprintable():
        problem = f"must be 1 to {MAX_KEY} printable characters"
        raise Refused(
            422, "invalid_option", problem, field=IDEMPOTENCY_KEY, limit=MAX_KEY if len(key) > MAX_KEY else None
        )
    scope = "\0".join((call.caller.id, call.operation.method, call.operation.path, key))
    attempt = _Attempt((await call.app._ready()).documents, hashlib.sha256(scope.encode()).hexdigest())
    if (replayed := await attempt.begin(hashlib.sha256(call.text).hexdigest())) is not None:
        return replayed
    return await attempt.run(jobs, work)


class _Attempt:
    """One try at a request that has a key."""

    def __init__(self, documents: DocumentStore, id_: str) -> None:
        self._documents = documents
        self._id = id_
        self._version = 1
        self._is_first = True
        """Whether no earlier try can have stored jobs."""

    async def begin(self, body: str) -> Answer | None:
        """Claim the request, or return its first answer. Refused for another body, or while another try runs."""
        now = time.time_ns() // 1000
        until = now + round(REQUEST_SECONDS * SECOND)
        self._record = _Record(now, body, until)
        existing = await self._documents.add(KIND, self._id, _text(self._record), RETENTION)
        if existing is None:
            return None
        found = _decoder.decode(existing.data)
        if found.body and found.body != body:
            raise Refused(422, "idempotency_key_reused", "this key had another body before", field=IDEMPOTENCY_KEY)
        if found.status:
            return Answer(found.answer, found.status, {"idempotency-replayed": "true"})
        self._is_first = not found.body
        self._record, self._version = msgspec.structs.replace(found, body=body, until=until), existing.version
        if found.until > now or not await self._write():
            raise Refused(409, "request_in_progress", "the first request with this key is still in progress")
        return None

    async def run(self, jobs: int, work: Work) -> Answer:
        """Do the work and keep its answer; after an error the next try need not wait, and may have another body."""
        try:
            answer = await work(_derived_ids(self._record.at, self._id, jobs))
        except BaseException as error:
            freed = {"body": ""} if self._is_first and _stored_nothing(error) else {}
            self._record = msgspec.structs.replace(self._record, until=0, **freed)
            with contextlib.suppress(
                StoreUnavailable
            ):  # the next try is then possible after the time limit of this one
                await self._write()
            raise
        text = msgspec.Raw(msgspec.json.encode(answer.body))
        self._record = msgspec.structs.replace(self._record, until=0, status=answer.status, answer=text)
        with contextlib.suppress(StoreUnavailable):  # the jobs are stored: a repetition finds them by their ids
            await self._write()
        return answer

    async def _write(self) -> bool:
        written = await self._documents.replace(KIND, self._id, _text(self._record), self._version)
        self._version += written
        return written


def _stored_nothing(error: BaseException) -> bool:
    """Whether the error is a refusal, after which nothing is stored."""
    return isinstance(error, WindlassError) and problem_of(error).status < 500


def _text(record: _Record) -> str:
    return msgspec.json.encode(record).decode()


def _derived_ids(at: Micros, key: str, count: int) -> list[str]:
    """UUIDv7 of the record's time, whose other bits are the digest of its key and a number."""
    return [_derived_id(at // 1000, f"{key}\0{number}".encode()) for number in range(count)]


def _derived_id(milliseconds: int, text: bytes) -> str:
    bits = int.from_bytes(hashlib.sha256(text).digest()[:10])
    number = milliseconds << 80 | 0x7 << 76 | (bits >> 62 & 0xFFF) << 64 | 0b10 << 62 | bits & (1 << 62) - 1
    return str(UUID(int=number))
