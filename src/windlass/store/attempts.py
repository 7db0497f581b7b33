"""The ended attempts of a job, as they are kept with it: a list in JSON, bounded."""

from typing import Any

import msgspec

from windlass.core.codec import UNREADABLE
from windlass.core.job import JobError
from windlass.core.moments import Micros
from windlass.core.status import FINISHED, Status

MOST_ATTEMPTS_KEPT = 50
"""Older attempts of a job are forgotten first; the counters still tell how many there were."""


class AttemptRow(msgspec.Struct, frozen=True, omit_defaults=True, rename={"attempt": "n"}):
    """One ended attempt, as kept with its job; moments as the store counts them."""

    attempt: int
    outcome: str
    worker: str | None = None
    claimed_at: Micros | None = None
    started_at: Micros | None = None
    ended_at: Micros | None = None
    error: JobError | None = None


def add_attempt(kept: str | None, entry: AttemptRow) -> str:
    """The list of ended attempts with one more, bounded."""
    entries = [*attempts_of(kept), entry][-MOST_ATTEMPTS_KEPT:]
    return msgspec.json.encode(entries).decode()


def attempts_of(kept: str | None) -> list[AttemptRow]:
    """The ended attempts of a job, oldest first; none if somebody has edited them beyond recognition."""
    try:
        return _decoder.decode(kept) if kept else []
    except UNREADABLE:
        return []


def last_attempt(fields: dict[str, Any]) -> AttemptRow | None:
    """The newest attempt, while only the job's own columns tell of it: it runs, or it just completed."""
    ended = attempts_of(fields["attempts"])
    known = ended[-1].attempt if ended else 0
    if fields["attempt"] <= known or fields["status"] not in FINISHED | {Status.RUNNING}:
        return None
    if fields["claimed_at"] is None:
        return None
    return AttemptRow(
        attempt=fields["attempt"],
        outcome=str(fields["status"]),
        worker=fields["worker"],
        claimed_at=fields["claimed_at"],
        started_at=fields["started_at"],
        ended_at=fields["finished_at"],
    )


_decoder = msgspec.json.Decoder(list[AttemptRow])
