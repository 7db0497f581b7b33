"""POST /claims/beat and POST /claims/end."""

from datetime import UTC, datetime

from windlass.core.jobs.job import Claimed, LogLine, Progress
from windlass.core.text import cut, printable
from windlass.core.tokens import Scope
from windlass.errors import InvalidOption
from windlass.server.operation import Answer, Call, Operation
from windlass.server.workers.records import (
    MAX_CRASHED,
    MAX_LINES,
    MAX_NOTES,
    AttemptRef,
    BeatAnswer,
    BeatBody,
    EndBody,
    NoteBody,
)
from windlass.server.workers.rest_worker import PREFIX
from windlass.server.workers.service import lease_of, service_of
from windlass.store.records import Note

MAX_LINE = 1_000
MAX_BEAT_BODY = 8 * 1024 * 1024
"""Room for ten notes of 200 lines of 1,000 characters, up to 4 bytes each."""


async def beat(call: Call) -> Answer:
    """Renew the lease for all jobs of the worker, store its notes, and return the attempts to cancel."""
    body: BeatBody = call.body
    if len(body.notes) > MAX_NOTES:
        raise InvalidOption("notes", f"must be at most {MAX_NOTES:,}, not {len(body.notes):,}")
    service = service_of(call)
    worker = await service.workers.get(call.caller, body.worker)
    for index, note in enumerate(body.notes):
        if len(note.lines) > MAX_LINES:
            raise InvalidOption(f"notes[{index}].lines", f"must be at most {MAX_LINES}, not {len(note.lines)}")
    await service.workers.renew(worker)
    store = await call.app._ready()
    held = await service.claimed(worker, [(each.id, each.attempt) for each in body.notes])
    notes = [_note(held[each.id, each.attempt], each) for each in body.notes if (each.id, each.attempt) in held]
    if notes:
        await store.jobs.note(notes)
    cancels = [AttemptRef(each.id, each.attempt) for each in await store.leases.cancels(PREFIX + worker.id)]
    return Answer(BeatAnswer(cancels=cancels, **lease_of(service.workers)))


def _note(job: Claimed, body: NoteBody) -> Note:
    now, progress = datetime.now(UTC), None
    if body.done is not None:
        text = None if body.note is None else cut(printable(body.note), MAX_LINE)
        progress = Progress(body.done, body.total, text, now)
    return Note(
        id=job.id,
        queue=job.queue,
        attempt=body.attempt,
        started_after=0,
        progress=progress,
        lines=tuple(LogLine(now, body.attempt, cut(printable(line), MAX_LINE)) for line in body.lines),
    )


async def end_worker(call: Call) -> Answer:
    """Requeue the jobs that the worker holds and end its lease. Idempotent."""
    body: EndBody = call.body
    if len(body.crashed) > MAX_CRASHED:
        raise InvalidOption("crashed", f"must be at most {MAX_CRASHED:,}, not {len(body.crashed):,}")
    crashed = frozenset((each.id, each.attempt) for each in body.crashed)
    await service_of(call).workers.end(call.caller, body.worker, crashed)
    return Answer(None, 204)


OPERATIONS = (
    Operation(
        method="POST",
        path="/claims/beat",
        scope=Scope.WORK,
        handler=beat,
        summary="Renew a worker's lease",
        body=BeatBody,
        max_body=MAX_BEAT_BODY,
        answers={200: BeatAnswer},
    ),
    Operation(
        method="POST",
        path="/claims/end",
        scope=Scope.WORK,
        handler=end_worker,
        summary="End a worker, and requeue its jobs",
        body=EndBody,
        answers={204: None},
    ),
)
