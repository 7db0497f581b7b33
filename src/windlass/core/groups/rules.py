"""What the end of a member means for its group, and when each callback runs. Pure.

| a member is | counts as | `then` | `on_dead` | `always` |
|---|---|---|---|---|
| completed | completed | runs after the last | cancelled after the last | runs after the last |
| dead, cancelled, expired, replaced | lost | as below | as below | runs after the last |
| failed, crashed, snoozed, requeued | live | waits | waits | waits |
| deleted or pruned, was completed | completed | as completed | as completed | as completed |
| deleted or pruned, was not | lost | as dead | as dead | as dead |
| another job, which has its key | as that job | as that job | as that job | as that job |
| not stored, in the first minute | live | waits | waits | waits |
| not stored, later | lost | as dead | as dead | as dead |

| the group | `then` | `on_dead` | `always` |
|---|---|---|---|
| has lost more members than `need` allows | cancelled at once | runs at once | runs after the last |
| has lost fewer, and all have ended | runs | cancelled | runs |
| is open: more members may come | waits | runs only if `need` is all | waits |
| was not over `within` its time | as if live members were lost, which are cancelled | the same | the same |
| is abandoned: open, and untouched for an hour | cancelled | runs | runs after the last |
| is cancelled | cancelled | cancelled | runs after the last |
"""

from enum import Enum

import msgspec

from windlass.core.groups.ids import Role
from windlass.core.groups.need import Need
from windlass.core.ids import JobId, is_id
from windlass.core.moments import SECOND, Micros, show_duration
from windlass.core.status import FINISHED, Status

STORED_WITHIN: Micros = 60 * SECOND
"""How long an enqueue over several queues may take to store every member."""
ABANDONED_AFTER: Micros = 3600 * SECOND
"""An open group to which nothing was added for this time is given up: its producer is gone."""
ABANDONED = "abandoned: it was not sealed, and nothing was added for an hour"
MIN_POLL, MAX_POLL = 2.0, 30.0
"""Seconds until a group is looked at again, if no end of a member asks for it before."""
LOST_NOTE = "{} did not complete"
"""The note of a group's progress, once a member is lost."""


class MemberState(Enum):
    """What a member counts as."""

    LIVE = "live"
    COMPLETED = "completed"
    LOST = "lost"


def member_state(status: Status | None, outcome: str | None, age: Micros) -> MemberState:
    """A member with this status; without one it is not stored, and `outcome` is that of its tombstone, if any.

    `age` is that of the group.
    """
    if status is not None:
        if status is Status.COMPLETED:
            return MemberState.COMPLETED
        return MemberState.LOST if status in FINISHED else MemberState.LIVE
    if outcome is None:
        return MemberState.LIVE if age < STORED_WITHIN else MemberState.LOST
    return MemberState.COMPLETED if outcome == Status.COMPLETED else MemberState.LOST


class Verdict(Enum):
    """What becomes of the job that watches a group for a callback."""

    WAIT = "wait"
    RUN = "run the callback"
    CANCEL = "cancel the callback"


def verdict(role: Role, *, ended: bool, lost: bool) -> Verdict:
    """`ended`: no member is live, and none can be added; `lost`: more are lost than `need` allows."""
    match role:
        case Role.THEN:
            return Verdict.CANCEL if lost else Verdict.RUN if ended else Verdict.WAIT
        case Role.ON_DEAD:
            return Verdict.RUN if lost else Verdict.CANCEL if ended else Verdict.WAIT
        case Role.ALWAYS:
            return Verdict.RUN if ended else Verdict.WAIT


def seconds_until_next_look(looks: int) -> float:
    """Short at first, longer for groups that last: an end that no runner reported is found within this time."""
    return min(MIN_POLL * 1.1 ** min(looks, 100), MAX_POLL)


def member_ended_reason(member: JobId, index: int | None, status: Status | None) -> str:
    """The reason of a group that is cancelled because a member is lost; without an index a member added it."""
    place = "added by a member" if index is None else f"index {index}"
    return f"its member {member} is {status or 'not kept any more'} ({place})"


def too_late_reason(within: Micros) -> str:
    """The reason of a group that is cancelled because its time is over."""
    return f"it was not over within {show_duration(within)}"


def too_few_reason(need: Need, size: int) -> str:
    """The reason of a group that is cancelled because it has fewer members than it needs."""
    return f"it needs {need} completed members, and has {size}"


def member_in_reason(reason: str | None) -> JobId | None:
    """The member because of which a group was cancelled, if any."""
    words = (reason or "").split(" ")
    return words[2] if words[:2] == ["its", "member"] and len(words) > 3 and is_id(words[2]) else None


class GroupPayload(msgspec.Struct, frozen=True, omit_defaults=True):
    """The arguments of a job that watches a group."""

    group: JobId
    size: int
    """0 of an open group: its document has the size once it is sealed."""
    role: int = Role.THEN
    as_list: bool = False
    """Whether its result is the list of all results, instead of a reference to them."""
    name: str = ""
    """As its producer calls it."""
    need: Need = None
    """How many members must complete."""
    rest: str = "finish"
    """What becomes of waiting members of a lost group: `finish` or `cancel`."""
    within: Micros = 0
    """How long it may take from its enqueue on; 0: any time."""
    max_running: int = 0
    """How many members may run at once; 0: any number."""
    open: bool = False
    """Whether it was stored before all of its members."""


def noted_loss(note: str | None) -> int | None:
    """The number of lost members in the note of a group's progress; None if it does not say."""
    lost = (note or "").split(" ")[0]
    return int(lost) if lost.isdecimal() else None
