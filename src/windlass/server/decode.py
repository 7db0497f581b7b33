"""Reading requests: bodies within limits and strictly, queries by the types of their operation, cursors of lists."""

import asyncio
import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.requests import Request

from windlass.errors import ConfigError, InvalidOption
from windlass.server.problem import Refused

BODY_SECONDS = 30.0
"""A body must be complete within this time."""
MAX_EMPTY = 100
"""Empty parts of a body in a row."""
_PATH = re.compile(r" - at `(?:key in )?\$(?:\.\.\.)?\.?([^`]*)`$")


async def read_body(request: Request, limit: int) -> bytes:
    """The body, if it is not compressed; Refused once more than the limit has arrived."""
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise Refused(415, "unsupported_encoding", "bodies must not be compressed")
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > limit:
        raise too_large(limit)
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await _read(request, limit)
    except TimeoutError:
        raise Refused(408, "body_timeout", f"the body was not complete within {BODY_SECONDS:g} s") from None


async def _read(request: Request, limit: int) -> bytes:
    parts: list[bytes] = []
    size, empty, is_complete = 0, 0, False
    while not is_complete:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise Refused(400, "disconnected", "the client closed the connection")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        empty = 0 if parts[-1] else empty + 1
        if empty > MAX_EMPTY:  # under WSGI, a body that ended early goes on in empty parts
            raise Refused(400, "disconnected", "the client sent less than it announced")
        if size > limit:
            raise too_large(limit)
        is_complete = not message.get("more_body", False)
    return b"".join(parts)


def too_large(limit: int) -> Refused:
    """The refusal of a body over the limit."""
    return Refused(413, "body_too_large", f"the body is larger than {limit:,} bytes", limit=limit)


def check_media_type(headers: Mapping[str, str]) -> None:
    """Refuse a body that does not say that it is JSON."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refused(415, "unsupported_media_type", "send application/json")


def decode_body(text: bytes, kind: Any) -> Any:
    """The body as a value of this type."""
    if text.startswith(b"\xef\xbb\xbf"):
        raise Refused(400, "invalid_json", "the body begins with a byte order mark")
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.ValidationError as error:
        raise invalid(error) from None
    except ConfigError as error:  # of a retry policy, the only one here that checks itself
        raise InvalidOption("retry", "; ".join(error.problems)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(400, "invalid_json", f"the body is not JSON: {_plain(error)}") from None


def decode_query(request: Request, kind: type[msgspec.Struct] | None) -> Any:
    """The query as a value of this type; a parameter that may come several times becomes a tuple."""
    if not request.scope["query_string"] and kind is None:
        return None
    found: dict[str, Any] = {}
    fields = {} if kind is None else {each.encode_name: each for each in msgspec.structs.fields(kind)}
    for name, value in request.query_params.multi_items():
        field = fields.get(name)
        if field is None:
            known = f"; there are {', '.join(fields)}" if fields else ""
            raise InvalidOption(name[:100], f"is not a parameter here{known}")
        if "tuple" in str(field.type):
            found.setdefault(name, []).extend(each for each in value.split(",") if each)
        elif name in found:
            raise InvalidOption(name, "is given twice")
        else:
            found[name] = value
    if kind is None:
        return None
    try:
        return msgspec.convert(found, kind, strict=False)
    except msgspec.ValidationError as error:
        raise invalid(error) from None


def invalid(error: msgspec.ValidationError) -> InvalidOption:
    """A value of the wrong type, with the path to it."""
    text = str(error)
    path = _PATH.search(text)
    return InvalidOption(path[1] if path and path[1] else "body", _PATH.sub("", text))


def _plain(error: Exception) -> str:
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)[:200]


def make_cursor(position: str | None, filter_: Any) -> str | None:
    """The cursor of a position in the list with this filter; None at the end."""
    if position is None:
        return None
    return base64.urlsafe_b64encode(msgspec.msgpack.encode((_filter_digest(filter_), position))).decode().rstrip("=")


def read_cursor(cursor: str | None, filter_: Any) -> str | None:
    """The position of a cursor; refused for another filter."""
    if not cursor:
        return None
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        digest, position = msgspec.msgpack.decode(text, type=tuple[bytes, str])
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        raise Refused(400, "invalid_cursor", "is not a cursor of this server", field="cursor") from None
    if digest != _filter_digest(filter_):
        raise Refused(400, "invalid_cursor", "this cursor belongs to another filter", field="cursor")
    return position


def _filter_digest(filter_: Any) -> bytes:
    return hashlib.sha256(msgspec.json.encode(filter_)).digest()[:8]
