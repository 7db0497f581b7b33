"""note: what running attempts say about themselves, kept beside the job and bounded."""

from collections.abc import Sequence

from windlass.store.notes import add_note
from windlass.store.records import Note
from windlass.store.sqlite.db import Db


def note(db: Db, notes: Sequence[Note]) -> None:
    """Keep each note whose attempt is running; a late one changes nothing."""
    for each in notes:
        if each.started_after is not None:
            db.run("note_start", {"id": each.id, "attempt": each.attempt, "after": each.started_after})
        if (each.progress or each.lines) and db.rows("running", {"id": each.id, "attempt": each.attempt}):
            _keep(db, each)


def _keep(db: Db, each: Note) -> None:
    kept = db.rows("notes", {"job": each.id})
    progress, logs = kept[0] if kept else (None, None)
    progress, logs = add_note(progress, logs, each)
    db.run("note", {"job": each.id, "progress": progress, "logs": logs})
