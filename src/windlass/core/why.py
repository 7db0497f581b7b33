"""Why a job does not run, or how it goes with it while it does: an answer for every status, never an empty one."""

from datetime import datetime

import msgspec

from windlass.core.circumstances import Circumstances
from windlass.core.estimate import Estimate, estimate
from windlass.core.ids import JobId
from windlass.core.moments import to_datetime
from windlass.core.reason import Reason
from windlass.core.status import FINISHED, Status
from windlass.core.why_not import ended, origin, waits
from windlass.core.why_running import runs


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """Why a job does not run, the gravest reason first; or how it goes with it, or how it ended."""

    id: JobId
    type: str
    queue: str
    status: Status
    at: datetime
    """When this was so, by the store's clock."""
    reasons: tuple[Reason, ...]
    """Never empty."""
    estimated_start: datetime | None = None
    """Of a waiting job; None: nobody can tell, and `basis` says why not."""
    earliest: datetime | None = None
    latest: datetime | None = None
    """None beside an estimate: there is no telling how late it may be."""
    basis: str | None = None
    """How the start was estimated, or why it was not, in words."""

    @property
    def first(self) -> Reason:
        """What holds it most."""
        return self.reasons[0]


def explain(facts: Circumstances) -> Why:
    """The answer from the facts."""
    job = facts.job
    start = Estimate()
    if job.status in FINISHED:
        reasons = [ended(facts)]
    elif job.status is Status.RUNNING:
        reasons = runs(facts)
    else:
        start = estimate(facts)
        reasons = waits(facts, start)
    return Why(
        id=job.id,
        type=job.type,
        queue=job.queue,
        status=job.status,
        at=to_datetime(facts.now),
        reasons=(*reasons, *origin(facts)),
        estimated_start=_moment(start.start),
        earliest=_moment(start.earliest),
        latest=_moment(start.latest),
        basis=start.basis,
    )


def _moment(micros: int | None) -> datetime | None:
    return None if micros is None else to_datetime(micros)
