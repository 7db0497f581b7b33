"""What helps, and may take long while somebody holds an old snapshot: it is done only a small part of the time."""

from windlass.core.moments import SECOND, Micros
from windlass.store.clock import since_boot

SHARE = 20
"""Of so many parts of the time it may take one, once it takes long."""
LONG: Micros = SECOND // 100
LONGEST: Micros = 60 * SECOND
"""Then it is done again, however long it took: a process that was stopped meanwhile must not spare it for hours."""
WEIGHT = 4
"""Of so many times the last counts as one in what is usual."""


class Sparing:
    """One such thing, of one process."""

    def __init__(self) -> None:
        self._began = 0
        self._again = 0
        self._usual: float = 0.0

    def may(self) -> bool:
        """Whether it may be done now; if so, say `done` afterwards."""
        self._began = since_boot()
        return self._began >= self._again

    def done(self) -> None:
        """It was done: how long it took since it was asked for tells when it may be done again."""
        ended = since_boot()
        taken = ended - self._began
        # Once does not count: a plan was made, or the machine was busy.
        self._usual += (taken - self._usual) / WEIGHT
        self._again = ended + min(SHARE * taken, LONGEST) if min(taken, self._usual) > LONG else 0
