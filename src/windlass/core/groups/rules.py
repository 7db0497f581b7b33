"""What the end of a member means for its group, and when each callback runs. Pure.

The tables are in docs/guides/groups.md; `tests/client/test_failure_tables.py` and `test_retry_tables.py` read them.
"""

from enum import Enum

import msgspec

from windlass.core.groups.ids import Role
from windlass.core.groups.need import Need
from windlass.core.ids import JobId, is_id
from windlass.core.moments import SECOND, Micros, show_duration
from windlass.core.status import FINISHED, Status

STORED_WITHIN: Micros = 60 * SECOND
"""How long an enqueue that is stored in portions may take to store every job; more with MEMBER_STORED_WITHIN."""
MEMBER_STORED_WITHIN: Micros = SECOND // 500
"""Added to it for each job: on a busy Redis, 100,000 members take half a minute."""
ABANDONED_AFTER: Micros = 3600 * SECOND
"""An open group to which nothing was added for this time is abandoned: its producer has ended."""
ABANDONED = "abandoned: it was not sealed, and nothing was added for an hour"
MIN_POLL, MAX_POLL = 2.0, 30.0
"""Seconds until a group runs again, if no end of a member wakes it before."""
LOST_NOTE = "{} did not complete"
"""The note of a group's progress, once a member is lost."""


class MemberState(Enum):
    """What a member counts as."""

    LIVE = "live"
    COMPLETED = "completed"
    LOST = "lost"


def stored_within(size: int) -> Micros:
    """The age of a group or graph from which on a job that is unknown was dropped, or will never be stored."""
    return STORED_WITHIN + size * MEMBER_STORED_WITHIN


def member_state(status: Status | None, outcome: str | None, *, stored: bool) -> MemberState:
    """What a member with this status counts as. Without one it is not stored; `outcome` is its tombstone's, if any.

    `stored`: the group is older than `stored_within`.
    """
    if status is not None:
        if status is Status.COMPLETED:
            return MemberState.COMPLETED
        return MemberState.LOST if status in FINISHED else MemberState.LIVE
    if outcome is None:
        return MemberState.LOST if stored else MemberState.LIVE
    return MemberState.COMPLETED if outcome == Status.COMPLETED else MemberState.LOST


class Verdict(Enum):
    """The decision about the job that watches a group for a callback."""

    WAIT = "wait"
    RUN = "run the callback"
    CANCEL = "cancel the callback"


def verdict(role: Role, *, ended: bool, lost: bool, skipped: bool = False) -> Verdict:
    """The decision. `ended`: no member is live, and none can be added; `lost`: more are lost than `need` allows."""
    if skipped:
        return Verdict.CANCEL
    match role:
        case Role.THEN:
            return Verdict.CANCEL if lost else Verdict.RUN if ended else Verdict.WAIT
        case Role.ON_DEAD:
            return Verdict.RUN if lost else Verdict.CANCEL if ended else Verdict.WAIT
        case Role.ALWAYS:
            return Verdict.RUN if ended else Verdict.WAIT


def seconds_until_next_look(looks: int) -> float:
    """How soon a group finds the end of a member that no runner reported; longer after many looks."""
    return min(MIN_POLL * 1.1 ** min(looks, 100), MAX_POLL)


def member_ended_reason(member: JobId, index: int | None, status: Status | None) -> str:
    """The reason of a group that is cancelled because a member is lost; without an index a member added it."""
    origin = "added by a member" if index is None else f"index {index}"
    return f"its member {member} is {status or 'not kept any more'} ({origin})"


SKIPPED = "its group is skipped"


def too_late_reason(within: Micros) -> str:
    """The reason of a group that is cancelled because its time is over."""
    return f"it was not over within {show_duration(within)}"


def too_few_reason(need: Need, size: int) -> str:
    """The reason of a group that is cancelled because it has fewer members than it needs."""
    return f"it needs {need} completed members, and has {size}"


def member_in_reason(reason: str | None) -> JobId | None:
    """The member because of which a group was cancelled, from the reason; None if there is none."""
    words = (reason or "").split(" ")
    return words[2] if words[:2] == ["its", "member"] and len(words) > 3 and is_id(words[2]) else None


class GroupPayload(msgspec.Struct, frozen=True, omit_defaults=True):
    """The arguments of a job that watches a group."""

    group: JobId
    size: int
    """0 for an open group: its document has the size once it is sealed."""
    role: int = Role.THEN
    as_list: bool = False
    """Whether its result is the list of all results, instead of a reference to them."""
    name: str = ""
    """The name that its producer gave it."""
    need: Need = None
    """How many members must complete."""
    rest: str = "finish"
    """What becomes of waiting members of a lost group: `finish` or `cancel`."""
    within: Micros = 0
    """How long it may take from its enqueue; 0: no limit."""
    max_running: int = 0
    """How many members may run at once; 0: no limit."""
    open: bool = False
    """Whether it was stored before all of its members."""


def noted_loss(note: str | None) -> int | None:
    """The number of lost members in the note of a group's progress; None if it does not say."""
    lost = (note or "").split(" ")[0]
    return int(lost) if lost.isdecimal() else None
