"""The identity of this process."""

import os
from functools import cache

_LOADED = os.urandom(8).hex()


class Forks:
    """Counts the forks between this process and the one that loaded this module: a check without a system call."""

    def __init__(self) -> None:
        self.count = 0
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        self.count += 1


FORKS = Forks()


def this_process() -> str:
    """A name of this process, unique across forks and reused process ids."""
    return _name(os.getpid())


@cache
def _name(pid: int) -> str:
    return f"{pid}-{_LOADED}"
