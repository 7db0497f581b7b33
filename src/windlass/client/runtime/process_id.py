"""The identity of this process."""

import os

_LOADED = os.urandom(8).hex()


def this_process() -> str:
    """A name of this process, unique across forks and reused process ids."""
    return f"{os.getpid()}-{_LOADED}"
