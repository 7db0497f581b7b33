"""How one worker behaves."""

from collections.abc import Iterable, Iterator

import msgspec

from windlass.core.moments import SECOND, Micros
from windlass.core.names import check_name
from windlass.errors import ConfigError, InvalidName

MAX_SLOTS = 10_000
MAX_PROCESSES = 256


class WorkerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of `windlass worker`; the durations are in microseconds."""

    app: str
    modules: tuple[str, ...] = ()
    """Modules that a handler process imports besides the app's: an embedded worker's tasks may be anywhere."""
    embedded: bool = False
    """Whether it runs in the caller's process, which outlives the worker."""
    queues: dict[str, int | None] = {}
    """Queue → max slots in each runner. Empty: every queue that the app names."""
    concurrency: int = 10
    processes: int = 1
    lease: Micros = 30 * SECOND
    drain: Micros = 30 * SECOND
    health: tuple[str, int] | None = None
    recycle_jobs: int = 1000
    """A handler process is replaced after this many jobs."""
    recycle_memory: int | None = None
    """… or when it has grown beyond this many bytes, if it started smaller."""
    until_empty: bool = False
    verbose: bool = False
    log_format: str = "text"
    """text, json or logfmt."""
    server: str = ""
    """A REST server to work through; empty: the app's store."""
    token: str = ""
    """The server's token, for an embedded worker. Other processes read it from the environment, which is private."""

    @property
    def beat(self) -> Micros:
        """The time between two renewals: a third of the lease."""
        return self.lease // 3

    def problems(self, dashes: str = "--") -> Iterator[str]:
        """Every problem with these settings; in Python the options have no dashes."""
        if not 1 <= self.concurrency <= MAX_SLOTS:
            yield f"{dashes}concurrency must be from 1 to {MAX_SLOTS}, not {self.concurrency}"
        if not 1 <= self.processes <= MAX_PROCESSES:
            yield f"{dashes}processes must be from 1 to {MAX_PROCESSES}, not {self.processes}"
        if self.lease < SECOND // 2:
            yield f"{dashes}lease must be at least 500ms, not {self.lease / SECOND:g}s"
        if self.recycle_jobs < 1:
            yield f"{dashes}recycle-jobs must be at least 1, not {self.recycle_jobs}"
        if self.recycle_memory is not None and self.recycle_memory < 1:
            yield f"{dashes}recycle-memory must be at least 1 byte, not {self.recycle_memory}"
        for queue, most in self.queues.items():
            if most is not None and not 1 <= most <= self.concurrency:
                yield f"{dashes}queues {queue}:{most} must be from 1 to {dashes}concurrency ({self.concurrency})"

    def checked(self, dashes: str = "--") -> "WorkerConfig":
        """The settings themselves, or a ConfigError with every problem."""
        problems = list(self.problems(dashes))
        if problems:
            raise ConfigError(problems)
        return self


def parse_queues(parts: Iterable[str], option: str = "--queues") -> dict[str, int | None]:
    """["mail", "images:4"] → {"mail": None, "images": 4}, in that order."""
    queues: dict[str, int | None] = {}
    for part in parts:
        name, colon, most = part.strip().partition(":")
        try:
            check_name(name, option)
        except InvalidName as error:
            raise ConfigError(str(error)) from None
        if colon and not most.isdecimal():
            raise ConfigError(f"{option}: {part!r} should be a name, or name:slots")
        if name in queues:
            raise ConfigError(f"{option} names {name!r} twice")
        queues[name] = int(most) if colon else None
    if not queues:
        raise ConfigError(f"{option} names no queue")
    return queues
