"""Which SQLite the stdlib was built with: some are too old for our statements, many can damage a file."""

import logging
from functools import cache

from windlass.errors import ConfigError

OLDEST = (3, 38, 0)
"""The first with all that our statements use: JSON built in, RETURNING, format()."""
MENDED = (3, 51, 3)

Version = tuple[int, ...]


def shown(version: Version) -> str:
    """A version as people write it."""
    return ".".join(map(str, version))


def check_version(version: Version) -> None:
    """Refuse a library that is too old; warn, once in a process, of one that can damage a file."""
    if version < OLDEST:
        raise ConfigError(
            f"driver=sqlite3: this Python has SQLite {shown(version)}, the oldest that Windlass can use is "
            f"{shown(OLDEST)}: leave the option out (apsw brings its own), or use a newer Python"
        )
    if can_damage(version):
        _warn(version)


def can_damage(version: Version) -> bool:
    """Whether a checkpoint of one connection and a write of another, at the same moment, can damage the file."""
    return (3, 7, 0) <= version < MENDED


@cache
def _warn(version: Version) -> None:
    logging.getLogger("windlass").warning(
        "driver=sqlite3: this Python has SQLite %s. Versions 3.7.0 to 3.51.2 can, very rarely, damage a file that "
        "several connections write; Windlass lets only one of them tidy up at a time. A Python with SQLite %s or "
        "newer is safe, and so is the default driver",
        shown(version),
        shown(MENDED),
    )
