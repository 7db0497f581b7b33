"""What running attempts say about themselves, as it is kept: progress and lines in JSON, bounded."""

import msgspec

from windlass.core.job import LogLine, Progress
from windlass.store.records import Note

MOST_LINES = 200
LONGEST_LINE = 1000

_lines = msgspec.json.Decoder(list[LogLine])


def add_note(progress: str | None, logs: str | None, each: Note) -> tuple[str | None, str | None]:
    """What was kept, with one more note: the newer progress, the newest lines."""
    lines = (_lines.decode(logs) if logs else []) + [_cut(line) for line in each.lines]
    return (
        msgspec.json.encode(each.progress).decode() if each.progress else progress,
        msgspec.json.encode(lines[-MOST_LINES:]).decode() if lines else None,
    )


def _cut(line: LogLine) -> LogLine:
    return msgspec.structs.replace(line, text=line.text[:LONGEST_LINE])


def notes_of(progress: str | None, logs: str | None) -> tuple[Progress | None, tuple[LogLine, ...]]:
    """What was kept, as records."""
    kept = msgspec.json.decode(progress, type=Progress) if progress else None
    return kept, tuple(_lines.decode(logs)) if logs else ()
