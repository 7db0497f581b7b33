"""Ids of a group, its members and its callbacks: each follows from the group's id, so an enqueue can be repeated.

They are UUIDs of version 8: 48 bits of the group, the kind, 50 bits of the group's hash, and 20 bits for the index.
Ids of members therefore sort by index, before those of the callbacks.
"""

from enum import IntEnum
from functools import lru_cache
from hashlib import sha256
from uuid import UUID

from uuid_utils import uuid7

from windlass.core.ids import JobId

GROUP_TYPE = "windlass.group"
"""The type of the job that a group is."""
MAX_MEMBERS = 1_000_000
_INDEX_BITS = 20
_LOW = (1 << 62) - 1


class _Kind(IntEnum):
    GROUP = 1
    MEMBER = 2
    ROLE = 3


class Role(IntEnum):
    """What a job of a group is for; the number is part of the ids."""

    THEN = 0
    ON_DEAD = 1
    ALWAYS = 2


def new_group_id() -> JobId:
    """A new id; ids made later sort later."""
    return _made(int(str(uuid7()).replace("-", ""), 16), _Kind.GROUP)


def named_group_id(name: str) -> JobId:
    """The id of the group with this name: always the same."""
    return _made(int.from_bytes(sha256(b"windlass group\0" + name.encode()).digest()[:16]), _Kind.GROUP)


def is_group_id(id_: JobId) -> bool:
    """Whether an id looks like that of a group; only the job's type tells for sure."""
    return id_[14:16] == "81"


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


def watcher_id(group: JobId, role: Role) -> JobId:
    """The id of the job that decides whether a callback runs: of `then`, the group itself."""
    return group if role is Role.THEN else _derived(group, _Kind.ROLE, role)


def callback_id(group: JobId, role: Role) -> JobId:
    """The id of a callback."""
    return _derived(group, _Kind.ROLE, 16 + role)


def before_member(group: JobId, index: int) -> JobId:
    """The highest id that sorts before this member: where a list of it and those after it begins."""
    return str(UUID(int=UUID(member_id(group, index)).int - 1))


def _derived(group: JobId, kind: _Kind, number: int) -> JobId:
    digest = int.from_bytes(sha256(group.encode()).digest()[:16])
    prefix = UUID(group).int >> 80 << 80
    low = digest & _LOW & -(1 << _INDEX_BITS) | number
    return _made(prefix | digest & (0xFF << 64) | low, kind)


def _made(bits: int, kind: _Kind) -> JobId:
    """With the version, the kind and the variant of RFC 9562 in their places."""
    bits &= ~(0xFF << 72 | 0b11 << 62)
    return str(UUID(int=bits | 0x8 << 76 | kind << 72 | 0b10 << 62))
