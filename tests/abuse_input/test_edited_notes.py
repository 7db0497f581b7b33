"""Notes edited by hand: unreadable ones count as none, and new ones are kept."""

from datetime import UTC, datetime

import pytest

from windlass.core.jobs.job import LogLine, Progress
from windlass.store.records import Note
from windlass.store.rows import add_note, notes_of

LINE = LogLine(datetime(2026, 1, 1, tzinfo=UTC), 1, "half done")


@pytest.mark.parametrize("rubbish", ["{", "[1]", "nonsense", '{"done": "x"}'])
def test_unreadable_notes_count_as_none(rubbish: str) -> None:
    assert notes_of(rubbish, rubbish) == (None, ())
    note = Note(id="j", queue="q", attempt=1, progress=Progress(0.5), lines=(LINE,))
    assert notes_of(*add_note(rubbish, rubbish, note)) == (Progress(0.5), (LINE,))
