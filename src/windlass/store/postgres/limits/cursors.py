"""Cursors of a limited queue: how far the claims of this process have come, per priority and tenant queue.

Thanks to them, each dead index entry is read only once. A statement that puts a job back invalidates the cursors; and
from time to time, within a small share of the time, a claim begins at the watermarks (see Claims in verbs/claim.py).
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from windlass.core.ids import JobId
from windlass.core.moments import Micros
from windlass.store.postgres.limits.throttle import Rescans

NOWHERE = JobId("00000000-0000-0000-0000-000000000000")
MAX_SEEN = 10_000

Level = tuple[int, str | None]
"""A sort priority, and a tenant queue."""
Seen = tuple[Micros, JobId]


class Candidate(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A locked pending job that may run next."""

    row_ref: str
    """How the claim finds the row again: by its ctid or, in buckets, by its id."""
    id: JobId
    sort_priority: int
    rank: Micros
    tenant_queue: str | None
    cost: int
    key: str | None
    key_rate: str | None


class Cursors:
    """The cursors of one queue."""

    def __init__(self) -> None:
        self._seen: dict[Level, Seen] = {}
        self._returns = -1
        self._rescans = Rescans()
        self.from_watermark = False

    def begin(self, returns: int) -> None:
        """Prepare for a claim; `returns` is the queue's count of jobs that were put back."""
        if returns != self._returns or len(self._seen) > MAX_SEEN:
            self._seen.clear()
            self._returns = returns
        self.from_watermark = self._rescans.due()

    def may_sweep(self) -> bool:
        """Whether a claim that got too few jobs may search from the watermarks as well."""
        if self.from_watermark:
            return False
        self.from_watermark = self._rescans.may_run()
        return self.from_watermark

    def end(self, taken: Iterable[Any], *, fair: bool, flowing: bool) -> None:
        """Advance the cursors past the jobs that a claim took."""
        self._rescans.flowing = flowing
        if self.from_watermark:
            self._rescans.done()
            # Reset, for a claim that ends before it searches.
            self.from_watermark = False
        for job in taken:
            level, seen = (job["sort_priority"], job["tenant_queue"] if fair else None), (job["rank"], job["id"])
            self._seen[level] = max(self._seen.get(level, seen), seen)

    def starts(self, levels: Sequence[tuple[Level, Micros]]) -> list[Seen]:
        """Where to begin at each priority or tenant queue, given the watermarks."""
        if self.from_watermark:
            return [(watermark, NOWHERE) for _, watermark in levels]
        return [max(self._seen.get(level, (watermark, NOWHERE)), (watermark, NOWHERE)) for level, watermark in levels]

    @property
    def farthest(self) -> Micros:
        """The highest rank that was claimed."""
        return max((rank for rank, _ in self._seen.values()), default=0)
