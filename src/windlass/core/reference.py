"""References: what a row holds instead of a payload or result that is kept in the blob store.

A reference is text that no JSON can be, so nothing that a program hands in is ever taken for one. It says what must
be found, never where: the place is made of the job's own id, so that an edited row can only spoil its own job.
"""

import re
from hashlib import sha256
from typing import Any, Literal

import msgspec

LARGEST_BLOB = 64 * 2**20
"""Bytes of JSON. As Python objects they take some ten times as much, in every process that looks at them."""

PREFIX = "blob:"
NAME = re.compile(r"(?:payload|result)\.[0-9a-f]{16}", re.ASCII)
"""A blob's name among those of its job: what it is, and a mark that no other put has."""
_REFERENCE = re.compile(rf"blob:v1:({NAME.pattern}):([0-9]{{1,9}}):([0-9a-f]{{64}})", re.ASCII)

Kind = Literal["payload", "result"]


class Reference(msgspec.Struct, frozen=True):
    """Which blob of its job, and what it must contain."""

    name: str
    size: int
    sha256: str

    @property
    def text(self) -> str:
        """As it stands in a row."""
        return f"{PREFIX}v1:{self.name}:{self.size}:{self.sha256}"

    @property
    def kind(self) -> str:
        """Payload or result."""
        return self.name.partition(".")[0]

    @property
    def shown(self) -> dict[str, Any]:
        """What people and programs see where the value itself is not fetched."""
        return {"blob": {"size": self.size, "sha256": self.sha256}}

    def problem(self, data: bytes) -> str | None:
        """What is wrong with these bytes, if they are not the ones that were put."""
        if len(data) != self.size:
            return f"{len(data):,} bytes were found"
        found = sha256(data).hexdigest()
        return None if found == self.sha256 else f"its content was altered (sha256 {found})"


def refer(kind: Kind, mark: bytes, data: bytes) -> Reference:
    """A reference to these bytes; `mark` is eight random bytes, new for each put, so that none overwrites another."""
    return Reference(f"{kind}.{mark.hex()}", len(data), sha256(data).hexdigest())


def parse_reference(stored: object) -> Reference | None:
    """The reference that a stored text is, if it is one."""
    match = _REFERENCE.fullmatch(stored) if isinstance(stored, str) and stored.startswith(PREFIX) else None
    if match is None or int(match[2]) > LARGEST_BLOB:
        return None
    return Reference(match[1], int(match[2]), match[3])
