"""This process, as it is told from all others."""

import os

_LOADED = os.urandom(8).hex()


def this_process() -> str:
    """A name of this process; its children have others, and numbers alone are used again."""
    return f"{os.getpid()}-{_LOADED}"
