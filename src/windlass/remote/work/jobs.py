"""Claims, settlements, notes and enqueues of a worker behind a server."""

import asyncio
import socket
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Raw

from windlass.core.ids import JobId
from windlass.core.jobs.job import Claimed, Enqueued, Job, NewJob
from windlass.core.jobs.outcome import Settlement
from windlass.errors import InvalidOption, LeaseLost
from windlass.remote.enqueue import enqueue
from windlass.remote.work.convert import claimed_of, note_body, refused_body, settlement_body
from windlass.remote.work.elsewhere import Elsewhere
from windlass.remote.work.session import CALL_SECONDS, WorkSession
from windlass.server.workers import records
from windlass.store.records import Admitted, ClaimRequest, Held, Note, Settled

WAIT = 10.0
"""Seconds that a claim waits at the server for a job."""
MAX_BATCH_BYTES = 8 * 1024 * 1024
MAX_NOTES = 4
"""Notes in one call: with all their lines they stay below the server's limit on bodies."""


class RestJobs(Elsewhere):
    """Claims, settlements, notes and enqueues through the server."""

    grouped = False

    def __init__(self, session: WorkSession, slots: int, seconds: float | None) -> None:
        super().__init__(session.connection.server)
        self._session = session
        self._slots = slots
        self._seconds = seconds
        self._queues: dict[str, None] = {}
        """All queues that were ever claimed from: the server lists them, also while one has no quota."""
        self.waited = True
        """Whether the last claim waited as long as it asked for, or returned jobs."""

    async def enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        return await enqueue(self._session.connection, jobs, self._seconds)

    async def enqueue_inside(self, connection: object, jobs: Sequence[NewJob], declared: object) -> list[Enqueued]:
        raise InvalidOption("connection", "a server cannot take part in a transaction of yours")

    async def get_inside(self, connection: object, ids: Sequence[JobId]) -> list[Job | None]:
        raise InvalidOption("connection", "a server cannot take part in a transaction of yours")

    async def admit(self, limit: int, queues: Sequence[str] | None = None) -> Admitted:
        """Nothing: the server admits due jobs while claims wait."""
        return Admitted(0, None)

    async def claim(self, request: ClaimRequest) -> list[Claimed]:
        limits = {quota.queue: quota.limit for quota in request.quotas}
        self._queues |= dict.fromkeys(limits)
        limit = min(request.limit, records.MAX_CLAIMED)
        body = records.ClaimBody(
            worker=request.runner,
            claim=request.claim,
            queues=list(self._queues),
            types=list(request.types),
            limit=limit,
            limits={queue: most for queue in self._queues if (most := limits.get(queue, 0)) < limit},
            wait=WAIT,
            slots=self._slots,
            host=socket.gethostname(),
        )
        begun = time.monotonic()
        answer = await self._session.call(request.runner, "/claims", records.ClaimAnswer, body, WAIT + CALL_SECONDS)
        self.waited = bool(answer.jobs) or time.monotonic() - begun >= WAIT
        self._session.holders.update({(job.id, job.attempt): request.runner for job in answer.jobs})
        return [claimed_of(job) for job in answer.jobs]

    async def settle(self, settlements: Sequence[Settlement]) -> list[Settled]:
        session = self._session
        keys = [(each.id, each.attempt) for each in settlements]
        await session.find(keys)
        by_lease: dict[str, list[records.SettlementBody]] = defaultdict(list)
        for key, each in zip(keys, settlements, strict=True):
            if (runner := session.holders.get(key)) is not None:
                by_lease[runner].append(settlement_body(each))
        answers: dict[tuple[str, int], Settled] = {}
        for runner, bodies in by_lease.items():
            for item in await self._settle(runner, bodies):
                answers[item.id, item.attempt] = Settled(item.answer)
        for key in keys:
            session.holders.pop(key, None)
        return [answers.get(key, Settled.STALE) for key in keys]

    async def _settle(self, runner: str, bodies: Sequence[records.SettlementBody]) -> list[records.SettledItem]:
        """The answers except `invalid` ones, which are settled as failed; none after the lease is lost."""
        found: list[records.SettledItem] = []
        for batch in _batches(bodies):
            try:
                said = await self._send(runner, batch)
                wrong = [
                    refused_body(body, item.problem or "")
                    for body, item in zip(batch, said.settlements, strict=True)
                    if item.answer is records.ItemAnswer.INVALID
                ]
                found += [item for item in said.settlements if item.answer is not records.ItemAnswer.INVALID]
                if wrong:
                    again = await self._send(runner, wrong)
                    found += [item for item in again.settlements if item.answer is not records.ItemAnswer.INVALID]
            except LeaseLost:
                return found
        return found

    async def _send(self, runner: str, batch: list[records.SettlementBody]) -> records.SettleAnswer:
        body = records.SettleBody(worker=runner, settlements=batch)
        return await self._session.call(runner, "/claims/settle", records.SettleAnswer, body)

    async def note(self, notes: Sequence[Note]) -> None:
        """Send progress and log lines; a start alone is not sent, so `started_at` comes with the first of them."""
        by_lease: dict[str, list[Note]] = defaultdict(list)
        for note in notes:
            runner = self._session.holders.get((note.id, note.attempt))
            if runner is not None and (note.progress is not None or note.lines):
                by_lease[runner].append(note)
        await asyncio.gather(*(self._note(runner, said) for runner, said in by_lease.items()))

    async def _note(self, runner: str, notes: Sequence[Note]) -> None:
        for start in range(0, len(notes), MAX_NOTES):
            body = records.BeatBody(
                worker=runner, notes=[note_body(each) for each in notes[start : start + MAX_NOTES]]
            )
            try:
                await self._session.call(runner, "/claims/beat", records.BeatAnswer, body)
            except LeaseLost:
                return  # another worker has the jobs

    async def held(self, runner: str) -> list[Held]:
        found = await self._session.held(runner)
        return [Held(id=job.id, attempt=job.attempt, queue=job.queue, claim=job.claim) for job in found]


def _batches(bodies: Sequence[records.SettlementBody]) -> Iterator[list[records.SettlementBody]]:
    """Batches within the server's limits."""
    batch: list[records.SettlementBody] = []
    size = 0
    for body in bodies:
        length = len(body.result) if isinstance(body.result, Raw) else 0
        length += 0 if body.error is None else len(msgspec.json.encode(body.error))
        if batch and (len(batch) == records.MAX_SETTLED or size + length > MAX_BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(body)
        size += length
    if batch:
        yield batch
