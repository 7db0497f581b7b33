"""note: what running attempts say about themselves, kept beside the job and bounded."""

from collections.abc import Sequence
from typing import Any

import msgspec

from windlass.core.job import LogLine, Progress
from windlass.store.records import Note
from windlass.store.sqlite.db import Db

MOST_LINES = 200
LONGEST_LINE = 1000

_lines = msgspec.json.Decoder(list[LogLine])


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
    lines = (_lines.decode(logs) if logs else []) + [_cut(line) for line in each.lines]
    values: dict[str, Any] = {
        "job": each.id,
        "progress": msgspec.json.encode(each.progress).decode() if each.progress else progress,
        "logs": msgspec.json.encode(lines[-MOST_LINES:]).decode() if lines else None,
    }
    db.run("note", values)


def _cut(line: LogLine) -> LogLine:
    return msgspec.structs.replace(line, text=line.text[:LONGEST_LINE])


def notes_of(progress: str | None, logs: str | None) -> tuple[Progress | None, tuple[LogLine, ...]]:
    """What was kept, as records."""
    kept = msgspec.json.decode(progress, type=Progress) if progress else None
    return kept, tuple(_lines.decode(logs)) if logs else ()
