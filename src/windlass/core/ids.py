"""Ids: UUIDv7 made by the producer, so that an enqueue can be repeated and ids sort by time."""

import re
from collections.abc import Callable
from typing import Protocol
from uuid import UUID

from uuid_utils import uuid7

from windlass.core.moments import Micros
from windlass.core.text import shown
from windlass.errors import InvalidName

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

JobId = str


class HasId(Protocol):
    """Anything with the id of a job, such as a Handle or a Job."""

    @property
    def id(self) -> JobId: ...


JobRef = JobId | UUID | HasId
"""What names a job: its id, a Handle or a Job."""

LENGTH = 36
MIN_PART = 4
_ZERO = "00000000-0000-0000-0000-000000000000"


def new_id() -> JobId:
    """A new id; within one process each is larger than the one before."""
    return str(uuid7())


def check_id(value: object, field: str = "id") -> JobId:
    """A given id, or that of a handle or a job, in its canonical spelling."""
    text = str(getattr(value, "id", value)).lower()
    if len(text) > LENGTH or not _UUID.fullmatch(text):
        said = shown(value if value is None or isinstance(value, int) else text[:40])
        raise InvalidName(field, f"{said} is not a UUID, as ids of jobs are")
    return text


def is_id(text: str) -> bool:
    """Whether this is an id in its canonical spelling, and so safe in a path."""
    return _UUID.fullmatch(text) is not None


def moment_of(id_: JobId) -> Micros | None:
    """When an id was made; None if it contains no time."""
    return int(id_[:8] + id_[9:13], 16) * 1000 if id_[14] == "7" else None


def first_id_at(moment: Micros) -> JobId:
    """A text that sorts before every id that is made at this moment or later."""
    digits = f"{moment // 1000:012x}"
    return lowest(f"{digits[:8]}-{digits[8:]}")


def check_part(value: str) -> str:
    """The first or the last characters of an id, as people copy them."""
    text = value.lower().strip("…")
    if not is_part(text):
        said = f"nor the first or last {MIN_PART} characters or more of one"
        raise InvalidName("id", f"{text[:40]!r} is not a UUID, {said}")
    return text


def is_part(text: str) -> bool:
    return MIN_PART <= len(text) <= LENGTH and (is_prefix(text) or is_suffix(text))


def is_prefix(text: str) -> bool:
    return is_id(lowest(text))


def is_suffix(text: str) -> bool:
    return is_id(_ZERO[: max(0, LENGTH - len(text))] + text)


def lowest(beginning: str) -> JobId:
    """A text that sorts before every id with this prefix."""
    return beginning + _ZERO[len(beginning) :]


def new_runner_id(random: Callable[[int], bytes]) -> str:
    """A new id of a worker: it is never used again, and short enough to read."""
    return random(5).hex()


def runner_id(worker: str, number: int) -> str:
    """The id of a runner: it names its worker; a new lease gets a new number."""
    return f"{worker}-{number}"
