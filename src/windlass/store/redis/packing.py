"""Commands as bytes for the server, made by the driver's own library in C."""

from collections.abc import Sequence
from typing import Any

import hiredis

Word = str | bytes | int | float
_pack: Any = hiredis.pack_command
"""It is declared for one word only."""


def packed(commands: Sequence[tuple[Word, ...]]) -> bytes:
    """All of them, to be written at once."""
    return b"".join([_pack(words) for words in commands])
