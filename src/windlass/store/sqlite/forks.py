"""Forks: SQLite keeps a table of its locks in the process, and a fork copies it.

The child's own connections then believe that they hold locks which the kernel has left to the parent: it would write
into a log that others delete. So at the moment of a fork nothing is open, in any store of the process.
"""

import os
import weakref
from typing import Protocol


class Forkable(Protocol):
    """Whatever has connections."""

    def before_fork(self) -> None: ...

    def after_fork(self) -> None: ...


_open: "weakref.WeakSet[Forkable]" = weakref.WeakSet()
"""Of the whole process, as a fork is."""


def stay_out_of_forks(what: Forkable) -> None:
    """Have it close what it has before this process forks."""
    _open.add(what)


def _before() -> None:
    for each in list(_open):
        each.before_fork()


def _after() -> None:
    for each in list(_open):
        each.after_fork()


os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)
