"""What can go wrong with a database file, whichever library reads it, and the sentence that says what to do."""

from enum import IntEnum
from pathlib import Path

from windlass.errors import StoreUnavailable


class Trouble(IntEnum):
    """The kinds that we tell apart, by SQLite's own numbers."""

    OTHER = 0
    BUSY = 5
    READ_ONLY = 8
    INTERRUPTED = 9
    IO = 10
    DAMAGED = 11
    FULL = 13
    CANNOT_OPEN = 14
    NOT_A_DATABASE = 26


_KNOWN = frozenset(Trouble)
_LASTING = frozenset({Trouble.READ_ONLY, Trouble.CANNOT_OPEN, Trouble.NOT_A_DATABASE, Trouble.DAMAGED})
_REFUSALS = frozenset({Trouble.FULL, Trouble.BUSY})


class DriverError(Exception):
    """An error of the library that reads the file; connections raise this one, so that nobody else names it."""

    def __init__(self, message: str, trouble: Trouble) -> None:
        super().__init__(message)
        self.trouble = trouble


def trouble_of(code: int | None) -> Trouble:
    """The kind of an SQLite result code; extended codes keep the kind in their lowest byte."""
    primary = (code or 0) & 0xFF
    return Trouble(primary) if primary in _KNOWN else Trouble.OTHER


def translate(error: DriverError, path: Path, *, maybe_done: bool = False) -> StoreUnavailable:
    """What went wrong, in a sentence that says what to do about it."""
    sentences = {
        Trouble.BUSY: f"{path} is busy: another program holds its write lock",
        Trouble.FULL: f"the disk of {path} is full",
        Trouble.READ_ONLY: f"{path} cannot be written: check the rights of the file and its folder",
        Trouble.CANNOT_OPEN: f"{path} cannot be opened: check that its folder exists and can be written",
        Trouble.NOT_A_DATABASE: f"{path} is not an SQLite database",
        Trouble.DAMAGED: f"{path} is damaged; restore it from a back-up",
        Trouble.IO: f"reading or writing {path} failed: {error}",
    }
    sentence = sentences.get(error.trouble, f"{path}: {error}")
    # Full and busy are refusals; after a failed write nobody knows what reached the disk.
    unsure = maybe_done and error.trouble not in _REFUSALS
    return StoreUnavailable(sentence, maybe_done=unsure, lasting=error.trouble in _LASTING)
