"""A REST worker as a server knows it."""

import msgspec

from windlass.core.ids import JobId, runner_id
from windlass.core.jobs.job import Claimed
from windlass.core.moments import Micros
from windlass.errors import WindlassError
from windlass.store.records import WorkerInfo

PREFIX = "rest-"


class WorkerNotFound(WindlassError):
    """There is no such REST worker, or another token opened it."""

    code = "worker_not_found"

    def __init__(self, id_: str) -> None:
        super().__init__(f"there is no REST worker {id_!r} of this token")


class Given(msgspec.Struct, frozen=True):
    """An attempt that was given to a worker, and when."""

    job: Claimed
    since: Micros


class RestWorker(msgspec.Struct, eq=False):
    """A worker as this server knows it."""

    id: str
    owner: str
    info: WorkerInfo | None = None
    """None: it has claimed only through other servers."""
    heard_at: Micros = 0
    signed_at: Micros = -1
    """When this server last renewed its lease and its registration, for a call before."""
    polls: int = 0
    """Its open claims."""
    latest: int = -1
    """The highest number of its claims here."""
    given: int = -1
    """The number of its last claim that got jobs here."""
    claimed: dict[tuple[JobId, int], Given] = {}
    """Jobs that it got from this server, and has not settled here."""
    alone: tuple[JobId, int] | None = None
    """The suspect that it runs: nothing else is given out beside it."""
    wants_alone: bool = False
    """Whether a suspect waits until it holds nothing."""

    @property
    def runner(self) -> str:
        """The id under which the store knows its lease."""
        return runner_id(PREFIX + self.id, 1)
