"""The figures of this process, if they are wanted: a worker with a health port, a server, or `windlass.metrics`."""

import os

from windlass.observe.figures import Figures

_figures: dict[int, Figures] = {}
"""By process: a fork does not go on with the counts of its parent."""
_wanted = False


def process_figures() -> Figures | None:
    """The figures of this process; None if nobody asked for them."""
    return _figures.get(os.getpid()) or (want_figures() if _wanted else None)


def want_figures(figures: Figures | None = None) -> Figures:
    """Count from now on, in the given memory if there is none yet."""
    global _wanted
    _wanted = True
    return _figures.setdefault(os.getpid(), figures or Figures())
