"""Idempotency keys: what happens to a hand-in whose key another job has."""

from enum import Enum, StrEnum

from windlass.core.status import WAITING, Status


class OnConflict(StrEnum):
    """What the producer wants if a job stands under its key already."""

    EXISTING = "existing"
    """Its id, and nothing is stored."""
    REPLACE = "replace"
    """Debounce: a waiting one gives way to the newcomer; one that runs or has ended stands."""
    RAISE = "raise"
    """KeyConflict, and nothing of the whole bulk is stored."""


class Verdict(Enum):
    """What the store does about it."""

    ANSWER = "answer with the job that stands"
    REPLACE = "cancel the job that stands, and store the newcomer"
    REFUSE = "store nothing"


def judge(standing: Status | None, wanted: OnConflict) -> Verdict:
    """`standing` is the status of the live job under the key; None: one that ended within its window."""
    if wanted is OnConflict.RAISE:
        return Verdict.REFUSE
    if wanted is OnConflict.REPLACE and standing in WAITING:
        return Verdict.REPLACE
    return Verdict.ANSWER


def replaced_by(id_: str) -> str:
    """The reason that a replaced job is left with."""
    return f"replaced by {id_}"
