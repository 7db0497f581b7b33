"""The identity of this process."""

import os

_LOADED = os.urandom(8).hex()


class Forks:
    """Counts the forks between this process and the one that loaded this module: a check without a system call."""

    def __init__(self) -> None:
        self.count = 0
        self.name = _name()
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        self.count += 1
        self.name = _name()


def _name() -> str:
    return f"{os.getpid()}-{_LOADED}"


FORKS = Forks()


def this_process() -> str:
    """A name of this process, unique across forks and reused process ids."""
    return FORKS.name
