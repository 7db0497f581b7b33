"""note: what running attempts say about themselves, kept beside the job and bounded."""

from collections.abc import Sequence

from windlass.store.notes import add_note
from windlass.store.postgres.db import Db
from windlass.store.records import Note


async def note(db: Db, notes: Sequence[Note]) -> None:
    """Keep each note whose attempt is running; a late one changes nothing.

    The jobs are locked first: none can end, and none of its notes be dropped, before what it says is written.
    """
    said = dict.fromkeys((each.id, each.attempt) for each in notes)
    fences = {"ids": [id_ for id_, _ in said], "attempts": [attempt for _, attempt in said]}
    running = {(row["id"], row["attempt"]) for row in await db.rows("running", fences)}
    current = [each for each in notes if (each.id, each.attempt) in running]
    await _note_starts(db, [each for each in current if each.started_after is not None])
    await _keep(db, [each for each in current if each.progress or each.lines])


async def _note_starts(db: Db, started: Sequence[Note]) -> None:
    if started:
        first = {each.id: each.started_after for each in reversed(started)}
        await db.run("note_starts", {"ids": list(first), "afters": list(first.values())})


async def _keep(db: Db, said: Sequence[Note]) -> None:
    if not said:
        return
    ids = list({each.id: None for each in said})
    kept = {row[0]: (row[1], row[2]) for row in await db.rows("notes", {"jobs": ids})}
    for each in said:
        kept[each.id] = add_note(*kept.get(each.id, (None, None)), each)
    progress, logs = [kept[id_][0] for id_ in ids], [kept[id_][1] for id_ in ids]
    await db.run("keep_notes", {"jobs": ids, "progress": progress, "logs": logs})
