"""Cursors: opaque to clients, and bound to the filter of their list."""

import base64
import binascii
import hashlib
from typing import Any

import msgspec

from windlass.server.problem import Refused


def make_cursor(position: str | None, filter_: Any) -> str | None:
    """The cursor of a position in the list with this filter; None at the end."""
    if position is None:
        return None
    return base64.urlsafe_b64encode(msgspec.msgpack.encode((_digest(filter_), position))).decode().rstrip("=")


def read_cursor(cursor: str | None, filter_: Any) -> str | None:
    """The position of a cursor; refused for another filter."""
    if not cursor:
        return None
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        digest, position = msgspec.msgpack.decode(text, type=tuple[bytes, str])
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        raise Refused(400, "invalid_cursor", "this is no cursor of this server", field="cursor") from None
    if digest != _digest(filter_):
        raise Refused(400, "invalid_cursor", "this cursor belongs to another filter", field="cursor")
    return position


def _digest(filter_: Any) -> bytes:
    return hashlib.sha256(msgspec.json.encode(filter_)).digest()[:8]
