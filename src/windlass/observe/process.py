"""The figures of this process, if they are wanted: a worker with a health port, a server, or `windlass.metrics`."""

import os

from windlass.core.events import Emit
from windlass.observe.calls import count_events, measure_calls
from windlass.observe.figures import Figures
from windlass.observe.history import record_calls, record_events
from windlass.store.contract import Store

_figures: dict[int, Figures] = {}
"""By process id: a forked child counts from 0."""
_wanted = False


def process_figures() -> Figures | None:
    """The figures of this process; None if they are not wanted."""
    return _figures.get(os.getpid()) or (want_figures() if _wanted else None)


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
    return record_calls(measure_calls(store, process_figures()), role)


def watch_events(emit: Emit, role: str) -> Emit:
    """The same listener, with events counted and recorded as far as that is wanted in this process."""
    return record_events(count_events(emit, process_figures()), role)
