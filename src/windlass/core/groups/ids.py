"""Ids of a group, its members and its callbacks: each follows from the group's id, so an enqueue can be repeated.

They are UUIDs of version 8: 48 bits of the group, the kind, 50 bits of the group's hash, and 20 bits for the index.
Ids of members therefore sort by index. Those of members that members added come next, with a hash in place of the
index, then the callbacks.
"""

from enum import IntEnum
from functools import lru_cache
from hashlib import sha256
from uuid import UUID

from uuid_utils import uuid7

from windlass.core.ids import JobId

GROUP_TYPE = "windlass.group"
"""The type of a group's own job."""
MEMBER_TYPE = "windlass.member"
"""The type of a member that represents another job, such as the last link of a chain: it gets that job's result."""
MAX_MEMBERS = 1_000_000
_INDEX_BITS = 20
_LOW = (1 << 62) - 1


class _Kind(IntEnum):
    GROUP = 1
    MEMBER = 2
    ADDED = 3
    ROLE = 4
    LINK = 5


class Role(IntEnum):
    """What a job of a group is for; the number is part of the ids."""

    THEN = 0
    ON_DEAD = 1
    ALWAYS = 2


def new_group_id() -> JobId:
    """A new id; ids made later sort later."""
    return _made(int(str(uuid7()).replace("-", ""), 16), _Kind.GROUP)


def named_group_id(name: str) -> JobId:
    """The id of the group with this name: always the same, and above all ids that begin with a time."""
    return _made(_hash(f"windlass group\0{name}") | 1 << 127, _Kind.GROUP)


def is_group_id(id_: JobId) -> bool:
    """Whether an id has the form of a group's id; only the job's type is certain."""
    return id_[14:16] == "81"


def is_of_group(id_: JobId) -> bool:
    """Whether an id has the form of a group's or of one of its jobs; only the job itself is certain."""
    return id_[14:15] == "8"


def member_id(group: JobId, index: int) -> JobId:
    """The id of the member with this index, from 0."""
    return f"{_member_prefix(group)}{index:05x}"


@lru_cache(maxsize=1024)
def _member_prefix(group: JobId) -> str:
    return _derived(group, _Kind.MEMBER, 0)[:-5]


def member_index(group: JobId, id_: JobId) -> int | None:
    """The index of a member; None if the job is not a member of this group."""
    is_member = is_group_id(group) and id_[:-5] == _member_prefix(group)
    return int(id_[-5:], 16) if is_member else None


def added_id(group: JobId, adder: JobId, what: str) -> JobId:
    """The id of a member that a member added: the same if an attempt of the adder adds the same job again."""
    hashed = _hash(f"{group} {adder} {what}") & _LOW
    return _made(UUID(_derived(group, _Kind.ADDED, 0)).int >> 64 << 64 | hashed, _Kind.ADDED)


def is_member_id(group: JobId, id_: JobId) -> bool:
    """Whether a child of this group is a member, with an index or added by a member; a callback is not."""
    if not is_group_id(group):
        return False
    return id_[:-5] == _member_prefix(group) or id_[:18] == _added_prefix(group)


@lru_cache(maxsize=1024)
def _added_prefix(group: JobId) -> str:
    return _derived(group, _Kind.ADDED, 0)[:18]


def link_id(seed: str, number: int) -> JobId:
    """The id of a job behind a member: derived from the member and the job's number in its chain."""
    return _made(_hash(f"windlass link\0{seed}/{number}"), _Kind.LINK)


def family(id_: JobId) -> str | None:
    """A text that members of one group share, and rarely members of another group of the same millisecond; None: no
    group.
    """
    if not is_of_group(id_):
        return None
    match id_[15:16]:
        case "2":
            return id_[:-5]
        case "3":
            return id_[:18]
        case "1" | "5":
            return id_
    return None


def group_of(id_: JobId, parent: JobId | None, flow: str | None) -> JobId | None:
    """The group of a member, or of a job behind a member; None for other jobs."""
    if parent is not None and is_member_id(parent, id_):
        return parent
    is_behind = id_[14:16] == f"8{_Kind.LINK:x}" and flow is not None and is_group_id(flow)
    return flow if is_behind else None


def watcher_id(group: JobId, role: Role) -> JobId:
    """The id of the job that decides whether a callback runs; for `then`, the group itself."""
    return group if role is Role.THEN else _derived(group, _Kind.ROLE, role)


def callback_id(group: JobId, role: Role) -> JobId:
    """The id of a callback."""
    return _derived(group, _Kind.ROLE, 16 + role)


def is_role_id(group: JobId, id_: JobId) -> bool:
    """Whether the job is a callback of this group, or decides whether one runs; the group itself decides about
    `then`.
    """
    return id_[14:16] == f"8{_Kind.ROLE:x}" and id_[:-5] == _derived(group, _Kind.ROLE, 0)[:-5]


def before_member(group: JobId, index: int) -> JobId:
    """The highest id that sorts before this member, from which a list begins with it."""
    return before(member_id(group, index))


def before_added(group: JobId) -> JobId:
    """The highest id that sorts before the members that members added."""
    return member_id(group, (1 << _INDEX_BITS) - 1)


def before(id_: JobId) -> JobId:
    """The highest id that sorts before this one."""
    return str(UUID(int=UUID(id_).int - 1))


def _derived(group: JobId, kind: _Kind, number: int) -> JobId:
    digest = _hash(group)
    prefix = UUID(group).int >> 80 << 80
    low = digest & _LOW & -(1 << _INDEX_BITS) | number
    return _made(prefix | digest & (0xFF << 64) | low, kind)


def _hash(text: str) -> int:
    return int.from_bytes(sha256(text.encode()).digest()[:16])


def _made(bits: int, kind: _Kind) -> JobId:
    """The UUID, with the version, the kind and the variant of RFC 9562."""
    bits &= ~(0xFF << 72 | 0b11 << 62)
    return str(UUID(int=bits | 0x8 << 76 | kind << 72 | 0b10 << 62))
