"""Workers as they are registered: what one says of itself in JSON, the times as the store counts them."""

import msgspec

from windlass.core.moments import SECOND, Micros, to_datetime
from windlass.store.records import WorkerInfo

SILENT_AFTER: Micros = 60 * SECOND
"""A worker that did not vouch and says nothing for so long is not counted as alive."""

_info = msgspec.json.Decoder(WorkerInfo)


def info_of(stored: str) -> WorkerInfo:
    """What a worker said of itself."""
    return _info.decode(stored)


def to_worker(info: str, started_at: Micros, beat_at: Micros, running: int) -> WorkerInfo:
    """A worker as it is listed, with the number of jobs that it holds now."""
    times = {"started_at": to_datetime(started_at), "beat_at": to_datetime(beat_at)}
    return msgspec.structs.replace(info_of(info), running=running, **times)
