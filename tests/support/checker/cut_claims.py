"""Claims that failed or whose answer was lost: their rows may have been locked for a while."""

import msgspec

from tests.support.checker.lines import Line


class CutClaim(msgspec.Struct, frozen=True):
    """One of them; `answered` is None if its process died before."""

    pid: int
    queues: tuple[str, ...]
    limit: int
    invoked: int
    answered: int | None


def cut_claim(asked: Line, answered: int | None) -> CutClaim:
    """From the line that asked."""
    return CutClaim(asked["pid"], tuple(asked.get("queues", ())), asked.get("limit", 0), asked["at"], answered)
