"""Ids: UUIDv7 made by the producer, so that a hand-in can be repeated and ids sort by time."""

import re
from collections.abc import Callable

from uuid_utils import uuid7

from windlass.errors import InvalidName

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

JobId = str

LENGTH = 36
SHORTEST_PART = 4
_ZERO = "00000000-0000-0000-0000-000000000000"


def new_id() -> JobId:
    """A fresh id; within one process each is larger than the one before."""
    return str(uuid7())


def check_id(value: object, field: str = "id") -> JobId:
    """An id that a caller gave, in its one canonical spelling."""
    text = str(value).lower() if not isinstance(value, str) else value.lower()
    if len(text) > LENGTH or not _UUID.fullmatch(text):
        raise InvalidName(field, f"{text[:40]!r} is not a UUID")
    return text


def is_id(text: str) -> bool:
    """Whether this is an id in its canonical spelling, and so fit to be part of a path."""
    return _UUID.fullmatch(text) is not None


def check_part(value: str) -> str:
    """The first or the last characters of an id, as people copy them."""
    text = value.lower().strip("…")
    if not SHORTEST_PART <= len(text) <= LENGTH or not (is_beginning(text) or is_end(text)):
        said = f"nor the first or last {SHORTEST_PART} characters or more of one"
        raise InvalidName("id", f"{text[:40]!r} is not a UUID, {said}")
    return text


def is_beginning(text: str) -> bool:
    """Whether an id can begin so."""
    return is_id(lowest(text))


def is_end(text: str) -> bool:
    """Whether an id can end so."""
    return is_id(_ZERO[: max(0, LENGTH - len(text))] + text)


def lowest(beginning: str) -> JobId:
    """Sorts before every id that begins so."""
    return beginning + _ZERO[len(beginning) :]


def new_runner_id(random: Callable[[int], bytes]) -> str:
    """A worker's or runner's id: new at each start and never used again, short enough to read."""
    return random(5).hex()
