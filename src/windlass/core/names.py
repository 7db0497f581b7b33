"""Valid names: one alphabet for queues, types and tags on every store."""

import re

from windlass.errors import InvalidInput, InvalidName

MAX_NAME_LENGTH = 128
MAX_KEY_LENGTH = 4096
MAX_CONCURRENCY_KEY_LENGTH = 512
"""Bounded because the key is part of an index."""
MAX_TAGS = 32

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,127}")


def check_name(name: object, field: str) -> str:
    """A queue, type, tag or tenant: short, printable, and safe in a key, a path, SQL and HTML."""
    if not isinstance(name, str):
        raise InvalidName(field, f"must be a string, not {type(name).__name__}")
    if not _NAME.fullmatch(name) or ".." in name:
        shown = name if len(name) <= 40 else name[:40] + "…"
        raise InvalidName(
            field,
            f"{shown!r} is not 1 to {MAX_NAME_LENGTH} of the characters A-Z a-z 0-9 _ . : - "
            "(starting with a letter, digit or _, no '..')",
            limit=MAX_NAME_LENGTH if len(name) > MAX_NAME_LENGTH else None,
        )
    return name


def check_key(key: object, field: str, longest: int = MAX_KEY_LENGTH) -> str:
    """An idempotency key: free text, since only its hash is an index key; a concurrency key is shorter."""
    if not isinstance(key, str):
        raise InvalidName(field, f"must be a string, not {type(key).__name__}")
    try:
        size = len(key.encode())
    except UnicodeEncodeError:
        raise InvalidName(field, "is not valid Unicode") from None
    if not 1 <= size <= longest or "\x00" in key:
        limit = longest if size > longest else None
        raise InvalidName(field, f"must be 1 to {longest} bytes without NUL, not {size} bytes", limit=limit)
    return key


def type_of(qualified_name: str) -> str:
    """The default type of a function: its qualified name, without enclosing functions."""
    return qualified_name.rpartition("<locals>.")[2]


def with_field(error: InvalidInput, field: str) -> InvalidInput:
    """The same error with this name as its field."""
    error.field, error.args = field, (f"{field}: {error.problem}",)
    return error
