"""Versions of jobs: a change may ask that a job is still as it was read."""

from collections.abc import Mapping
from typing import Final
from zlib import crc32

from windlass.core.ids import JobId
from windlass.core.moments import Micros

Versions = Mapping[JobId, str]
"""The required versions, by job."""
ANY_VERSION: Final[Versions] = {}


def version_of(attempt: int, updated_at: Micros, payload: str | bytes | None) -> str:
    """Differs after every change of a job by an attempt or an operator; progress and log lines are no change.

    The payload is part of it because a new one leaves the times of a dead job as they are.
    """
    text = payload.encode(errors="surrogatepass") if isinstance(payload, str) else payload or b""
    return f"{attempt}-{updated_at}-{crc32(text):08x}"
