"""Idempotency keys: what an enqueue does if another job has its key."""

from enum import Enum, StrEnum

from windlass.core.status import WAITING, Status


class OnConflict(StrEnum):
    """What an enqueue does if another job has its key."""

    EXISTING = "existing"
    """Return its id; store nothing."""
    REPLACE = "replace"
    """Debounce: the new job replaces a waiting one; a running or finished one stays."""
    RAISE = "raise"
    """Raise KeyConflict; nothing of the batch is stored."""


class KeyDecision(Enum):
    """The store's action on a conflict."""

    RETURN_EXISTING = "return the existing job"
    REPLACE = "cancel the existing job, and store the new one"
    REFUSE = "store nothing"


def decide_key(existing: Status | None, wanted: OnConflict) -> KeyDecision:
    """The decision; `existing` is the status of the live job with the key, None for one that ended within its
    window.
    """
    if wanted is OnConflict.RAISE:
        return KeyDecision.REFUSE
    if wanted is OnConflict.REPLACE and existing in WAITING:
        return KeyDecision.REPLACE
    return KeyDecision.RETURN_EXISTING


def replaced_by(id_: str) -> str:
    """The reason of a replaced job."""
    return f"replaced by {id_}"
