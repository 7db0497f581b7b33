"""Hogs: code in this process that holds the interpreter for long, such as a handler deep in a C function.

Each of a writer's statements waits for a hog. In the midst of a transaction every other process would wait as well,
because a database file has one writer at a time. So it is the hog's own process that waits, before it takes its turn.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

SLOW_SECONDS = 0.25
"""A transaction that took longer makes us look for a hog before the next one; looking costs a millisecond."""
SOON_SECONDS = 0.05
PATIENCE_SECONDS = 5.0
"""Then we write in spite of it: outcomes must not wait for ever."""


class Hogs:
    """What one writer knows about them; used by its one thread."""

    def __init__(self) -> None:
        self.suspected = False
        """Whether it is worth looking for one."""

    @contextmanager
    def noticed(self) -> Iterator[None]:
        """Round a transaction: suspect a hog if it takes long."""
        begun = time.monotonic()
        try:
            yield
        finally:
            self.suspected = time.monotonic() - begun > SLOW_SECONDS

    def let_pass(self) -> None:
        """Wait while there is one; without a suspicion there is nothing to wait for."""
        end = time.monotonic() + PATIENCE_SECONDS
        while self.suspected and (asked := time.monotonic()) < end:
            time.sleep(0.001)  # long enough for whoever wants the interpreter to take it
            self.suspected = time.monotonic() - asked > SOON_SECONDS
