"""The identity of this process."""

import os
from functools import cache

_LOADED = os.urandom(8).hex()


def this_process() -> str:
    """A name of this process, unique across forks and reused process ids."""
    return _name(os.getpid())


@cache
def _name(pid: int) -> str:
    return f"{pid}-{_LOADED}"
