"""References: texts that a row holds instead of a payload or result that is in the blob store.

A reference is not valid JSON, so no payload can be mistaken for one. It has no path: that is made of the job's id, so
an edited row can only break its own job.
"""

import re
from hashlib import sha256
from typing import Any, Literal

import msgspec

MAX_BLOB_SIZE = 64 * 2**20
"""Bytes of JSON. As Python objects they take about ten times as much."""

PREFIX = "blob:"
NAME = re.compile(r"(?:payload|result)\.[0-9a-f]{16}", re.ASCII)
"""A blob's name among those of its job: its kind, and eight random bytes."""
_REFERENCE = re.compile(rf"blob:v1:({NAME.pattern}):([0-9]{{1,9}}):([0-9a-f]{{64}})", re.ASCII)

Kind = Literal["payload", "result"]


class Reference(msgspec.Struct, frozen=True):
    """A blob of a job, and its expected content."""

    name: str
    size: int
    sha256: str

    @property
    def text(self) -> str:
        """The reference as stored in a row."""
        return f"{PREFIX}v1:{self.name}:{self.size}:{self.sha256}"

    @property
    def kind(self) -> str:
        """Payload or result."""
        return self.name.partition(".")[0]

    @property
    def shown(self) -> dict[str, Any]:
        """A public form of the reference, where the value is not fetched."""
        return {"blob": {"size": self.size, "sha256": self.sha256}}

    def problem(self, data: bytes) -> str | None:
        """Why these bytes are not the stored ones; None if they are."""
        if len(data) != self.size:
            return f"{len(data):,} bytes were found"
        found = sha256(data).hexdigest()
        return None if found == self.sha256 else f"its content was altered (sha256 {found})"


def refer(kind: Kind, nonce: bytes, data: bytes) -> Reference:
    """A reference to these bytes; `nonce` is eight random bytes, so that no blob overwrites another."""
    return Reference(f"{kind}.{nonce.hex()}", len(data), sha256(data).hexdigest())


def parse_reference(stored: object) -> Reference | None:
    """The reference in a stored text, if it is one."""
    match = _REFERENCE.fullmatch(stored) if isinstance(stored, str) and stored.startswith(PREFIX) else None
    if match is None or int(match[2]) > MAX_BLOB_SIZE:
        return None
    return Reference(match[1], int(match[2]), match[3])
