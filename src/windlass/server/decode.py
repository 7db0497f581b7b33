"""Reading requests: bodies within limits, payloads strictly, queries by their types, cursors of lists."""

import asyncio
import base64
import binascii
import contextlib
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, UnsetType
from starlette.requests import Request

from windlass.core.codec import MAX_DEPTH, check_json
from windlass.errors import ConfigError, InvalidOption, InvalidPayload
from windlass.server.problem import Refused

BODY_SECONDS = 30.0
"""A body must be complete within this time."""
MAX_EMPTY = 100
"""Empty parts of a body in a row."""
Payload = Annotated[msgspec.Raw, msgspec.Meta(extra_json_schema={"type": "object"})]
"""The arguments of a task by name; parsed strictly by `parse_object`."""
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
    except RecursionError:
        raise InvalidPayload("body", f"is nested deeper than {MAX_DEPTH} levels", limit=MAX_DEPTH) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        _check_values(text)
        raise Refused(400, "invalid_json", f"the body is not JSON: {str(error)[:200]}") from None


def _check_values(text: bytes) -> None:
    """Raise InvalidPayload for a body whose only fault is a value that cannot be stored: NaN, or a lone surrogate."""
    with contextlib.suppress(ValueError, RecursionError):
        check_json(_parse(text.decode()), "body", most=len(text))


def parse_object(text: msgspec.Raw | UnsetType) -> dict[str, Any]:
    """A payload, strictly: a JSON object without NaN and without a key twice."""
    if text is UNSET:
        return {}
    value = parse_value(bytes(text), "payload")
    if not isinstance(value, dict):
        raise InvalidPayload("payload", f"must be a JSON object, not {type(value).__name__}")
    return value


def parse_value(text: bytes, field: str) -> Any:
    """A JSON value, strictly."""
    try:
        return _parse(text.decode())
    except RecursionError:
        raise InvalidPayload(field, f"is nested deeper than {MAX_DEPTH} levels", limit=MAX_DEPTH) from None
    except UnicodeDecodeError as error:
        raise Refused(400, "invalid_json", f"the body is not JSON: it is not UTF-8: {error}") from None
    except ValueError as error:
        raise InvalidPayload(field, f"is not JSON: {error}") from None


def _parse(text: str) -> Any:
    try:
        value, end = _scan(text, 0)
    except StopIteration as stop:
        raise ValueError(f"there is no value at character {stop.value}") from None
    if end != len(text):
        raise ValueError(f"there is more after its end at character {end}")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise InvalidPayload("payload", "has a key twice")
    return found


# 25 digits are enough for the check that refuses large integers; Python does not parse thousands.
_scan: Callable[[str, int], tuple[Any, int]] = json.JSONDecoder(
    object_pairs_hook=_unique, parse_int=lambda digits: int(digits[:25])
).scan_once  # type: ignore[attr-defined]


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
