"""Idempotency keys without a live job or window: the same findings on every store."""

from collections.abc import Callable, Sequence

import msgspec

from windlass.core.ids import JobId
from windlass.store.doctor import Finding, ok, problem

CHECK = "idempotency keys"
PORTION = 1000
"""Keys checked by one statement."""
MAX_NAMED = 5


class OrphanedKey(msgspec.Struct, frozen=True):
    """A key whose job has ended or is gone, and which nothing will free."""

    queue: str
    hash: str
    job: JobId


def conclude(seen: int, left: Sequence[OrphanedKey], repair: Callable[[OrphanedKey], str]) -> list[Finding]:
    """The findings. `repair` is the statement that frees one such key."""
    if not left:
        return [ok(CHECK, f"each of {seen:,} keys belongs to a live job, or to a window that is open")]
    found = [
        problem(
            CHECK,
            f"queue {each.queue!r}: job {each.job} holds its key for ever, though it has ended or is gone; "
            "a job that is enqueued with that key is not stored, and returns it",
            f"free the key: {repair(each)}",
        )
        for each in left[:MAX_NAMED]
    ]
    if rest := len(left) - len(found):
        found.append(problem(CHECK, f"{rest:,} more keys are held so", "free these, and look again"))
    return found
