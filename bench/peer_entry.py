"""A peer as the bench knows it before it runs."""

import msgspec

from bench.report.figures import Target


class PeerRun(msgspec.Struct, frozen=True):
    """A peer's part in one measurement: jobs for 5 to 15 seconds of a drain, and the target against it."""

    jobs: int
    target: Target | None = None
    note: str = ""
    """What it does, in words, where peers differ."""


class PeerEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A peer: its package, which also names its environment, its script, and its measurements."""

    name: str
    package: str
    script: str
    node: bool = False
    server: int = 0
    """The oldest version of the server that it runs on."""
    group: PeerRun | None = None
    drain: PeerRun | None = None
    threads: PeerRun | None = None
    bulk: PeerRun | None = None
    single: PeerRun | None = None
    loads: bool = False
    """Whether its producer can enqueue at a steady rate."""
    keeps: bool = True
    """Whether a job survives the worker that has taken it: only such peers set targets for latency."""
    note: str = ""
