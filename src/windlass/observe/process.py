"""The figures of this process, if they are wanted: a worker with a health port, a server, or `windlass.metrics`."""

import os

from windlass.core.events import Emit
from windlass.observe.calls import count_events, is_behind_server, measure_calls
from windlass.observe.figures import Figures
from windlass.observe.history import record_calls, record_events
from windlass.observe.reading import Reading
from windlass.store.contract import Store

_figures: dict[int, Figures] = {}
"""Figures by process id: a forked child counts from 0."""
_through_server: dict[int, Figures] = {}
"""Figures by process id of jobs that a REST server counts too; only OpenTelemetry reads them."""
_wanted = False


def process_figures() -> Figures | None:
    """The figures of this process; None if they are not wanted."""
    return _figures.get(os.getpid()) or (want_figures() if _wanted else None)


def job_figures(*, through_server: bool) -> Figures | None:
    """The figures in which jobs are counted. A REST server's jobs are on its `/metrics`: only OpenTelemetry shows
    them here.
    """
    if not through_server or not _wanted:
        return process_figures()
    return _through_server.setdefault(os.getpid(), Figures())


def read_all() -> Reading:
    """All figures of this process, with jobs that a REST server counts too."""
    total = Reading()
    for figures in filter(None, (process_figures(), _through_server.get(os.getpid()))):
        total.add(figures.read())
    return total


def is_counting() -> bool:
    """Whether figures are wanted in this process."""
    return _wanted


def want_figures(figures: Figures | None = None) -> Figures:
    """Count from now on, in the given memory if there is none yet."""
    global _wanted
    _wanted = True
    return _figures.setdefault(os.getpid(), figures or Figures())


def watch_store(store: Store, role: str) -> Store:
    """The same store, measured and recorded as far as that is wanted in this process."""
    return record_calls(measure_store(store), role)


def measure_store(store: Store) -> Store:
    """The same store, measured if that is wanted in this process."""
    return measure_calls(store, process_figures(), job_figures(through_server=is_behind_server(store)))


def watch_events(emit: Emit, role: str) -> Emit:
    """The same listener, with events counted and recorded as far as that is wanted in this process."""
    return record_events(count_events(emit, process_figures()), role)
