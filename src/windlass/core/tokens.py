"""Tokens of the REST server: their text, what is kept of it, and what they allow.

The text is `wl_`, the token's id and a secret of 256 random bits. Only the SHA-256 of the text is kept: a secret
that cannot be guessed needs no slow hash.
"""

import hashlib
import hmac
import re
from collections.abc import Callable, Collection, Iterable
from datetime import datetime
from enum import StrEnum

import msgspec

from windlass.core.names import check_name
from windlass.core.text import shown
from windlass.errors import InvalidOption

MAX_TOKENS = 1_000
MAX_LISTED = 100
"""Queues or types that a token is limited to."""
_TEXT = re.compile(r"wl_([0-9a-f]{12})_([0-9a-f]{64})")


class Scope(StrEnum):
    """What a token allows."""

    READ = "read"
    PAYLOADS = "payloads"
    """Allows reading payloads, results and log lines."""
    ENQUEUE = "enqueue"
    WORK = "work"
    OPERATE = "operate"
    ADMIN = "admin"


_INCLUDES = {Scope.ADMIN: frozenset(Scope), Scope.OPERATE: frozenset({Scope.OPERATE, Scope.READ})}


class Rights(msgspec.Struct, frozen=True, kw_only=True):
    """The scopes of a caller, and the queues and types that it is limited to (empty: all)."""

    scopes: frozenset[Scope]
    queues: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()

    def allows(self, scope: Scope) -> bool:
        """Whether one of its scopes includes this one."""
        return any(scope in _INCLUDES.get(each, {each}) for each in self.scopes)

    def covers(self, queue: str, type_: str | None = None) -> bool:
        """Whether it allows reading and changing jobs of this queue and type."""
        return self.covers_queue(queue) and (type_ is None or self.covers_type(type_))

    def covers_queue(self, queue: str) -> bool:
        """Whether the queue is within its limits."""
        return not self.queues or queue in self.queues

    def covers_type(self, type_: str) -> bool:
        """Whether the type is within its limits."""
        return not self.types or type_ in self.types

    def includes(self, queues: Collection[str], types: Collection[str]) -> bool:
        """Whether these queues or types (none: not limited) are within its own limits."""
        return _is_within(queues, self.queues) and _is_within(types, self.types)

    @property
    def is_limited(self) -> bool:
        """Whether it is limited to some queues or types."""
        return bool(self.queues or self.types)


def _is_within(names: Collection[str], limits: frozenset[str]) -> bool:
    return not limits or (bool(names) and limits.issuperset(names))


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """A token as users see it: everything but its secret."""

    id: str
    name: str
    scopes: tuple[Scope, ...]
    queues: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    created_at: datetime
    expires_at: datetime | None = None
    last_used_at: datetime | None = None

    @property
    def rights(self) -> Rights:
        """The rights of this token."""
        return Rights(scopes=frozenset(self.scopes), queues=frozenset(self.queues), types=frozenset(self.types))


def new_text(id_: str, random: Callable[[int], bytes]) -> str:
    """The text of a token with a new secret."""
    return f"wl_{id_}_{random(32).hex()}"


def new_token_id(random: Callable[[int], bytes]) -> str:
    """The id of a new token."""
    return random(6).hex()


def id_of(text: str) -> str | None:
    """The id in the text of a token; None if the text is not a token."""
    match = _TEXT.fullmatch(text)
    return None if match is None else match[1]


def digest_of(text: str) -> str:
    """The SHA-256 of the text."""
    return hashlib.sha256(text.encode()).hexdigest()


def link_code(text: str) -> str:
    """The code of a link that logs in once with this token; the token cannot be derived from it."""
    return hmac.new(text.encode(), b"log-in link", hashlib.sha256).hexdigest()


def check_scopes(scopes: Iterable[str]) -> tuple[Scope, ...]:
    """The scopes, checked and in a fixed order."""
    given = {scopes} if isinstance(scopes, str) else set(scopes)
    if unknown := sorted(str(each) for each in given if each not in set(Scope)):
        raise InvalidOption("scopes", f"{shown(unknown[0])} is not one of {', '.join(Scope)}")
    if not given:
        raise InvalidOption("scopes", f"must name at least one of {', '.join(Scope)}")
    return tuple(each for each in Scope if each in given)


def check_names(names: Iterable[str], field: str) -> tuple[str, ...]:
    """The queues or types of a token, checked."""
    found = tuple(check_name(each, f"{field}[{i}]") for i, each in enumerate(names))
    if len(found) > MAX_LISTED:
        raise InvalidOption(field, f"has {len(found)} entries, the limit is {MAX_LISTED}", limit=MAX_LISTED)
    return found
